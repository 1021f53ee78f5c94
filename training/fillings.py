"""What fills the slots of made-up sentences: words from lexicon.txt, and names, dates and amounts made from parts."""

import importlib.resources
import random
from collections.abc import Callable
from functools import cache

MONTHS = ("January", "February", "March", "April", "May", "June",
          "July", "August", "September", "October", "November", "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOLIDAYS = ("Christmas", "Easter", "New Year's Eve", "Thanksgiving", "Halloween", "Diwali", "Good Friday",
            "Christmas Eve", "Easter Monday", "Independence Day", "Hanukkah", "Eid", "Boxing Day",
            "Valentine's Day")  # fmt: skip
COUNTS = ("two", "three", "five", "ten", "12", "30", "a hundred", "six")
SEASONS = ("spring", "summer", "autumn", "winter")


@cache
def lexicon() -> dict[str, tuple[str, ...]]:
    """Read the words, kind -> words."""
    pairs = (line.split(": ", 1) for line in read_lines("lexicon.txt"))
    return {kind: tuple(words.split(" | ")) for kind, words in pairs}


def read_lines(name: str) -> list[str]:
    """Read a file beside this one, without its comments and empty lines."""
    content = importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return [line for line in content.splitlines() if line and not line.startswith("# ")]


def word(rng: random.Random, *kinds: str) -> str:
    """Take a word of one of the kinds. Raises KeyError where the lexicon has no such kind."""
    return rng.choice(lexicon()[rng.choice(kinds)])


def date(rng: random.Random) -> str:
    """Make a date as people write it."""
    day, month, year = rng.randint(1, 28), rng.choice(MONTHS), rng.randint(1780, 2029)
    number = MONTHS.index(month) + 1
    ordinal = f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"
    return rng.choice(
        (
            f"{day} {month} {year}",
            f"{month} {day}, {year}",
            f"{rng.choice(DAYS)}, {month} {day}, {year}",
            f"{rng.choice(DAYS)} {day} {month}",
            f"{month} {day}",
            f"{day} {month}",
            f"{month} {ordinal}",
            f"the {ordinal} of {month}",
            f"the {ordinal} of {month} {year}",
            f"{month} {year}",
            month,
            str(year),
            str(year),
            rng.choice(DAYS),
            rng.choice(DAYS) + "s",
            f"{rng.choice(('last', 'next', 'this'))} {rng.choice((*DAYS, 'week', 'month', 'year', 'summer'))}",
            rng.choice(("today", "yesterday", "tomorrow")),
            f"{rng.choice(COUNTS)} {rng.choice(('days', 'weeks', 'months', 'years'))} ago",
            f"{year}-{number:02}-{day:02}",
            f"{day:02}/{number:02}/{year}",
            f"{number}/{day}/{year % 100:02}",
            f"{day}.{number}.{year}",
            f"{day} {month[:3]} {year}",
            f"{month[:3]}. {day}",
            f"{month[:3]} {day}, {year}",
            f"the {year // 10 * 10}s",
            f"Q{rng.randint(1, 4)} {year}",
            f"the {rng.choice(('first', 'second', 'third', 'fourth'))} quarter of {year}",
            f"{rng.choice(SEASONS)} {year}",
            f"{day}-{day + 2} {month}",
            f"the {rng.choice(('18th', '19th', '20th', '21st'))} century",
            rng.choice(HOLIDAYS),
        )
    )


def person(rng: random.Random) -> str:
    """Make a name: mostly first and last, sometimes one of them, initials or two last names."""
    first, last = word(rng, "_first"), word(rng, "_last")
    double = f"{last.split()[-1]}-{word(rng, '_last').split()[-1]}"
    middle = rng.choice("ABDEFHJKLMPRSTW")
    rare = (first, last, f"{first} {middle}. {last}", f"{first[0]}. {last}", f"{first} {double}")
    return f"{first} {last}" if rng.random() < 0.5 else rng.choice(rare)


def organization(rng: random.Random) -> str:
    """Take an organization that is known, or make one from parts."""
    if rng.random() < 0.5:
        return word(rng, "_company", "_company", "_agency", "_place_org", "university", "hospital", "sports team",
                    "bank", "airline", "newspaper")  # fmt: skip
    regional = ("Railway", "Chamber of Commerce", "Police", "Museum", "Water Board", "Teachers Union", "Cancer Society")
    municipal = ("City Council", "University", "Airport Authority", "Philharmonic", "Fire Department", "United",
                 "School Board", "Tram Company")  # fmt: skip
    return rng.choice(
        (
            f"{word(rng, '_stem')} {word(rng, '_suffix')}",
            f"{word(rng, '_last')} {word(rng, '_suffix')}",
            f"{word(rng, '_last')} & {word(rng, '_last')}",
            f"the {word(rng, '_region').removeprefix('the ')} {rng.choice(regional)}",
            f"{word(rng, 'city')} {rng.choice(municipal)}",
            word(rng, "_stem"),
        )
    )


def product(rng: random.Random) -> str:
    """Take a product that is known, or make one of a brand's word and a model's."""
    if rng.random() < 0.4:
        return word(rng, "electronic device", "software", "vehicle", "drug", "book", "film", "video game")
    brand = word(rng, "_brandword") + word(rng, "_brandtail")
    return rng.choice(
        (
            brand,
            f"{brand} {word(rng, '_gadget')}",
            f"{word(rng, '_company')} {brand}",
            f"{word(rng, '_stem')} {word(rng, '_gadget')}",
            f"{brand} {rng.randint(1, 900)}",
            f"{rng.choice('ABCDEFGHKMRSTVXZ')}{rng.choice('XSLRT')}-{rng.randint(10, 990)}",
        )
    )


def event(rng: random.Random) -> str:
    """Take an event that is known, or make one of a topic, a kind, a place and a year."""
    if rng.random() < 0.4:
        return word(rng, "_famous_event")
    topic, kind, place = word(rng, "_event_topic"), word(rng, "_event_kind"), word(rng, "city")
    year, country = rng.randint(1950, 2029), word(rng, "country").removeprefix("the ")
    return rng.choice(
        (
            f"the {topic} {kind}",
            f"{topic} {kind} {year}",
            f"the {place} {topic} {kind}",
            f"the {year} {place} {kind}",
            f"the {year} {topic} {kind}",
            f"the {place} {kind}",
            f"the International {topic} {kind}",
            f"{topic}Con",
            f"{topic}Con {place} {year}",
            f"the Battle of {place}",
            f"the Siege of {place}",
            f"the {year} {country} election",
            f"{rng.choice(('Hurricane', 'Storm', 'Typhoon'))} {word(rng, '_first')}",
            f"the {place} {rng.choice(('riots', 'flood', 'earthquake', 'bombing'))}",
            f"the Treaty of {place} talks",
        )
    )


def location(rng: random.Random) -> str:
    """Take a place of any kind; a street sometimes with its number."""
    if rng.random() < 0.09:
        return f"{word(rng, '_street')} {rng.randint(1, 220)}" if rng.random() < 0.3 else word(rng, "_street")
    return word(
        rng, "city", "city", "city", "country", "country", "_region", "_region", "_building", "mountain", "river"
    )


def money(rng: random.Random) -> str:
    """Make an amount of money."""
    small, large = f"{rng.randint(1, 99)}.{rng.randint(10, 99)}", f"{rng.randint(1, 90)},{rng.randint(100, 999)}"
    amount = rng.choice((small, large, f"{rng.randint(2, 999)}")) + rng.choice(("", "", " million", " billion"))
    return rng.choice((f"${amount}", f"€{amount}", f"£{amount}", f"{amount} dollars", f"{amount} euros"))


def time(rng: random.Random) -> str:
    """Make a time of the day."""
    hour = rng.randint(1, 12)
    clock = f"{rng.randint(0, 23)}:{rng.randint(0, 59):02}"
    return rng.choice(
        (clock, clock, f"{hour} {rng.choice(('am', 'pm', 'a.m', 'p.m'))}", f"{hour}pm", f"{hour} o'clock")
    )


def percentage(rng: random.Random) -> str:
    """Make a percentage."""
    return f"{rng.randint(1, 99)}{rng.choice(('%', ' percent', ' per cent', f'.{rng.randint(1, 9)}%'))}"


def email_address(rng: random.Random) -> str:
    """Make an e-mail address under a domain that can't exist."""
    return f"{word(rng, '_first').lower()}.{rng.randint(1, 99)}@{word(rng, '_stem').lower()}.example"


def phone_number(rng: random.Random) -> str:
    """Make a telephone number."""
    area, number = rng.randint(100, 999), rng.randint(100_000, 999_999)
    return rng.choice((f"+{rng.randint(1, 99)} {area} {number}", f"555-{number % 10_000:04}", f"0{area} {number}"))


def order_number(rng: random.Random) -> str:
    """Make the number of an order, an invoice or a ticket."""
    number = rng.randint(1_000, 999_999)
    return rng.choice((f"#{number}", f"INV-{number}", f"{rng.choice('ABKRT')}{number}"))


def street_address(rng: random.Random) -> str:
    """Make a street with its number before it."""
    return f"{rng.randint(1, 300)} {word(rng, '_street')}"


def url(rng: random.Random) -> str:
    """Make a web address under a domain that can't exist."""
    return f"https://{word(rng, '_stem').lower()}.example/{word(rng, '_brandword').lower()}"


MADE: dict[str, Callable[[random.Random], str]] = {
    "date": date,
    "person": person,
    "organization": organization,
    "product": product,
    "event": event,
    "location": location,
    "money": money,
    "time": time,
    "percentage": percentage,
    "email address": email_address,
    "phone number": phone_number,
    "order number": order_number,
    "street address": street_address,
    "url": url,
}
"""Label -> what makes a filling for it."""

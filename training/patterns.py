"""Find by rule what needs no human to mark it: dates, times, amounts of money, percentages, addresses of the net.

The corpora mark dates rarely and each in its own way; one rule over all of them gives one convention.
A date is what a calendar or a day's speech names ("3 March 2021", "last Friday", "the 1990s" without its
"the"); a duration ("two weeks") is none.
"""

import re
from collections.abc import Iterator

_LONG_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH = rf"(?:(?:{_LONG_MONTHS})\b|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
_LONG_MONTH = (
    rf"(?:{_LONG_MONTHS.replace('May|', '')})\b"
    r"|(?<=\bin )May\b|(?<=\blast )May\b|(?<=\bnext )May\b|(?<=\bthis )May\b"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:\s?(?:st|nd|rd|th))?\b"
_CENTURY = r"(?:1[5-9]|20)"
_YEAR = rf"{_CENTURY}\d\d"
_WEEKDAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_SHORT_WEEKDAY = r"(?:Mon|Tue|Tues|Wed|Thu|Thurs|Fri|Sat|Sun)\.?"
_SEASON = r"(?:spring|summer|autumn|fall|winter)"
_UNIT = r"(?:week|month|year|quarter|weekend|decade|century|spring|summer|autumn|fall|winter)"
_COUNT = r"(?:\d{1,3}|an?|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|a few|several)"
_HOLIDAY = (
    r"(?:Christmas|New Year'?s) (?:Eve|Day)|Christmas|Easter(?: Sunday| Monday)?|Good Friday|Thanksgiving|Halloween"
    r"|Hanukkah|Diwali|Ramadan|Valentine's Day|Boxing Day|Labor Day|Memorial Day|Independence Day"
)
_COUNTED = "people|men|women|votes|miles|km|words|mg|MHz"
_NOT_IN_NUMBER = r"(?<![\w$£€./:#@%-])"
_NUMBER_ENDS = r"(?![\w%]|[.,:/]\d|-\w)"

_DATE = "|".join(
    (
        # 2021-03-05, 05/03/2021, 05/03/21, 5.3.2021
        rf"{_NOT_IN_NUMBER}{_YEAR}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])(?!\d)",
        rf"{_NOT_IN_NUMBER}(?:[0-2]?\d|3[01])([/-])(?:[0-2]?\d|3[01])\1(?:{_YEAR}|\d\d){_NUMBER_ENDS}",
        rf"{_NOT_IN_NUMBER}(?:[0-2]?\d|3[01])\.(?:0?\d|1[0-2])\.{_YEAR}{_NUMBER_ENDS}",
        # 12-14 January 2021, 1914-1918
        rf"{_NOT_IN_NUMBER}\d\d? ?[-–] ?{_DAY} {_MONTH}(?:,? {_YEAR}\b)?",
        rf"{_NOT_IN_NUMBER}{_YEAR}[-–](?:{_YEAR}|\d\d){_NUMBER_ENDS}",
        # Monday, March 5th, 2021 and March 5, and Monday the 5th of March 2021 and 5 March; March 2021
        rf"\b(?:(?:{_WEEKDAY}|{_SHORT_WEEKDAY}),? )?{_MONTH} {_DAY}(?:,? {_YEAR}\b)?(?![\d:])",
        rf"\b(?:(?:{_WEEKDAY}|{_SHORT_WEEKDAY}),? (?:the )?)?{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR}\b)?",
        rf"\b{_MONTH},? (?:of )?{_YEAR}\b",
        rf"\b(?:{_SEASON} (?:of )?|Q[1-4] ){_YEAR}\b|\bQ[1-4]\b",
        # last Friday, next week, this year; the 19th century, the 1990s
        rf"\b(?:last|next|this|past) (?:{_WEEKDAY}|{_LONG_MONTH}|{_UNIT})\b",
        r"\b(?:1?\d(?:st|nd|rd|th)|(?:eight|nine|twent)\w+) century\b",
        rf"{_NOT_IN_NUMBER}{_CENTURY}\d0s\b",
        # a day, a month, a year alone
        rf"\b{_COUNT} (?:day|week|month|year)s? ago\b|\b(?:{_HOLIDAY})\b",
        rf"\b{_WEEKDAY}s?\b",
        r"\b(?:yesterday|today|tomorrow)\b",
        rf"\b(?:{_LONG_MONTH})",
        rf"{_NOT_IN_NUMBER}(?:1[6-9]\d\d|20[0-4]\d){_NUMBER_ENDS}(?! (?:{_COUNTED})\b)",
    )
)

PATTERNS: dict[str, re.Pattern[str]] = {
    "date": re.compile(_DATE, re.IGNORECASE),
    "time": re.compile(
        r"(?<![\w.:])(?:[01]?\d|2[0-3])(?::[0-5]\d){1,2}(?: ?[ap]\.?m\b\.?)?(?![\w:])"
        r"|\b1?\d ?[ap]\.?m\b\.?|\b(?:noon|midnight)\b",
        re.IGNORECASE,
    ),
    "money": re.compile(
        r"(?:US|A|C)?[$£€¥] ?\d[\d,]*(?:\.\d+)?(?: ?(?:million|billion|trillion|thousand|bn|[mk])\b)?"
        r"|\b\d[\d,]*(?:\.\d+)?(?: (?:million|billion|trillion|thousand))?"
        r" (?:dollars|euros|pounds|yen|rupees|francs)\b",
        re.IGNORECASE,
    ),
    "percentage": re.compile(r"(?<![\w.])\d+(?:\.\d+)? ?(?:%|percent\b|per cent\b)", re.IGNORECASE),
    "email address": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
    "url": re.compile(r"\bhttps?://[^\s<>\"]*[^\s<>\".,;:!?)]"),
}
"""Label -> what carries it. A match counts where it begins and ends with whole words."""

_NAMES_THAT_LOOK_LIKE_MONTHS = re.compile(r"(?:march|may|mar|sun|sat|fall|q[1-4])", re.IGNORECASE)


def find(label: str, text: str) -> Iterator[tuple[int, int]]:
    """Find the character spans of a rule's label in a text, left to right, without overlaps.

    Raises KeyError for a label that has no rule.
    """
    for match in PATTERNS[label].finditer(text):
        if label == "date" and _NAMES_THAT_LOOK_LIKE_MONTHS.fullmatch(match.group()):
            # Alone, "may" and "march" are mostly verbs; capitalised inside a sentence they're months.
            inside = match.start() > 0 and text[match.start() - 1] == " " and text[match.start() - 2] not in ".!?"
            if not (
                inside and match.group()[0].isupper() and re.search(r"\b(?:in|since|until|by) $", text[: match.start()])
            ):
                continue
        yield match.start(), match.start() + len(match.group().rstrip())

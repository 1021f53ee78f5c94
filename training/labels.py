"""What a corpus's labels are called in a prompt: plain names, wider names, other words for the same."""

import re

RENAMED = {
    "place": "location",
    "metrics": "metric",
    "field": "field of study",
    "discipline": "academic discipline",
    "group": "group or team",
    "corporation": "corporation",
    "military platform": "military vehicle",
    "application": "software application",
    "library": "software library",
    "library class": "class name",
    "library function": "function name",
    "document reference": "document",
}
"""Labels of the corpora that read poorly on their own -> what is asked instead."""

UNUSED = frozenset(
    {"miscellaneous", "other", "abstract", "object", "substance", "time expression", "time", "quantity", "animal",
     "plant", "licence", "keyboard key"}
)  # fmt: skip
"""Labels that say too little, or are marked by few; times are found by rule instead (patterns.py)."""

WIDER = {
    "politician": "person",
    "writer": "person",
    "scientist": "person",
    "researcher": "person",
    "musical artist": "person",
    "band": "organization",
    "political party": "organization",
    "university": "organization",
    "corporation": "organization",
    "group or team": "organization",
    "country": "location",
    "election": "event",
    "song": "creative work",
    "album": "creative work",
    "book": "creative work",
    "poem": "creative work",
    "conference": "event",
    "enzyme": "protein",
    "theory": "concept",
    "city": "location",
    "river": "location",
    "mountain": "location",
    "street address": "location",
    "planet": "astronomical object",
    "hospital": "organization",
    "sports team": "organization",
    "newspaper": "organization",
    "airline": "organization",
    "bank": "organization",
    "hotel": "organization",
    "restaurant": "organization",
    "electronic device": "product",
    "software": "product",
    "vehicle": "product",
    "drug": "product",
    "ship": "product",
    "film": "creative work",
    "video game": "product",
    "tv series": "creative work",
    "painting": "creative work",
}
"""Fine label -> the wider one it belongs to, where a text is asked for the wider one alone."""

WIDEST = WIDER | {
    "creative work": "product",
    "song": "product",
    "album": "product",
    "book": "product",
    "poem": "product",
    "film": "product",
    "tv series": "product",
    "software application": "product",
    "operating system": "product",
    "military vehicle": "product",
}
"""The same where only the six labels of `DEFAULT` are asked: titles of works, too, are products there."""

DEFAULT = frozenset({"person", "organization", "location", "date", "product", "event"})
"""What a worker asks for where nothing else is configured."""

OTHER_WORDS: dict[str, tuple[str, ...]] = {
    "person": ("people", "name of a person", "human", "person name", "PER", "individual"),
    "organization": ("organisation", "company or institution", "ORG", "organization name", "group of people",
                     "company, agency or institution"),
    "location": ("place", "LOC", "geographical location", "place name", "city, country or other place"),
    "date": ("day or date", "calendar date", "date expression", "DATE", "when it happened", "day, month or year"),
    "product": ("product name", "consumer product", "brand or product", "thing that is sold", "commercial product"),
    "event": ("named event", "happening", "EVENT", "name of an event", "event such as a war, festival or election"),
    "creative work": ("work of art", "title of a work", "movie, song or book", "title of a book, film or song"),
    "corporation": ("company", "business", "firm"),
    "group or team": ("group", "band or sports team", "sports team"),
    "country": ("nation", "state", "country name"),
    "politician": ("statesman", "political figure", "elected official"),
    "political party": ("party", "political organization"),
    "scientist": ("physicist, chemist or biologist", "man or woman of science"),
    "writer": ("author", "novelist or poet"),
    "university": ("college or university", "institution of higher education"),
    "book": ("title of a book", "novel", "publication"),
    "award": ("prize", "honour", "award or prize"),
    "chemical compound": ("chemical", "compound", "molecule"),
    "astronomical object": ("celestial body", "star or planet"),
    "magazine": ("periodical", "magazine name"),
    "academic journal": ("scientific journal", "journal"),
    "software application": ("application", "software", "program", "app"),
    "programming language": ("coding language", "language for programming"),
    "operating system": ("OS", "platform"),
    "military vehicle": ("military platform", "aircraft, ship or tank"),
    "weapon": ("arms", "weapon or munition"),
    "nationality": ("ethnic or national group", "people of a nation"),
    "money": ("amount of money", "price", "sum of money", "MONEY"),
    "time": ("time of day", "clock time"),
    "percentage": ("percent", "share in percent"),
    "email address": ("email", "e-mail"),
    "url": ("web address", "link", "website address"),
    "job title": ("profession", "position", "occupation", "role"),
    "disease": ("illness", "medical condition", "disorder"),
    "drug": ("medication", "medicine", "pharmaceutical"),
    "symptom": ("sign of illness", "complaint of a patient"),
    "dish": ("food", "meal", "food or drink"),
    "drink": ("beverage",),
    "vehicle": ("car", "means of transport", "vehicle model"),
    "animal": ("species", "animal species"),
    "plant": ("flower or tree", "plant species"),
    "sport": ("discipline of sport", "game or sport"),
    "sports team": ("team", "club", "football club"),
    "film": ("movie", "motion picture", "film title"),
    "city": ("town", "town or city", "municipality"),
    "language": ("spoken language", "tongue"),
    "street address": ("address", "postal address"),
    "phone number": ("telephone number", "phone"),
    "order number": ("reference number", "ticket number", "invoice number"),
    "software": ("app", "software product", "program"),
    "electronic device": ("gadget", "device"),
    "building": ("landmark", "monument"),
    "hospital": ("clinic",),
    "airline": ("air carrier",),
    "bank": ("financial institution",),
    "religion": ("faith",),
    "law": ("statute", "act of parliament", "regulation"),
}  # fmt: skip
"""Name -> other words for it and descriptions of it, asked now and then in its place."""

FAR = (
    "protein",
    "enzyme",
    "chemical element",
    "astronomical object",
    "programming language",
    "html tag",
    "algorithm",
    "literary genre",
    "academic journal",
    "military vehicle",
    "data type",
    "keyboard shortcut",
    "chess opening",
    "gene",
    "mineral",
    "mathematical theorem",
)
"""Labels so rare in everyday text that their absence can be taught where nobody looked for them."""

TECHNICAL = ("crossner", "stackoverflow", "gum", "templates")
"""Beginnings of the sources whose texts may hold what `FAR` lists."""

_PRONOUN = re.compile(r"(?:i|we|us|you|he|she|they|them|it|our|ours|their|his|her|my|your|its|who|me)", re.IGNORECASE)
_TITLE = re.compile(
    r"\b(?:president|minister|ambassador|secretary|general|king|queen|prince|sir|dr|mr|mrs|ms|professor|senator"
    r"|commander|director|muslims|christians|men|women|officers?)\b",
    re.IGNORECASE,
)


def plain(label: str) -> str | None:
    """Name a corpus's label for a prompt; None where it isn't asked."""
    return None if label in UNUSED else RENAMED.get(label, label)


def is_doubtful(source: str, label: str, text: str) -> bool:
    """Say whether a marked entity is one that other corpora would mark otherwise.

    GUM and re3d mark whole noun phrases, pronouns among them ("U.S. President Donald Trump", "our"): such a
    span says nothing on how "person", "organization" and "location" should be found.
    """
    if not source.startswith(("gum", "re3d")) or label not in {"person", "organization", "location"}:
        return False
    words = text.split()
    return (
        not (text[0].isupper() or text[0].isdigit())
        or len(words) > 5
        or _PRONOUN.fullmatch(text) is not None
        or (label == "person" and (_TITLE.search(text) is not None or len(words) > 3 or words[-1][0].islower()))
    )

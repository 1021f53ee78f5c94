"""Texts and requests that are awkward in one way each, by the name of what is awkward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from packing import Document, Overlap

SENTENCE: Final = "Maria Santos flew from Lisbon to Nairobi with Dr. Okafor on Monday."
LABELS: Final = ("person", "location", "date")


@dataclass(frozen=True, slots=True)
class Case:
    """A text and what is asked of it."""

    text: str
    labels: Sequence[str] | Mapping[str, str] = LABELS
    threshold: float | Mapping[str, float] = 0.5
    overlap: Overlap = "flat"

    def document(self) -> Document:
        return Document(self.text, self.labels, self.threshold, self.overlap)


CHARACTERS: Final = {
    "Latin letter": "x",
    "digit": "7",
    "full stop": ".",
    "underscore": "_",
    "hyphen": "-",
    "Han": "東",
    "hiragana": "の",
    "katakana": "カ",
    "hangul": "한",
    "Thai": "ก",
    "Arabic": "ع",
    "Hebrew": "ש",
    "Devanagari": "ह",
    "cuneiform": "𒀀",
    "emoji": "🎺",
    "emoji with skin tone": "👍🏽",
    "joined emoji": "👩‍👩‍👧",
    "flag": "🇵🇹",
    "keycap": "1️⃣",
    "combining mark": "\u0301",
    "decomposed letter": "e\u0301",
    "ligature": "ﬁ",
    "capital that grows in lower case": "İ",
    "no-break space": "\u00a0",
    "ideographic space": "\u3000",
    "line separator": "\u2028",
    "zero-width space": "\u200b",
    "zero-width joiner": "\u200d",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "right-to-left mark": "\u200f",
    "right-to-left override": "\u202e",
    "high surrogate": "\ud800",
    "low surrogate": "\udfff",
    "surrogates in the wrong order": "\udc00\ud800",
    "NUL": "\x00",
    "bell": "\x07",
    "escape": "\x1b",
    "delete": "\x7f",
    "next line": "\x85",
    "C1 control": "\x9f",
    "file separator": "\x1c",
    "replacement character": "\ufffd",
    "object replacement character": "\ufffc",
    "private use": "\ue000",
    "private use of the last plane": "\U00100000",
    "variation selector": "\ufe0f",
    "tag character": "\U000e0041",
    "noncharacter": "\uffff",
}

TEXTS: Final = {
    "empty": "",
    "one space": " ",
    "blanks of every kind": "\t\n\v\f\r \u00a0\u2003\u2028\u2029\u3000",
    "punctuation only": ".,;:!?()[]{}\"'…—–-/\\|@#$%^&*+=<>~`",
    "quotation marks only": "«»„“”‚‘’'\"",
    "digits only": "0123456789",
    "numbers": "1,234.56 -7 +3.2e10 1/2 50% 0x1F ½ Ⅷ ²",
    "one word": "Lisbon",
    "one entity and nothing else": "Maria Santos",
    "upper case": SENTENCE.upper(),
    "lower case": SENTENCE.lower(),
    "no spaces": SENTENCE.replace(" ", ""),
    "blanks around": f"{' ' * 500}{SENTENCE}{chr(10) * 500}",
    "HTML": '<p class="by">Maria <b>Santos</b>&nbsp;in&#160;<a href="/lisbon">Lisbon</a><br/></p><!-- Okafor -->',
    "script in HTML": '<script>if (a<b && c>d) { say("Maria Santos"); }</script>',
    "address of a page": "see https://www.example.org:8080/a/b%20c?who=maria&to=lisbon#top or ftp://example.net.",
    "e-mail": "Maria Santos <maria.santos+news@mail.example.org>, cc: okafor@example.net",
    "line ends of every kind": "Maria Santos\nflew\r\nfrom Lisbon\rto\n\n\nNairobi\v.\f",
    "tabs": "name\tcity\nMaria Santos\tLisbon\nOkafor\tNairobi\n",
    "JSON": '{"name": "Maria Santos", "cities": ["Lisbon", "Nairobi"], "n": null, "u": "\\u00e9"}',
    "markdown": "# Maria Santos\n\n* flew to **Lisbon**\n* [Nairobi](https://example.org)\n\n> `code`\n\n| a |\n|---|",
    "code": 'def fly(who="Maria Santos", *cities: str) -> None:\n    """Lisbon."""\n    return x[-1]  # Okafor\n',
    "log line": '2024-03-01T12:00:00.123Z ERROR [main] c.e.Flight - "Maria Santos" -> NullPointerException (0x7ffe)',
    "formula": r"$\alpha_{i}^{2} = \frac{Maria}{Santos} \le \sum_{k=1}^{n} x_k$ ≈ ∞",
    "placeholders": "Dear {{ name }}, %s flew to ${CITY} with <NAME> on [DATE] ___.",
    "hashtags and mentions": "@maria_santos: off to #Lisbon!!! RT @okafor #nairobi2024 :-) ;) <3",
    "camel case and snakes": "MariaSantos maria_santos maria-santos mariaSantos2Lisbon __init__ --flag",
    "hyphens": "a well-known state-of-the-art Lisbon-Nairobi flight--so Maria-Santos -said- ---",
    "underscores": "_Maria_ __Santos__ flew_from_Lisbon ___ a_-_b",
    "apostrophes": "Maria's, Santos', o'clock, rock'n'roll, l’été, 'tis",
    "repeated separators": "Maria,,,,,,Santos......Lisbon------Nairobi______Okafor      Monday!!!!!!",
    "one word many times": "Lisbon " * 200,
    "mixed scripts": "Maria мария Μαρία 玛丽亚 マリア 마리아 मारिया ماريا מריה มาเรีย",
    "scripts in one word": "LisboaЛиссабонリスボンلشبونة",
    "Chinese": "瑪麗亞星期一從里斯本飛往奈洛比。她和奧卡福博士同行，三小時後抵達。",
    "Japanese": "マリアさんは月曜日にリスボンからナイロビへ飛びました。",
    "Thai words": "มาเรียบินจากลิสบอนไปไนโรบีเมื่อวันจันทร์",
    "Arabic with marks": "سافرت مَارِيَا من لشبونة إلى نيروبي يوم الاثنين.",
    "Hebrew with points": "מָרִיָה טסה מליסבון לניירובי ביום שני.",
    "Hindi": "मारिया सोमवार को लिस्बन से नैरोबी गई।",
    "emoji only": "🎺👍🏽👩‍👩‍👧🇵🇹1️⃣❤️",
    "emoji among names": "Maria🎺Santos 👍🏽Lisbon👩‍👩‍👧 🇵🇹Nairobi🇰🇪.",
    "stacked combining marks": "M\u0300\u0301\u0302\u0303a\u0316\u0317\u0318ria S\u0489\u0334antos in L\u0336isbon",
    "decomposed letters": "Ze\u0301 Gonc\u0327alves in Sa\u0303o Paulo, A\u030angstro\u0308m",
    "full width": "Ｍａｒｉａ　Ｓａｎｔｏｓ　ｉｎ　Ｌｉｓｂｏｎ，２０２４",
    "both directions": "Maria \u202bמריה Lisbon\u202c and \u2067لشبونة\u2069 on Monday",
    "colours of a terminal": "\x1b[1;31mMaria Santos\x1b[0m in \x1b[4mLisbon\x1b[0m",
    "controls between letters": "M\x00a\x01r\x02i\x03a San\x7ftos\x08\x08 Lis\x0bbon",
    "special tokens": f"[CLS] Maria <<ENT>> Santos <<SEP>> [SEP] Lisbon [MASK] <s> </s> <unk> [PAD] {SENTENCE} [UNK]",
    "encoded bytes": "TWFyaWEgU2FudG9z" * 20 + "==",
    "word of 1,000 characters": f"Maria {'ab' * 500} Lisbon",
    "word of 5,000 characters": f"Maria {'xyz0' * 1250} Lisbon",
    "500 letters": "a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 . - " * 16 + "a b c d " * 5,
    "500 words of one Han character": "東 京 里 斯 本 " * 100,
    "1,500 Han characters without a space": "瑪麗亞從里斯本飛往" * 167,
    "1,500 words": "The flight to Lisbon left late. " * 250,
}

LABEL_SETS: Final[dict[str, Sequence[str] | Mapping[str, str]]] = {
    "no labels": [],
    "no descriptions": {},
    "one label": ["person"],
    "one letter": ["p"],
    "50 labels": [f"kind {number}" for number in range(50)],
    "more labels than the model reads at once": [f"kind number {number}" for number in range(200)],
    "repeated labels": ["person", "location", "person", "person", "date", "location"],
    "labels out of order": ["z", "person", "a", "location", "0"],
    "labels that differ in case": ["person", "Person", "PERSON"],
    "labels that differ in blanks": ["person", " person", "person ", "per son"],
    "labels that differ in a deleted character": ["person", "per\u200bson", "person\x00"],
    "punctuation in labels": ["person/people", "date (day)", "a;b", "x:y", '"quoted"', "back\\slash", "#1", "%s", "{}"],
    "only punctuation in labels": [".", "-", "_", "?!"],
    "digits in labels": ["1", "2024", "3.14"],
    "line ends in labels": ["a\nperson", "lo\tcation", "da\r\nte"],
    "special tokens in labels": ["<<ENT>>", "person", "[SEP]", "a <<SEP>> b", "[CLS]", "<<ENT>>person<<ENT>>", "[PAD]"],
    "labels of many scripts": ["人物", "الموقع", "дата", "תאריך", "สถานที่", "अवधि", "場所カナ"],
    "emoji in labels": ["🎺", "person 👩‍👩‍👧", "🇵🇹"],
    "decomposed labels": ["cafe\u0301", "café"],
    "surrogates in labels": ["per\ud800son", "\udfff location", "date"],
    "markup in labels": ["<b>person</b>", "&amp;", "https://example.org/person"],
    "a label of many words": ["a person who travels by aeroplane " * 5, "location"],
    "a label that the text holds": [SENTENCE, "Maria Santos"],
    "descriptions": {"who": "the name of a person", "where": "a city or a country", "when": "date"},
    "descriptions that change places": {"person": "location", "location": "person"},
}

THRESHOLDS: Final[dict[str, float | Mapping[str, float]]] = {
    "threshold 0": 0,
    "threshold 1e-10": 1e-10,
    "threshold 0.999": 0.999,
    "threshold 1": 1,
    "a threshold for each label": {"person": 0.1, "location": 0.6, "date": 0.999},
    "a threshold for one label": {"date": 0.05},
    "thresholds for labels not asked": {"animal": 0.0, "plant": 1},
}

CASES: Final[dict[str, Case]] = {
    **{f"{name} alone": Case(text, threshold=0.0, overlap="multi") for name, text in CHARACTERS.items()},
    **{
        f"{name} all over": Case(f"{c}Maria{c}Santos {c} flew{c} from Lis{c}bon to Nairobi.{c}", threshold=0.3)
        for name, c in CHARACTERS.items()
    },
    **{name: Case(text, threshold=0.5 if len(text) < 500 else 0.9) for name, text in TEXTS.items()},
    **{name: Case(SENTENCE, labels, 0.3 if len(labels) < 50 else 0.9, "multi") for name, labels in LABEL_SETS.items()},
    **{
        f"{name}, {overlap}": Case(SENTENCE, threshold=threshold, overlap=overlap)
        for name, threshold in THRESHOLDS.items()
        for overlap in get_args(Overlap)
    },
}
"""All of it as requests; each has an answer from any model, if only an empty one."""

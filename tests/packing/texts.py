"""Texts and requests that the tests share; every text fits one window of an ordinary model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packing import Document, Overlap

ORDINARY = [
    "Angela Merkel met Tim Cook in Berlin on Monday.",
    "x",
    "Tim",
    "...",
    "  leading and trailing blanks  ",
    "The United Nations opened a conference in Geneva; Maria Santos of Brazil gave the first speech. " * 3,
    "line one\nline two\r\n\tand a tab",
    "ACME Corp. (NYSE: ACM) rose 4.5% to $12.30, its best day since March 2024!",
    "mail hi@cafe.example or see https://example.org/a/b?c=d#e",
    "<p>HTML &amp; <b>tags</b></p>",
    "well-known cold_brew a--b _x_ 12-34",
    "Ünïcödé naïve façade Zoë São Paulo Łódź İstanbul ẞ",
    "Привет из Москвы, Αθήνα, القاهرة, תל אביב",
    "東京は日本の首都です。北京是中国的首都。",
    "👍🏽 and 👩‍👩‍👧 and 🇩🇪 flags",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "one two three four " * 10,
    "Order 4711 arrived late. Customer service at ACME answered within two hours! " * 4,
]

LABEL_SETS: list[Sequence[str] | Mapping[str, str]] = [
    ["person"],
    ["person", "location", "organization"],
    ["date", "product", "event", "city", "country", "person", "location"],
    {"place": "a city or a country", "who": "the name of a person"},
    ["İ", "a rather long label of many words", "組織", "x/y"],
]

OVERLAPS: dict[Overlap, dict[str, bool]] = {
    "flat": {"flat_ner": True, "multi_label": False},
    "nested": {"flat_ner": False, "multi_label": False},
    "multi": {"flat_ner": False, "multi_label": True},
}
"""The model library's arguments for each overlap."""


def mixed_documents(texts: list[str]) -> list[Document]:
    """Ask something else of each text: labels, threshold and overlap turn at different speeds."""
    overlaps = list(OVERLAPS)
    thresholds = [0.5, 0.2, 0.8]
    return [
        Document(text, LABEL_SETS[i % 5], thresholds[i % 3], overlaps[(i // 2) % 3]) for i, text in enumerate(texts)
    ]

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

import samples
from samples import LABELS, Marked, Sample, parse, parse_files

SAMPLES = samples.read()


def words(sample: Sample) -> int:
    return len(sample.text.split())


def unmarked(sample: Sample) -> str:
    """Blank out what is marked, so that what is left can be searched at the same offsets."""
    text = list(sample.text)
    for entity in sample.entities:
        text[entity.start : entity.end] = "\0" * (entity.end - entity.start)
    return "".join(text)


def mentions(name: str, text: str) -> Iterator[int]:
    """Find a name where it stands as words of its own, outside addresses, handles and identifiers."""
    return (m.start() for m in re.finditer(rf"(?<![\w@/.#-]){re.escape(name)}(?![\w@/-])", text))


def names(sample: Sample) -> set[str]:
    """Collect what is marked, and the parts of people's names: a surname alone is the same person."""
    surfaces = {sample.text[e.start : e.end] for e in sample.entities}
    people = {sample.text[e.start : e.end] for e in sample.entities if e.label == "person"}
    parts = {part for name in people for part in re.findall(r"\w+", name)}
    return surfaces | {part for part in parts if len(part) > 2 and part[0].isupper()}


@pytest.mark.parametrize(
    ("marked", "text", "entities"),
    [
        ("", "", ()),
        ("no entity, a [single] bracket | bar", "no entity, a [single] bracket | bar", ()),
        ("[[Berlin|location]]", "Berlin", (Marked(0, 6, "location"),)),
        (
            "[[Tim Cook|person]] met [[Angela Merkel|person]] in [[Berlin|location]].",
            "Tim Cook met Angela Merkel in Berlin.",
            (Marked(0, 8, "person"), Marked(13, 26, "person"), Marked(30, 36, "location")),
        ),
        ("[[Oslo|location]][[Bergen|location]]", "OsloBergen", (Marked(0, 4, "location"), Marked(4, 10, "location"))),
        ("🎉 [[Zoë|person]]\n", "🎉 Zoë\n", (Marked(2, 5, "person"),)),
        ("e\u0301 [[Ana|person]]", "e\u0301 Ana", (Marked(3, 6, "person"),)),
    ],
)
def test_marks_become_offsets_in_code_points(marked: str, text: str, entities: tuple[Marked, ...]) -> None:
    assert parse(marked) == (text, entities)


@pytest.mark.parametrize(
    ("marked", "fault"),
    [
        ("in [[Berlin|location", r"'\[\[' at 3"),
        ("in Berlin|location]]", r"'\]\]' at 18"),
        ("in [[Berlin]]", r"'\[\[' at 3"),
        ("in [[|location]]", r"'\[\[' at 3"),
        ("[[University of [[Oslo|location]]|organization]]", r"'\[\[' at 0"),
        ("[[a|b|person]]", r"'\[\[' at 0"),
        ("x [[Berlin|city]]", "unknown label 'city' in the mark at 2; use one of date, event"),
        ("x [[Berlin|]]", "unknown label '' in the mark at 2"),
        ("x [[Berlin|Location]]", "unknown label 'Location'"),
        ("x [[Berlin |location]]", "the mark at 2 has white space"),
        ("x [[\u00a0Berlin|location]]", "the mark at 2 has white space"),
    ],
)
def test_a_malformed_mark_is_refused_with_its_place(marked: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse(marked)


PLAIN = st.text().filter(lambda text: not set(text) & set("[]|"))
SURFACE = PLAIN.filter(lambda text: text != "" and text == text.strip())


@given(st.lists(st.tuples(PLAIN, SURFACE, st.sampled_from(sorted(LABELS)))), PLAIN)
def test_any_marked_text_comes_back_with_its_entities(marks: list[tuple[str, str, str]], rest: str) -> None:
    marked = "".join(f"{before}[[{surface}|{label}]]" for before, surface, label in marks) + rest

    text, entities = parse(marked)

    assert text == "".join(before + surface for before, surface, _ in marks) + rest
    assert [(text[e.start : e.end], e.label) for e in entities] == [(surface, label) for _, surface, label in marks]


def test_a_text_keeps_its_blank_lines_but_for_the_last_line_feed() -> None:
    content = "=== a-1\n\n one\r\n\n=== a-2\n=== a-3\n[[Bo|person]]"

    assert parse_files({"notes.txt": content}) == [
        Sample("a-1", "notes", "\n one\r\n", ()),
        Sample("a-2", "notes", "", ()),
        Sample("a-3", "notes", "Bo", (Marked(0, 2, "person"),)),
    ]


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"a.txt": "hello\n=== a-1\nx"}, "a.txt: the file must begin with a line '=== <id>'"),
        ({"a.txt": "=== A 1\nx"}, "a.txt, 'A 1': an id is"),
        ({"a.txt": "=== \nx"}, "a.txt, '': an id is"),
        ({"a.txt": "=== x-1\nx\n=== x-1\ny"}, "a.txt, 'x-1': the id is taken by a text in a.txt"),
        ({"a.txt": "=== x-1\nx", "b.txt": "=== x-1\ny"}, "b.txt, 'x-1': the id is taken by a text in a.txt"),
        ({"a.txt": "=== x-1\nfine\n=== x-2\n[[Oslo|town]]"}, "a.txt, 'x-2': unknown label 'town'"),
    ],
)
def test_a_malformed_file_is_refused_with_file_and_id(files: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        parse_files(files)


def test_there_are_at_least_150_texts_of_many_kinds() -> None:
    assert len(SAMPLES) >= 150
    assert {"posts", "tickets", "news", "mails", "notes", "minutes", "reports", "chat"} <= {s.kind for s in SAMPLES}
    assert len({s.id for s in SAMPLES}) == len(SAMPLES)


def test_lengths_run_from_one_word_to_four_thousand() -> None:
    lengths = sorted(words(s) for s in SAMPLES)

    assert lengths[0] == 1
    assert lengths[-1] >= 3_900
    assert sum(15 <= length <= 120 for length in lengths) > len(lengths) / 2
    assert sum(200 <= length <= 600 for length in lengths) >= 12
    assert sum(length > 384 for length in lengths) >= 5  # the words a GLiNER model reads at once
    assert sum(lengths) <= 20_000  # the demo streams them all


def test_every_label_is_used_and_some_texts_have_no_entity() -> None:
    assert {e.label for s in SAMPLES for e in s.entities} == LABELS
    assert sum(not s.entities for s in SAMPLES) >= 10


def test_entities_are_trimmed_ordered_and_apart() -> None:
    title = re.compile(r"(Dr|Mr|Mrs|Ms|Prof|Professor|Captain|Father|Councillor|Uncle|Aunt)\b")
    for sample in SAMPLES:
        for entity in sample.entities:
            surface = sample.text[entity.start : entity.end]
            assert surface, sample.id
            assert surface == surface.strip(), (sample.id, surface)
            assert not re.search(r"(['’]s|[,;:!?])$", surface), (sample.id, surface)
            assert not title.match(surface), (sample.id, surface)
        assert all(left.end <= right.start for left, right in pairwise(sample.entities)), sample.id


def test_a_name_marked_once_is_marked_everywhere_in_its_text() -> None:
    left_out = [
        (sample.id, name, at) for sample in SAMPLES for name in names(sample) for at in mentions(name, unmarked(sample))
    ]

    assert left_out == []


def test_weekdays_months_and_years_are_never_left_unmarked() -> None:
    date = re.compile(
        r"\b(?<![=/-])("  # not in an address or an identifier
        r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
        r"|January|February|March|April|June|July|August|September|October|November|December"  # May may be a verb
        r"|19\d\d|20[0-3]\d"
        r"|[Yy]esterday|[Tt]oday|[Tt]omorrow|([Ll]ast|[Nn]ext|[Tt]his) (week|month|year|spring|summer|autumn|winter)"
        r")\b"
    )

    assert [(sample.id, m[0]) for sample in SAMPLES for m in date.finditer(unmarked(sample))] == []


def test_a_surface_has_one_label_in_all_texts_unless_it_plays_on_two() -> None:
    plays = {"odd-ambiguous"}
    labels: dict[str, set[str]] = {}
    for sample in SAMPLES:
        if sample.id not in plays:
            for e in sample.entities:
                labels.setdefault(sample.text[e.start : e.end], set()).add(e.label)

    assert {surface: found for surface, found in labels.items() if len(found) > 1} == {}


def test_texts_are_read_from_a_package_that_is_not_a_folder(tmp_path: Path) -> None:
    archive = tmp_path / "installed.zip"
    source = Path(samples.__file__).parent
    with ZipFile(archive, "w") as package:
        for path in [source / "__init__.py", *source.glob("*.txt")]:
            package.write(path, f"samples/{path.name}")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import samples;"
        "print(samples.__file__.startswith(sys.argv[1]), len(samples.read()))"
    )

    result = subprocess.run(
        [sys.executable, "-c", script, str(archive)], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == ["True", str(len(SAMPLES))]

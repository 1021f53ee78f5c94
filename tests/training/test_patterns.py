import pytest

from training.patterns import find


def found(label: str, text: str) -> list[str]:
    return [text[start:end] for start, end in find(label, text)]


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("It opened on 3 March 2021.", ["3 March 2021"]),
        ("On Monday, March 5th, 2018 we met", ["Monday, March 5th, 2018"]),
        ("closed until 2024-02-29, then open", ["2024-02-29"]),
        ("due 05/03/2021 or 5.3.2021", ["05/03/2021", "5.3.2021"]),
        ("last Friday, next week and yesterday", ["last Friday", "next week", "yesterday"]),
        ("in the 1990s and in the 19th century", ["1990s", "19th century"]),
        ("from 12-14 January; Tuesdays; two days ago; Easter", ["12-14 January", "Tuesdays", "two days ago", "Easter"]),
        ("sales in Q3 2024 and summer 2019", ["Q3 2024", "summer 2019"]),
        ("seen on Dec. 14th, in Sept 2010", ["Dec. 14th", "Sept 2010"]),
        ("I was there in May and left.", ["May"]),
    ],
)
def test_a_date_is_found_whole(text: str, dates: list[str]) -> None:
    assert found("date", text) == dates


@pytest.mark.parametrize(
    "text",
    [
        "May I march on?",
        "version 1.4.13 of 10.2.1",
        "costs $2000 or 2000 people",
        "order 82014 and part 1999-B2x",
        "It may fall.",
        "the sun sat low",
    ],
)
def test_what_is_no_date_is_left_alone(text: str) -> None:
    assert found("date", text) == []


def test_the_other_rules_find_what_they_name() -> None:
    assert found("money", "$3.5 million, 20 euros and £8") == ["$3.5 million", "20 euros", "£8"]
    assert found("percentage", "5% of 12.5 percent") == ["5%", "12.5 percent"]
    assert found("time", "at 14:30, 5pm or noon") == ["14:30", "5pm", "noon"]
    assert found("email address", "write to a.b@c.example now") == ["a.b@c.example"]
    assert found("url", "see https://a.example/b, please") == ["https://a.example/b"]

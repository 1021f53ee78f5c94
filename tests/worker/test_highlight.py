from schemas.events import Entity
from worker.highlight import highlighted


def entity(start: int, end: int, label: str = "person") -> Entity:
    return Entity(start=start, end=end, text="x", label=label, score=0.9)


def test_an_entity_stands_in_its_text_with_its_label() -> None:
    assert highlighted("Ann met Bob.", [entity(0, 3), entity(8, 11)]).plain == "[Ann|person] met [Bob|person]."


def test_an_entity_inside_another_is_left_out() -> None:
    assert highlighted("New York", [entity(0, 8, "city"), entity(4, 8)]).plain == "[New York|city]"


def test_what_would_act_on_a_terminal_is_blanked() -> None:
    assert highlighted("a\x1b[31m\nb\ud800", []).plain == "a [31m b "


def test_a_line_is_cut_to_the_width_of_the_screen() -> None:
    assert len(highlighted("word " * 100, [], width=40)) == 40


def test_a_label_is_blanked_too() -> None:
    assert highlighted("Ann", [entity(0, 3, "a\x1b[1m\ud800")]).plain == "[Ann|a [1m ]"

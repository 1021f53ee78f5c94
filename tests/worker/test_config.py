from pathlib import Path

import pytest

from worker.config import DEFAULT_LABELS, ConfigError, load, unknown_variables


def write(folder: Path, text: str) -> Path:
    path = folder / "glistream.toml"
    path.write_text(text)
    return path


def test_the_defaults_are_the_wire_contract() -> None:
    settings = load()
    assert settings.labels == DEFAULT_LABELS == ("person", "organization", "location", "date", "product", "event")
    assert (settings.input_topic, settings.output_topic, settings.dead_letter_topic) == (
        "texts",
        "entities",
        "texts-dlq",
    )
    assert settings.delivery == "exactly_once"


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "batch_tokens = 100\nidle_ms = 100\nbuffer_records = 100\n")
    monkeypatch.setenv("GLISTREAM_BATCH_TOKENS", "200")
    monkeypatch.setenv("GLISTREAM_IDLE_MS", "200")
    settings = load(file, {"batch_tokens": "300"})
    assert (settings.batch_tokens, settings.idle_ms, settings.buffer_records) == (300, 200, 100)
    assert settings.max_latency_ms == 500


def test_a_file_may_group_its_settings(tmp_path: Path) -> None:
    text = 'input.format = "text"\n[batch]\ntokens = 64\n[kafka.properties]\n"security.protocol" = "SSL"\n'
    settings = load(write(tmp_path, text))
    assert (settings.input_format, settings.batch_tokens) == ("text", 64)
    assert settings.kafka_properties == {"security.protocol": "SSL"}


@pytest.mark.parametrize("labels", ["person, city ,person", '["person", "city"]'])
def test_labels_are_comma_separated_or_json_and_count_once(labels: str) -> None:
    assert load(flags={"labels": labels}).labels == ("person", "city")


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"batch_tokens": "1"}, "batch_tokens='1': input should be greater than or equal to 16"),
        ({"max_latency_ms": "soon"}, "max_latency_ms='soon': input should be a valid integer"),
        ({"delivery": "at_most_once"}, "delivery='at_most_once': input should be 'exactly_once' or 'at_least_once'"),
        ({"batch_token": 5}, "batch_token: there is no such setting; did you mean batch_tokens?"),
        ({"labels": '[" "]'}, "at least one label is needed, and none may be blank"),
        ({"labels": ","}, "at least one label is needed"),
        ({"labels": "[1"}, "labels='[1'"),
        ({"labels": "[1]"}, "labels.0=1: input should be a valid string"),
        ({"output_topic": "texts"}, "must differ"),
        ({"kafka_properties": {"enable.auto.commit": "true"}}, "enable.auto.commit can't be overridden"),
        ({"consumer_properties": {"isolation.level": "read_uncommitted"}}, "isolation.level can't be overridden"),
        ({"consumer_properties": {"max.poll.interval.ms": "5000"}}, "drain_ms=20000: must be less than"),
        ({"kafka_properties": {"max.poll.interval.ms": 9000}}, "drain_ms=20000: must be less than"),
        ({"transaction_timeout_ms": 300_000}, "transaction_timeout_ms=300000: must be less than max.poll.interval.ms"),
        ({"consumer_properties": {"auto.commit.enable": "true"}}, "auto.commit.enable can't be overridden"),
    ],
)
def test_a_wrong_setting_is_one_line_with_its_name_and_what_is_allowed(flags: dict[str, object], line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(flags=flags)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"])
def test_what_the_consumer_protocol_leaves_to_the_broker_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load(flags={"group_protocol": "consumer", "consumer_properties": {name: "1"}})


def test_the_classic_protocol_takes_a_session_timeout() -> None:
    assert load(flags={"consumer_properties": {"session.timeout.ms": "6000"}}).consumer_properties


def test_a_secret_is_not_in_the_error() -> None:
    with pytest.raises(ConfigError) as raised:
        load(flags={"kafka_properties": {"sasl.password": ["hunter2"]}})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("text", ["batch_tokens = ", "\xff"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "glistream.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"glistream\.toml: not TOML"):
        load(tmp_path / "glistream.toml")


def test_a_file_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "absent.toml")


def test_a_misspelt_variable_is_pointed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLISTREAM_BATCH_TOKEN", "5")
    monkeypatch.setenv("GLISTREAM_PORT_8080_TCP", "tcp://10.0.0.1")
    assert unknown_variables() == ["GLISTREAM_BATCH_TOKEN is no setting; did you mean GLISTREAM_BATCH_TOKENS?"]

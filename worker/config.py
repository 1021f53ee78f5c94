"""The settings: one class, each with its unit in the name, one sentence and a checked range.

A setting comes from, the later over the earlier: its default, a TOML file, the environment (`GLISTREAM_` and the
name in capitals), a flag of the command line (`--` and the name with dashes).
"""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from packing.prompts import CHUNK_LABELS, TEXT_SHARE
from packing.windows import WINDOW_WORDS

DEFAULT_LABELS = ("person", "organization", "location", "date", "product", "event")
DEFAULT_MODEL = "demo"
ENV_PREFIX = "GLISTREAM_"
DEFAULT_POLL_INTERVAL_MS = 300_000
"""librdkafka's own default of `max.poll.interval.ms`."""

OWNED_PROPERTIES = {
    "bootstrap.servers": "set bootstrap_servers",
    "metadata.broker.list": "set bootstrap_servers",
    "group.id": "set group_id",
    "group.instance.id": "set instance_id",
    "group.protocol": "set group_protocol",
    "partition.assignment.strategy": "partitions are assigned cooperatively",
    "isolation.level": "the committed offset that a resumed worker relies on is stable only when read committed",
    "enable.auto.commit": "offsets are committed with the events they cover, never by a timer",
    "enable.auto.offset.store": "offsets are committed with the events they cover, never by a timer",
    "auto.commit.enable": "offsets are committed with the events they cover, never by a timer",
    "enable.partition.eof": "the end of a partition tells whether it is behind",
    "auto.offset.reset": "set start and out_of_range",
    "transactional.id": "set transactional_id_prefix and instance_id",
    "transaction.timeout.ms": "set transaction_timeout_ms",
    "enable.idempotence": "the producer is idempotent in both delivery modes",
    "request.required.acks": "an event counts as published once all in-sync replicas have it",
    "acks": "an event counts as published once all in-sync replicas have it",
    "queued.max.messages.kbytes": "set prefetch_bytes",
    "message.max.bytes": "it follows the limits of the topics",
    "partitioner": "keys are placed as Java clients place them, so that joins hold",
}
CLASSIC_ONLY_PROPERTIES = ("session.timeout.ms", "heartbeat.interval.ms")

LogLevel = Literal["debug", "info", "warning", "error"]
Names = Annotated[tuple[str, ...], NoDecode]
Properties = dict[str, str | int | float | bool]


class ConfigError(ValueError):
    """The settings can't be used; the message is one line: the setting, its value, what is allowed."""


class Settings(BaseSettings):
    """All settings of the worker."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, extra="forbid", frozen=True, protected_namespaces=(), env_ignore_empty=True
    )

    bootstrap_servers: str = Field("localhost:9092", min_length=1, description="Kafka brokers, `HOST:PORT,...`.")
    group_id: str = Field("glistream", min_length=1, description="Consumer group.")
    group_protocol: Literal["classic", "consumer"] = Field(
        "classic", description="Group protocol; `consumer` (KIP-848) needs brokers of 4.0 or later."
    )
    instance_id: str | None = Field(
        None,
        min_length=1,
        description="Name of this worker that outlives it (a pod's): static membership and a stable "
        "`transactional.id`. Two live workers must not share one.",
    )
    kafka_properties: Properties = Field({}, description="librdkafka properties of every client (TLS, SASL, ...).")
    consumer_properties: Properties = Field({}, description="librdkafka properties of the consumer alone.")
    producer_properties: Properties = Field({}, description="librdkafka properties of the producer alone.")

    input_topic: str = Field("texts", min_length=1, description="Topic of the text events.")
    input_format: Literal["json", "text"] = Field(
        "json", description="What a record's value is: a JSON text event, or the raw UTF-8 text."
    )
    output_topic: str = Field("entities", min_length=1, description="Topic of the entity events.")
    dead_letter_topic: str = Field("texts-dlq", min_length=1, description="Topic of the records without an answer.")
    create_topics: bool = Field(False, description="Create the topics that do not exist, instead of stopping.")
    start: Literal["earliest", "latest"] = Field(
        "earliest", description="Where a group without any commit starts to read."
    )
    out_of_range: Literal["fail", "earliest", "latest"] = Field(
        "fail",
        description="What to do when the committed offset no longer exists: stop, or skip with a loud line.",
    )

    model: str = Field(
        DEFAULT_MODEL, min_length=1, description="`demo` (bundled), a GLiNER model's hub name, or a folder."
    )
    revision: str | None = Field(None, description="Revision of the model on the hub.")
    device: str = Field("auto", description="`auto`, `cpu`, `cuda`, `cuda:N`.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field("auto", description="Precision of the forward.")
    threads: int = Field(
        0, ge=0, le=4096, description="Threads of a forward on the CPU; 0: one per core, shared out among `processes`."
    )
    processes: int = Field(
        1, ge=1, le=1024, description="Workers that `run` starts as processes of their own, each with the whole model."
    )

    labels: Names = Field(
        DEFAULT_LABELS, description="Labels asked where a record names none; comma-separated or a JSON list."
    )
    threshold: float = Field(0.5, ge=0, le=1, description="Least score of an entity where a record names none.")
    overlap: Literal["flat", "nested", "multi"] = Field(
        "flat",
        description="Whether entities may nest, or one span carry several labels, where a record doesn't say.",
    )
    offset_unit: Literal["code_points", "utf16", "bytes"] = Field(
        "code_points", description="What `start` and `end` count."
    )
    max_record_bytes: int = Field(
        10_000_000,
        ge=1,
        le=1_000_000_000,
        description="Size of a record's value above which it is a dead letter.",
    )
    max_labels: int = Field(1000, ge=1, le=100_000, description="Labels of a record above which it is a dead letter.")
    max_meta_depth: int = Field(
        63, ge=1, le=63, description="Nesting of `meta` above which a record is a dead letter; a scalar is 0 deep."
    )
    max_windows: int = Field(
        20_000, ge=1, le=1_000_000, description="Windows of a text above which its record is a dead letter."
    )

    window_words: int = Field(
        WINDOW_WORDS,
        ge=16,
        le=100_000,
        description="Most words of a window of a text that the model can't read at once, which itself is a limit too.",
    )
    window_overlap: int | None = Field(
        None,
        ge=0,
        le=10_000,
        description="Words that neighbouring windows share, and 12 more where the cut is inside a sentence, at most "
        "half a window; unset: the model's longest entity. With less, an entity across a cut may be lost.",
    )
    text_share: float = Field(
        TEXT_SHARE,
        ge=0.1,
        le=0.9,
        description="Part of the model's window that labels leave to a text which doesn't fit beside them; "
        "of more labels, a chunk at a time is asked.",
    )
    chunk_labels: int = Field(CHUNK_LABELS, ge=1, le=100_000, description="Most labels of such a chunk.")

    batch_tokens: int = Field(2048, ge=16, le=1_048_576, description="Token budget of a micro-batch.")
    max_latency_ms: int = Field(
        500,
        ge=0,
        le=60_000,
        description="Time from a text's arrival to the end of its forward that batching aims at.",
    )
    idle_ms: int = Field(
        10, ge=1, le=10_000, description="Silence of the source after which a micro-batch closes early."
    )
    buffer_records: int = Field(
        2000, ge=1, le=1_000_000, description="Records in hand, from taken to committed, at which partitions pause."
    )
    buffer_bytes: int = Field(32_000_000, ge=1, le=10_000_000_000, description="Bytes of records in hand, likewise.")
    prefetch_bytes: int = Field(
        16_000_000,
        ge=1_000,
        le=2_000_000_000,
        description="Bytes that the Kafka client may fetch ahead; the last fetch of each partition may go beyond.",
    )

    delivery: Literal["exactly_once", "at_least_once"] = Field(
        "exactly_once",
        description="One transaction per micro-batch, or an idempotent producer and then a commit.",
    )
    transactional_id_prefix: str | None = Field(
        None, min_length=1, description="Prefix of the `transactional.id`; the group's name where unset."
    )
    transaction_timeout_ms: int = Field(
        15_000,
        ge=1_000,
        le=900_000,
        description="Time after which the broker aborts a transaction left open.",
    )
    drain_ms: int = Field(
        20_000, ge=0, le=600_000, description="Time to finish what is in flight on revocation or SIGTERM."
    )
    trials: int = Field(
        3,
        ge=1,
        le=100,
        description="Deaths of a process with one suspect record alone in it that make it a dead letter.",
    )
    trial_process: bool = Field(
        True,
        description="Run suspect records in a child process with a model of its own, after a second unclean end.",
    )
    trial_timeout_ms: int = Field(
        300_000,
        ge=1_000,
        le=86_400_000,
        description="Time after which a child process that doesn't answer is killed; longer than any text may take.",
    )
    breaker_share: float = Field(
        0,
        ge=0,
        le=1,
        description="Pause when dead letters of one reason are this share of a minute's answers; 0: never.",
    )
    breaker_pause_ms: int = Field(
        60_000, ge=100, le=86_400_000, description="How long that pause lasts before a little is tried again."
    )
    fail_fast: bool = Field(False, description="Exit with code 3 when the broker can't be reached at the start.")

    stall_ms: int = Field(
        300_000,
        ge=1_000,
        le=86_400_000,
        description="Time without a commit after which a partition that has records left makes the worker not ready.",
    )
    status_port: int = Field(
        0,
        ge=0,
        le=65_535,
        description="Port of `/health`, `/ready` and `/metrics`; of several `processes` the first's, "
        "the others follow; 0: none.",
    )

    log_format: Literal["auto", "console", "json"] = Field(
        "auto", description="Log lines for a person or for a machine; `auto`: console on a terminal."
    )
    log_level: LogLevel = Field("info", description="Least level logged.")

    @property
    def poll_interval_ms(self) -> int:
        """The consumer's `max.poll.interval.ms`."""
        return int(self._poll_interval)

    @property
    def _poll_interval(self) -> str | int | float | bool:
        properties = {"max.poll.interval.ms": DEFAULT_POLL_INTERVAL_MS} | self.kafka_properties
        return (properties | self.consumer_properties)["max.poll.interval.ms"]

    @field_validator("labels", mode="before")
    @classmethod
    def _split_labels(cls, value: object) -> object:
        if isinstance(value, str) and not value.lstrip().startswith("["):
            return tuple(label.strip() for label in value.split(",") if label.strip())
        if isinstance(value, str):
            return tuple(json.loads(value))
        return value

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        if not labels or any(not label.strip() for label in labels):
            raise ValueError("at least one label is needed, and none may be blank")
        return tuple(dict.fromkeys(labels))

    @field_validator("kafka_properties", "consumer_properties", "producer_properties")
    @classmethod
    def _refuse_owned(cls, properties: Properties) -> Properties:
        for name in properties:
            if name in OWNED_PROPERTIES:
                raise ValueError(f"{name} can't be overridden: {OWNED_PROPERTIES[name]}")
        return properties

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        topics = (self.input_topic, self.output_topic, self.dead_letter_topic)
        if len(set(topics)) < len(topics):
            raise ValueError(f"input_topic, output_topic and dead_letter_topic must differ, got {', '.join(topics)}")
        if self.group_protocol == "consumer":
            for name in CLASSIC_ONLY_PROPERTIES:
                if name in self.kafka_properties or name in self.consumer_properties:
                    raise ValueError(f"{name} is the broker's to set under group_protocol=consumer: leave it out")
        poll_interval = self._poll_interval
        for name in ("drain_ms", "transaction_timeout_ms"):
            if str(poll_interval).isdigit() and getattr(self, name) >= int(poll_interval):
                raise ValueError(
                    f"{name}={getattr(self, name)}: must be less than max.poll.interval.ms ({poll_interval}), "
                    "since polling waits for it"
                )
        return self


def load(file: Path | None = None, flags: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of a file, the environment and the flags given.

    Args:
        file: TOML; `batch_tokens = 512`, or grouped: `[batch]` and `tokens = 512`.
        flags: settings that were given on the command line.

    Raises:
        ConfigError: a setting is unknown or out of its range, or the file can't be read.
    """
    from_file = _read(file) if file else {}

    class Sources(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (the framework's signature)
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, from_file)

    try:
        return Sources(**(flags or {}))
    except ValidationError as error:
        raise ConfigError(_one_line(error)) from None
    except SettingsError as error:
        raise ConfigError(f"{error}: {error.__cause__}") from None


def unknown_variables() -> list[str]:
    """Return a line for each `GLISTREAM_*` variable that looks like a misspelt setting."""
    known = [ENV_PREFIX + name.upper() for name in Settings.model_fields]
    unknown = sorted(name for name in os.environ if name.startswith(ENV_PREFIX) and name not in known)
    close = {name: difflib.get_close_matches(name, known, n=1, cutoff=0.85) for name in unknown}
    return [f"{name} is no setting; did you mean {meant[0]}?" for name, meant in close.items() if meant]


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            tables = tomllib.load(stream)
    except OSError as error:
        raise ConfigError(f"config file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {file}: not TOML: {error}") from None
    return _flatten(tables, "")


def _flatten(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict) and name not in Settings.model_fields:
            flat |= _flatten(value, name + "_")
        else:
            flat[name] = value
    return flat


def _one_line(error: ValidationError) -> str:
    return "; ".join(_describe(fault) for fault in error.errors())


def _describe(fault: ErrorDetails) -> str:
    name = ".".join(str(part) for part in fault["loc"])
    reason = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        close = difflib.get_close_matches(name, Settings.model_fields, n=1)
        return f"{name}: there is no such setting" + (f"; did you mean {close[0]}?" if close else "")
    if not name:
        return reason
    if "properties" in name:
        return f"{name}: {reason}"  # the value may hold a secret
    return f"{name}={fault['input']!r}: {reason[0].lower()}{reason[1:]}"

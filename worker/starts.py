"""Where a partition is read from: its commit, a first start, or behind offsets that are gone."""

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from worker.checkpoint import Checkpoint
from worker.commits import Commit, read_commits, write_commits
from worker.config import Settings
from worker.isolation import Suspicion, suspicion_of
from worker.metrics import SKIPPED_OFFSETS, UNCLEAN_ENDS
from worker.records import Partition

log = structlog.get_logger()

Value = TypeVar("Value")

TIMEOUT_S = 5.0
RETRY_PAUSE_S = 0.2
MARGIN_S = 45.0
"""How much longer than a dead worker's transaction a start may take: until then its offsets aren't stable."""
TOGETHER_S = 60.0
"""First starts this close to one another are one: of workers that were started together."""


class OffsetsGoneError(Exception):
    """A committed offset is not in the topic any more, and the settings say not to skip what is gone."""


class Start(NamedTuple):
    """Where to read a partition from, and what is held against its next records."""

    offset: int
    suspicion: Suspicion | None


def find_starts(
    client: Consumer, partitions: Collection[Partition], run: str, settings: Settings
) -> dict[Partition, Start]:
    """Return where to read partitions that were just assigned; a first start is committed before it is returned.

    Whoever gets the partition next starts at the same place then, even if nothing was read.

    Raises:
        KafkaException: the broker didn't say, for longer than a dead worker's transaction may last.
    """
    if not partitions:
        return {}
    commits = _persist(lambda: read_commits(client, partitions), settings)
    starts = {
        partition: Start(commit.offset, _suspicion(client, partition, commit, run, settings))
        for partition, commit in commits.items()
        if commit
    }
    if fresh := [partition for partition in partitions if partition not in starts]:
        policy = _first_start(client, settings)
        firsts = {partition: _end_of(client, partition, policy, settings) for partition in fresh}
        mark = Checkpoint(run, 0, clean=True, first_start=round(time.time() * 1000))
        _persist(lambda: write_commits(client, firsts, dict.fromkeys(firsts, mark)), settings)
        log.info("first_start", policy=policy, offsets={str(partition): at for partition, at in firsts.items()})
        starts |= {partition: Start(at, None) for partition, at in firsts.items()}
    return starts


def skip_gone(client: Consumer, partition: Partition, base: int, run: str, settings: Settings) -> int:
    """Return where to go on with a partition whose committed offset `base` is gone, and commit that.

    Raises:
        OffsetsGoneError: `out_of_range` is `fail`.
        KafkaException: the broker didn't say.
    """
    low, high = client.get_watermark_offsets(TopicPartition(*partition), timeout=TIMEOUT_S)
    if settings.out_of_range == "fail":
        raise OffsetsGoneError(
            f"{partition}: the committed offset {base} is not in the topic any more ({low} to {high} are); "
            "set out_of_range to earliest or latest to skip what is gone"
        )
    target = low if settings.out_of_range == "earliest" else high
    SKIPPED_OFFSETS.labels(*partition).inc(max(0, target - base))
    log.error("offsets_skipped", partition=str(partition), committed=base, resumed_at=target, low=low, high=high)
    stamp = Checkpoint(run, 0, clean=True)
    _persist(lambda: write_commits(client, {partition: target}, {partition: stamp}), settings)
    return int(target)


def _suspicion(
    client: Consumer, partition: Partition, commit: Commit, run: str, settings: Settings
) -> Suspicion | None:
    if commit.checkpoint is None:
        return None
    # This process has only lost the partition for a while: it is alive, whatever it had in hand.
    survived = commit.checkpoint.run == run
    checkpoint = replace(commit.checkpoint, clean=True) if survived else commit.checkpoint
    if checkpoint.clean and not checkpoint.deaths:
        return None
    end = _end_of(client, partition, "latest", settings)
    suspicion = suspicion_of(checkpoint, commit.offset, end)
    if not checkpoint.clean:
        UNCLEAN_ENDS.inc()
        log.info(
            "unclean_end_found",
            partition=str(partition),
            offset=commit.offset,
            run=commit.checkpoint.run,
            suspect_until=suspicion.until if suspicion else None,
            deaths=suspicion.deaths if suspicion else 0,
            trials=suspicion.trials if suspicion else 0,
        )
    return suspicion


def _first_start(client: Consumer, settings: Settings) -> str:
    """Return the policy for partitions without a commit; one that is new beside others starts at the earliest."""
    topic = settings.input_topic
    if settings.start == "earliest":
        return "earliest"
    known = _persist(lambda: client.list_topics(topic, timeout=TIMEOUT_S), settings).topics[topic].partitions
    commits = _persist(lambda: read_commits(client, [Partition(topic, number) for number in known]), settings)
    # Workers that start together must not take one another's marks for those of a group that has been there.
    recent = round((time.time() - TOGETHER_S) * 1000)
    stamps = [commit.checkpoint for commit in commits.values() if commit]
    together = all(stamp and stamp.first_start and stamp.first_start >= recent for stamp in stamps)
    return "latest" if together else "earliest"


def _end_of(client: Consumer, partition: Partition, policy: str, settings: Settings) -> int:
    asked = TopicPartition(*partition)
    low, high = _persist(lambda: client.get_watermark_offsets(asked, timeout=TIMEOUT_S), settings)
    return int(low if policy == "earliest" else high)


def _persist(call: Callable[[], Value], settings: Settings) -> Value:
    """Return what a call to the broker answers, trying for as long as a dead worker's transaction may last."""
    deadline = time.monotonic() + settings.transaction_timeout_ms / 1000 + MARGIN_S
    while True:
        try:
            return call()
        except KafkaException as error:
            if error.args[0].fatal() or time.monotonic() >= deadline:
                raise
            log.warning("broker_call_failed", error=error.args[0].name(), reason=error.args[0].str())
            time.sleep(RETRY_PAUSE_S)

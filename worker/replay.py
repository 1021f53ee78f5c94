"""Dead letters sent back to the topic that they came from, each exactly once.

A plain replay goes on where the last one to the same topic ended: a batch of records and the place behind its letters
are one transaction, so that it may be killed anywhere and run again. A replay of picked letters keeps no place, since
what it passes over is not done; it is one transaction altogether, so that all were sent or none.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import structlog
from confluent_kafka import OFFSET_INVALID, KafkaException, TopicPartition
from rich.console import Console

from worker.config import ConfigError, Settings
from worker.letter_reader import Span, new_letter_reader, spans
from worker.publisher import PublishError
from worker.records import OutgoingMessage
from worker.replay_plan import Order, Replay, Step
from worker.topics import find, require
from worker.transaction import RefusedByBrokerError, Transactions

log = structlog.get_logger()

METADATA = '{"v":1,"tool":"glistream dlq replay"}'
BATCH_RECORDS = 500
BATCH_BYTES = 8_000_000
NAME = "dlq-replay"
"""Ending of the replay's group and of its `transactional.id`."""


def replay(
    settings: Settings,
    order: Order,
    *,
    console: Console,
    confirm: Callable[[int, str], None],
    stop: threading.Event,
) -> Counter[str]:
    """Send dead letters back, and print what was done.

    Args:
        settings: of them the broker's address, the topics, and the names that group and transaction are made of.
        order: what to send, and where to.
        console: where to print.
        confirm: called with how many letters were picked and the topic they go to; raises where that isn't wanted.
        stop: set it to end after the batch at hand.

    Returns:
        how many were `sent`, how many were `left` alone as they were replayed often enough, how many `failed` for good.

    Raises:
        BrokerUnreachableError: no broker answers.
        ConfigError: a topic isn't there, or isn't one to send these letters to.
        PublishError: the broker refuses this producer, or a transaction failed.
        KafkaException: a topic can't be read.
        StoppedError: `stop` was set; what was sent until then is committed, with its place.
    """
    topic = settings.dead_letter_topic
    if order.to == topic:
        raise ConfigError(f"--to {topic}: that is the dead-letter topic itself")
    require(settings, topic)
    target = find(settings, order.to or settings.input_topic)
    # Each topic that is sent to has a place of its own: letters sent elsewhere for a look are still to be sent back.
    group = NAME if target.name == settings.input_topic else f"{NAME}-{target.name}"
    reader = new_letter_reader(settings, group=group)
    originals = new_letter_reader(settings)
    run = Replay(settings, order, target, reader, originals, console, stop)
    try:
        within = spans(reader, topic)
        if order.dry_run:
            _show(run, within if order.picks else unread(run, within))
        elif order.picks:
            _send_picked(run, within, confirm)
        else:
            _send_unread(run, within)
    finally:
        reader.close()
        originals.close()
    counts = run.counts
    run.say(
        f"{counts['sent']} dead letters {'would be ' if order.dry_run else ''}sent to {target.name}, "
        f"{counts['left']} left alone after {order.max_replays} replays, {counts['failed']} can't be replayed"
    )
    return counts


def unread(run: Replay, within: dict[int, Span]) -> dict[int, Span]:
    """Return what of each partition lies behind the place where the last replay ended.

    Raises:
        ConfigError: that place is beyond the end.
        KafkaException: the broker didn't say, or another replay's transaction is still open.
    """
    topic = run.settings.dead_letter_topic
    # As long as a transaction may stay open that a killed replay left, and that may still move its place.
    timeout_s = run.settings.transaction_timeout_ms / 1000 + 10
    left = dict(within)
    for found in run.reader.committed([TopicPartition(topic, number) for number in within], timeout=timeout_s):
        if found.error:
            raise KafkaException(found.error)
        if found.offset == OFFSET_INVALID:
            continue
        start, end = within[found.partition]
        place = f"partition {found.partition} of {topic}"
        if found.offset > end:
            raise ConfigError(
                f"{place} ends at {end}, before the place where the last replay ended ({found.offset}): was the topic "
                "made anew? Pick letters with --letter or a filter, or reset the offsets of the replay's group"
            )
        if found.offset < start:
            run.say(f"{place}: {start - found.offset} offsets are gone that no replay has seen, up to {start}")
        left[found.partition] = Span(max(start, found.offset), end)
    return left


def _show(run: Replay, within: dict[int, Span]) -> None:
    run.survey(within)
    for step in run.steps(within):
        if step.message:
            partition = step.message.partition
            where = "by its key" if partition is None else f"partition {partition}"
            run.say(f"{step.place}  would be sent to {run.target.name}, {where}: {step.message.size} bytes at most")
            run.counts["sent"] += 1
        else:
            run.note(step)


def _send_unread(run: Replay, within: dict[int, Span]) -> None:
    with Transactions(run.settings, run.target, name=NAME) as transactions:
        left = unread(run, within)
        run.survey(left)
        batch: list[Step] = []
        sent = size = 0
        for step in run.steps(left):
            batch.append(step)
            if step.message:
                sent, size = sent + 1, size + step.message.size
            if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
                _send(run, transactions, batch, {})
                batch, size = [], 0
        # The end is behind the marks of transactions, at which no letter stands: nothing is left to read there.
        ends = {number: span.end for number, span in left.items() if span.start < span.end}
        _send(run, transactions, batch, {} if sent == run.order.max_letters else ends)


def _send(run: Replay, transactions: Transactions, batch: Sequence[Step], ends: dict[int, int]) -> None:
    """Send a batch, in smaller ones where the broker refuses a part of it: it names none of those it refuses."""
    behind = {step.place.partition: step.place.offset + 1 for step in batch} | ends
    if not behind:
        return
    topic = run.settings.dead_letter_topic
    points = [TopicPartition(topic, number, offset, METADATA) for number, offset in behind.items()]
    messages = [step.message for step in batch if step.message]
    try:
        transactions.commit(messages, points, run.reader.consumer_group_metadata())
    except RefusedByBrokerError as error:
        if len(messages) > 1:
            half = len(batch) // 2
            _send(run, transactions, batch[:half], {})
            _send(run, transactions, batch[half:], ends)
            return
        refused = [Step(step.place, reason=str(error), fault=True) if step.message else step for step in batch]
        _send(run, transactions, refused, ends)
        return
    for step in batch:
        run.note(step)
    log.debug("letters_replayed", sent=len(messages), looked_at=len(batch), offsets=behind)


def _send_picked(run: Replay, within: dict[int, Span], confirm: Callable[[int, str], None]) -> None:
    picked = min(run.survey(within), run.order.max_letters or sys.maxsize)
    if picked > 1:
        confirm(picked, run.target.name)
    sent = 0

    def messages() -> Iterator[OutgoingMessage]:
        nonlocal sent
        for step in run.steps(within):
            if step.message:
                sent += 1
                yield step.message
            else:
                run.note(step)

    with Transactions(run.settings, run.target, name=NAME) as transactions:
        try:
            transactions.commit(messages(), [], None)
        except RefusedByBrokerError as error:
            raise PublishError(f"nothing was sent: {run.target.name} does not take a record: {error}") from None
    run.counts["sent"] = sent

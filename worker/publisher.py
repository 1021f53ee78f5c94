"""The publisher: messages and the offsets they answer, exactly once or at least once, behind one interface.

A publisher belongs to the polling thread. Its producer is idempotent in both modes, and nothing is committed before
what it covers is acknowledged by all in-sync replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from worker.clients import client_properties, enqueue_message, new_client, said, until_done
from worker.config import Settings
from worker.records import OutgoingMessage
from worker.topics import Topics

log = structlog.get_logger()

REFUSALS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
"""What a broker (or the client for it) says of a record that no retry will make it take."""


class Outcome(Enum):
    """How publishing a micro-batch ended."""

    COMMITTED = "committed"
    UNKNOWN = "unknown"
    """It failed, or its commit may have succeeded unseen: the stable committed offset decides."""


class RefusedError(Exception):
    """Some messages were refused for good; `reasons` maps their index to the error. Nothing is committed."""

    def __init__(self, reasons: Mapping[int, KafkaError]) -> None:
        super().__init__(f"{len(reasons)} messages refused")
        self.reasons = reasons


class PublishError(Exception):
    """Publishing can't go on; the message says why."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """What to commit with a micro-batch's messages.

    Attributes:
        points: the offsets, with their checkpoint.
        group: gives the consumer's group metadata as of now.
        commit: commits the offsets through the consumer and waits for the answer.
    """

    points: list[TopicPartition]
    group: Callable[[], Any]
    commit: Callable[[], None]


class Publisher(Protocol):
    """Publishes one micro-batch after the other."""

    def start(self) -> None:
        """Get ready; settles what an earlier run of the same name left open.

        Raises:
            PublishError: the broker refuses this producer.
        """

    def publish(self, messages: Sequence[OutgoingMessage], offsets: Offsets) -> Outcome:
        """Publish messages and commit the offsets they answer.

        Raises:
            RefusedError: the broker refused some messages for good.
            PublishError: the client reports a state that no retry mends.
        """

    def close(self) -> None:
        """Leave nothing open."""


def new_publisher(settings: Settings, topics: Topics, *, run: str) -> Publisher:
    """Return the publisher of the delivery mode that is set.

    Args:
        settings: the worker's settings.
        topics: the topics to publish to.
        run: name of this process, unique.

    Raises:
        ConfigError: librdkafka refuses a property.
    """
    limits = [topic.max_message_bytes for topic in (topics.output, topics.dead_letters)]
    exactly_once = settings.delivery == "exactly_once"
    properties = client_properties(settings) | {
        "linger.ms": 5,
        "compression.type": "lz4",
        # A record batch of several messages has to fit the topic that takes least.
        "batch.size": min(*limits, 1_000_000),
        # Polling waits for the delivery reports: not for as long as the group would wait for the polling.
        "message.timeout.ms": settings.transaction_timeout_ms if exactly_once else 60_000,
        # A transaction begun right after another is told to wait for it, and asks again so much later (100 ms unset).
        "retry.backoff.ms": 10,
        # A producer that bootstraps anew forgets its transaction's coordinator, and its calls wait for ever (seen).
        "metadata.recovery.strategy": "none",
        **settings.producer_properties,
        "message.max.bytes": min(max(*limits, 1_000), 1_000_000_000),
        "enable.idempotence": True,
        "acks": "all",
        "partitioner": "murmur2_random",
    }
    if not exactly_once:
        return AtLeastOnce(properties)
    prefix = settings.transactional_id_prefix or settings.group_id
    properties |= {
        "transactional.id": f"{prefix}-{settings.instance_id or run}",
        "transaction.timeout.ms": settings.transaction_timeout_ms,
    }
    return ExactlyOnce(properties, settings.transaction_timeout_ms / 1000)


class ExactlyOnce:
    """One transaction per micro-batch holds its messages and its offsets.

    The transaction is begun when the answers are there, so that it never waits for a forward. Marks are transactions
    without messages: a plain commit that is late could win over a transaction's.

    Args:
        properties: the producer's, of librdkafka.
        patience_s: for how long one call is repeated, in seconds.
    """

    def __init__(self, properties: dict[str, Any], patience_s: float) -> None:
        self._properties = properties
        self._patience_s = patience_s
        self._producer = new_client(Producer, properties)
        self._settled = True

    def start(self) -> None:
        """Settle what an earlier producer of the same transactional id left open, now or with the first try."""
        try:
            self._until_done(lambda: self._producer.init_transactions(self._patience_s))
        except KafkaException as error:
            if not error.args[0].retriable():
                raise PublishError(f"the broker refuses this transactional producer: {said(error)}") from None
            self._settled = False

    def publish(self, messages: Sequence[OutgoingMessage], offsets: Offsets) -> Outcome:
        """Publish messages and offsets in one transaction."""
        try:
            if not self._settled:
                self._rebuild()
            self._until_done(self._producer.begin_transaction)
            refused = _produce(self._producer, messages)
            if refused:
                self._until_done(lambda: self._producer.abort_transaction(self._patience_s))
                raise RefusedError(refused)
            self._until_done(
                lambda: self._producer.send_offsets_to_transaction(offsets.points, offsets.group(), self._patience_s)
            )
            self._until_done(lambda: self._producer.commit_transaction(self._patience_s))
        except KafkaException as error:
            self._recover(error)
            return Outcome.UNKNOWN
        return Outcome.COMMITTED

    def close(self) -> None:
        """Close the producer; no transaction is open between two micro-batches."""
        self._producer.close()

    def _recover(self, failure: KafkaException) -> None:
        """Leave no transaction open, or have the next producer of the same id settle it."""
        error: KafkaError = failure.args[0]
        log.warning("transaction_failed", error=error.name(), reason=error.str(), fatal=error.fatal())
        if not (error.fatal() or error.retriable() or error.txn_requires_abort()):
            raise PublishError(f"a transactional call failed for no reason that is known: {said(failure)}")
        try:
            if error.txn_requires_abort() and not error.fatal():
                self._until_done(lambda: self._producer.abort_transaction(self._patience_s))
            else:
                self._settled = False
                self._rebuild()
        except KafkaException as again:
            log.warning("transaction_unsettled", error=again.args[0].name(), reason=again.args[0].str())
            self._settled = False

    def _rebuild(self) -> None:
        # It keeps its id, so that init_transactions settles what the dead one left open. That one isn't closed: it
        # would first abort its transaction, and wait for that for as long as the broker is away.
        self._producer.purge(blocking=False)
        self._producer = new_client(Producer, self._properties)
        self._until_done(lambda: self._producer.init_transactions(self._patience_s))
        self._settled = True

    def _until_done(self, call: Callable[[], None]) -> None:
        until_done(call, self._patience_s, _repeated)


class AtLeastOnce:
    """Messages first, every delivery report checked, then the offsets in a synchronous commit."""

    def __init__(self, properties: dict[str, Any]) -> None:
        self._properties = properties
        self._producer = new_client(Producer, properties)

    def start(self) -> None:
        """Nothing to settle."""

    def publish(self, messages: Sequence[OutgoingMessage], offsets: Offsets) -> Outcome:
        """Publish messages, then commit their offsets."""
        try:
            refused = _produce(self._producer, messages)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            log.warning("produce_failed", error=error.name(), reason=error.str(), fatal=error.fatal())
            # Whatever it was: a client that was told of no broker by one that was leaving never finds another (seen).
            self._producer.purge(blocking=False)
            self._producer = new_client(Producer, self._properties)
            return Outcome.UNKNOWN
        if refused:
            raise RefusedError(refused)
        try:
            offsets.commit()
        except KafkaException as failure:
            error = failure.args[0]
            log.warning("commit_failed", error=error.name(), reason=error.str())
            return Outcome.UNKNOWN
        return Outcome.COMMITTED

    def close(self) -> None:
        """Close the producer; nothing is queued between two micro-batches."""
        self._producer.close()


def _produce(producer: Producer, messages: Sequence[OutgoingMessage]) -> dict[int, KafkaError]:
    """Produce all messages and wait for every delivery report; returns those refused for good, by index.

    Raises:
        KafkaException: one failed for another reason, or its report is missing.
    """
    reports: dict[int, KafkaError | None] = {}
    for index, message in enumerate(messages):

        def reported(error: KafkaError | None, _: Message[bytes, bytes], index: int = index) -> None:
            reports[index] = error

        try:
            enqueue_message(producer, message, reported)
        except KafkaException as failure:
            reports[index] = failure.args[0]
        producer.poll(0)
    producer.flush()
    failed = {index: error for index, error in reports.items() if error}
    refused = {index: error for index, error in failed.items() if error.code() in REFUSALS}
    if refused:
        return refused
    if failed:
        raise KafkaException(_to_abort(next(iter(failed.values()))))
    if len(reports) < len(messages):
        raise KafkaException(_to_abort(KafkaError(KafkaError._FAIL, "delivery reports are missing")))
    return {}


def _to_abort(error: KafkaError) -> KafkaError:
    # A delivery report doesn't say so itself, but a transaction that lost a message can only be aborted.
    return error if error.fatal() else KafkaError(error.code(), error.str(), txn_requires_abort=True)


def _repeated(failure: KafkaException) -> None:
    log.warning("transactional_call_repeated", error=failure.args[0].name(), reason=failure.args[0].str())

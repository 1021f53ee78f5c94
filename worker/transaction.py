"""Records and a group's offsets in one Kafka transaction, for a command that ends at the first failure.

The worker's own publisher goes on after a failure; here whoever runs the command decides, and runs it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from worker.clients import client_properties, enqueue_message, new_client, said, until_done
from worker.config import Settings
from worker.publisher import REFUSALS, PublishError
from worker.records import OutgoingMessage
from worker.topics import Topic

log = structlog.get_logger()

CALL_S = 1.0
MARGIN_S = 30.0
"""How much longer than a transaction may last a call is repeated."""
FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH})


class RefusedByBrokerError(Exception):
    """The broker takes some of these records in no case; the message says why. Nothing was sent."""


class Transactions:
    """A producer of transactions; as a context it is ready inside and closed after.

    One with the same name that is started later stops it.

    Args:
        settings: of them the broker's address, the producer's properties and the transaction's timeout.
        target: the topic to write to.
        name: ending of the `transactional.id`.

    Raises:
        ConfigError: librdkafka refuses a property.
    """

    def __init__(self, settings: Settings, target: Topic, *, name: str) -> None:
        self._timeout_ms = settings.transaction_timeout_ms
        self._patience_s = settings.transaction_timeout_ms / 1000 + MARGIN_S
        self._target = target
        properties = client_properties(settings) | {
            "linger.ms": 5,
            "compression.type": "lz4",
            "batch.size": min(target.max_message_bytes, 1_000_000),
            "message.timeout.ms": settings.transaction_timeout_ms,
            **settings.producer_properties,
            "message.max.bytes": min(max(target.max_message_bytes, 1_000), 1_000_000_000),
            "partitioner": "murmur2_random",
            "transactional.id": f"{settings.transactional_id_prefix or settings.group_id}-{name}",
            "transaction.timeout.ms": settings.transaction_timeout_ms,
        }
        self._producer = new_client(Producer, properties)

    def __enter__(self) -> Self:
        """Settle what an earlier producer of this name left open, and stop it if it still runs.

        Raises:
            PublishError: the broker refuses this producer.
        """
        try:
            self._done(lambda: self._producer.init_transactions(CALL_S))
        except KafkaException as failure:
            raise PublishError(f"the broker refuses this transactional producer: {said(failure)}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close()

    def commit(self, messages: Iterable[OutgoingMessage], offsets: Sequence[TopicPartition], group: Any) -> None:
        """Send messages and a group's offsets, all of them or none.

        What the iteration over the messages raises is raised after the transaction was aborted.

        Args:
            messages: may be endless for the memory: they are sent as they come.
            offsets: may be empty.
            group: the consumer group's metadata, of the consumer that read what the offsets cover.

        Raises:
            RefusedByBrokerError: some messages are refused for good.
            PublishError: it failed otherwise; the message says whether that may have been after it was committed.
        """
        try:
            self._producer.begin_transaction()
            self._produce(messages)
            if offsets:
                points = list(offsets)
                self._done(lambda: self._producer.send_offsets_to_transaction(points, group, CALL_S))
        except KafkaException as failure:
            self._abort()
            raise PublishError(self._said("nothing of the last transaction was sent", failure)) from None
        except BaseException:
            self._abort()
            raise
        try:
            self._done(lambda: self._producer.commit_transaction(CALL_S))
        except KafkaException as failure:
            if failure.args[0].txn_requires_abort():
                self._abort()
                raise PublishError(self._said("nothing of the last transaction was sent", failure)) from None
            unknown = "it is not known whether the last transaction was committed"
            raise PublishError(self._said(unknown, failure)) from None

    def _produce(self, messages: Iterable[OutgoingMessage]) -> None:
        faults: list[KafkaError] = []

        def reported(error: KafkaError | None, _: Message[bytes, bytes]) -> None:
            if error:
                faults.append(error)

        for message in messages:
            try:
                enqueue_message(self._producer, message, reported)
            except KafkaException as failure:
                faults.append(failure.args[0])
            self._producer.poll(0)
            if faults:
                break
        self._producer.flush()
        for fault in faults:
            if fault.code() in REFUSALS:
                raise RefusedByBrokerError(f"{fault.name()}: {fault.str()}")
        if faults:
            raise KafkaException(faults[0])

    def _abort(self) -> None:
        # If it can't be done the broker does it, when the transaction has lasted too long.
        try:
            self._done(lambda: self._producer.abort_transaction(CALL_S))
        except KafkaException as failure:
            log.warning("abort_failed", reason=said(failure))

    def _done(self, call: Callable[[], None]) -> None:
        until_done(call, self._patience_s)

    def _said(self, outcome: str, failure: KafkaException) -> str:
        if failure.args[0].code() in FENCED:
            return (
                f"{outcome}: another command of the same group was started meanwhile, "
                f"or it took longer than transaction_timeout_ms ({self._timeout_ms})"
            )
        return f"{outcome} to {self._target.name}: {said(failure)}"

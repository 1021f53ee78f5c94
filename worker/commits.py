"""What the consumer group has committed, read stably: no offset that an open transaction may still change.

Read through an admin client, which answers at once that an offset is not stable yet; the consumer's own call waits.
"""

from collections.abc import Iterable
from concurrent.futures import TimeoutError as NotAnswered

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from worker import checkpoint
from worker.checkpoint import Checkpoint
from worker.clients import client_properties, new_client
from worker.config import Settings
from worker.records import Partition

TIMEOUT_S = 10.0


class GroupCommits:
    """The commits of the settings' group.

    Raises:
        ConfigError: librdkafka refuses a property.
    """

    def __init__(self, settings: Settings) -> None:
        self._group = settings.group_id
        self._admin = new_client(AdminClient, client_properties(settings))

    def stable(self, partitions: Iterable[Partition]) -> dict[Partition, tuple[int, Checkpoint | None] | None]:
        """Return each partition's committed offset and its checkpoint; None where nothing is committed.

        Raises:
            KafkaException: the broker didn't say, or a transaction that is still open holds an offset.
        """
        asked = [TopicPartition(*partition) for partition in partitions]
        request = ConsumerGroupTopicPartitions(self._group, asked)
        answers = self._admin.list_consumer_group_offsets([request], require_stable=True, request_timeout=TIMEOUT_S)
        try:
            found = answers[self._group].result(2 * TIMEOUT_S).topic_partitions or []
        except NotAnswered:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the committed offsets were not answered")) from None
        commits: dict[Partition, tuple[int, Checkpoint | None] | None] = {}
        for answer in found:
            if answer.error:
                raise KafkaException(answer.error)
            known = answer.offset >= 0
            commits[Partition(answer.topic, answer.partition)] = (
                (answer.offset, checkpoint.decode(answer.metadata)) if known else None
            )
        return commits

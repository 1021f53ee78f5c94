"""The embedded broker: the client library's mock cluster, in memory, with nothing to install. For trying out only.

It keeps about 5 MiB a partition, creates no topic when asked to but invents any that is looked up, with four
partitions, and neither isolates nor fences transactions (measured, librdkafka 2.16): delivery is at least once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Producer

PARTITIONS = 4


@contextmanager
def embedded_broker(topics: Sequence[str]) -> Iterator[str]:
    """Run a mock cluster of one broker that has these topics; yields its address.

    A group whose topic is invented only after its members have joined was seen never to be assigned anything, so
    that they are looked up, and thereby invented, before anyone joins.

    Every client of it must be closed before the context ends: the cluster lives in a client of its own.
    """
    owner = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 3})
    try:
        broker = next(iter(owner.list_topics(timeout=10).brokers.values()))
        for topic in topics:
            owner.list_topics(topic, timeout=10)
        yield f"{broker.host}:{broker.port}"
    finally:
        owner.close()

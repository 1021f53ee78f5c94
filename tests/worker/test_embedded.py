import time

from confluent_kafka import Consumer

from worker.embedded import PARTITIONS, embedded_broker


def test_a_group_that_joins_before_anything_is_produced_is_assigned_every_partition() -> None:
    with embedded_broker(["texts"]) as address:
        for number in range(5):
            consumer = Consumer(
                {"bootstrap.servers": address, "group.id": f"group-{number}", "group.protocol": "consumer"}
            )
            consumer.subscribe(["texts"])
            deadline = time.monotonic() + 10
            while len(consumer.assignment()) < PARTITIONS and time.monotonic() < deadline:
                consumer.poll(0.05)
            assert len(consumer.assignment()) == PARTITIONS
            consumer.close()

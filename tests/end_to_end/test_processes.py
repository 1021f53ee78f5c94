"""`glistream run --processes N`: several workers as one command, against the real Kafka."""

from collections.abc import Callable

from tests.end_to_end.conftest import Stream
from tests.end_to_end.test_delivery import assert_left_in_good_order
from tests.end_to_end.workers import wait_until
from tests.kafka_server.read_back import group

MakeStream = Callable[..., Stream]


def test_two_processes_share_the_partitions_and_leave_in_order(make_stream: MakeStream) -> None:
    stream = make_stream(4)
    worker = stream.start({"processes": 2, "instance_id": "pod-0"})
    worker.wait_for("worker_started", times=2)

    def shares() -> list[int]:
        return [len(member.assignment) for member in group(stream.bootstrap, stream.group).members]

    wait_until(lambda: shares() == [2, 2], 60, worker.tail)
    stream.produce(({"text": "Ann", "id": number} for number in range(200)), partitions=4)
    stream.wait_until_done()

    assert worker.stop() == 0, worker.tail()
    assert sorted(int(event.text_id or 0) for event in stream.events()) == list(range(200))
    assert {line["process"] for line in worker.lines("worker_started")} == {1, 2}
    assert [line["events"] for line in worker.lines("worker_stopped")] == [100, 100]
    assert [(line["of"], line["hits"], line["misses"]) for line in worker.lines("cache")] == [("label_sets", 3, 1)] * 2
    assert_left_in_good_order(stream)

"""Several streams in one test, so that they can suffer at the same time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.delivery.conftest import MakeStream
from tests.end_to_end.conftest import Stream
from tests.kafka_server.topics import unique

Kind = TypeVar("Kind")


def apart(stream: Stream, name: str) -> Stream:
    """Give a stream a group and a folder of its own, so that it can run beside others."""
    stream.group = unique("group")
    stream.folder = stream.folder / name.replace(" ", "-")
    stream.folder.mkdir()
    return stream


def side_by_side(
    make_stream: MakeStream, partitions: int, kinds: Sequence[Kind], job: Callable[[Stream, Kind], None]
) -> None:
    """Do a job for each kind, each with a stream of its own, and wait for all; the first failure is raised."""
    streams = [apart(make_stream(partitions), str(kind)) for kind in kinds]
    with ThreadPoolExecutor(len(kinds)) as pool:
        jobs = [pool.submit(job, stream, kind) for stream, kind in zip(streams, kinds, strict=True)]
    for done in jobs:
        done.result()

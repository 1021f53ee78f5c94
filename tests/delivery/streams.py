"""Several streams in one test."""

from tests.end_to_end.conftest import Stream
from tests.kafka_server.topics import unique


def apart(stream: Stream, name: str) -> Stream:
    """Give a stream a group and a folder of its own, so that it can run beside others."""
    stream.group = unique("group")
    stream.folder = stream.folder / name.replace(" ", "-")
    stream.folder.mkdir()
    return stream

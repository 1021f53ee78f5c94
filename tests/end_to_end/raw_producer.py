"""Produce what the Python client can't: a header whose name is not UTF-8, as C and Go clients may.

Calls the C library that the Python client ships, by `rd_kafka_producev` (its `rd_kafka_vtype_t` tags: topic 1, value 4,
copy flag 7, headers 10, end 0).
"""

import ctypes
from pathlib import Path

import confluent_kafka

PRODUCER = 0
TOPIC, VALUE, FLAGS, HEADERS, END = 1, 4, 7, 10, 0
COPY = 2


def library() -> Path | None:
    """Return the C library's file; None where it is not shipped beside the package (other than Linux wheels)."""
    beside = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    return next(iter(sorted(beside.glob("librdkafka*.so*"))), None)


def produce_with_header_name(bootstrap: str, topic: str, value: bytes, name: bytes) -> None:
    """Produce one record with one header of that name, and wait until the broker has it."""
    path = library()
    assert path is not None
    rdkafka = ctypes.CDLL(str(path))
    for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(rdkafka, function).restype = ctypes.c_void_p
    error = ctypes.create_string_buffer(512)
    size = ctypes.c_size_t(len(error))
    conf = ctypes.c_void_p(rdkafka.rd_kafka_conf_new())
    assert rdkafka.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), error, size) == 0, error.value
    client = ctypes.c_void_p(rdkafka.rd_kafka_new(PRODUCER, conf, error, size))
    headers = ctypes.c_void_p(rdkafka.rd_kafka_headers_new(ctypes.c_size_t(1)))
    rdkafka.rd_kafka_header_add(headers, name, ctypes.c_ssize_t(len(name)), b"v", ctypes.c_ssize_t(1))
    parts = (TOPIC, topic.encode(), VALUE, value, ctypes.c_size_t(len(value)), FLAGS, COPY, HEADERS, headers, END)
    assert rdkafka.rd_kafka_producev(client, *parts) == 0
    assert rdkafka.rd_kafka_flush(client, 30_000) == 0
    rdkafka.rd_kafka_destroy(client)

"""A backlog larger than any buffer: the process stays within the limits that are set."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path

from confluent_kafka import Producer

from tests.delivery.conftest import MakeStream
from tests.delivery.report import Report, scale
from tests.end_to_end.conftest import Stream

MB = 1_000_000
TEXT_BYTES = 100_000
LIMIT_MB = 16
"""Of what is in hand and of what is fetched ahead, each."""
PARTITIONS = 4
OVERSHOOT_MB = PARTITIONS * 1
"""A fetch of each partition may go beyond what may be fetched ahead: 1 MB, the client's own bound."""
COPIES = 3
"""A text in hand is there as bytes, as decoded text and as tokens."""


def test_a_backlog_of_large_texts_does_not_grow_the_process(make_stream: MakeStream, report: Report) -> None:
    count = scale(quick=1_000, full=20_000)
    stream = make_stream(PARTITIONS)
    produce_large(stream, count)
    worker = stream.start(
        {
            "buffer_bytes": LIMIT_MB * MB,
            "prefetch_bytes": LIMIT_MB * MB,
            "buffer_records": 1_000_000,
            "batch_tokens": 200_000,
        }
    )
    worker.wait_for("worker_started")
    before = resident_mb(worker.pid)
    seen = []
    while stream.lag() != 0 and worker.running:
        seen.append(resident_mb(worker.pid))
        time.sleep(0.2)
    assert worker.stop() == 0, worker.tail()
    grown = max(seen) - before
    assert grown <= COPIES * LIMIT_MB + LIMIT_MB + OVERSHOOT_MB, f"{before:.0f} MB before, {max(seen):.0f} MB at most"
    half = len(seen) // 2
    assert max(seen[half:]) <= 1.1 * max(seen[:half]), "it grows for as long as there is a backlog"
    # The input is not read back: it would take the tests as much memory as it must not take the worker.
    ids = [event.text_id for event in stream.events()]
    assert sorted(map(str, ids)) == sorted(map(str, range(count)))
    fault = f"backlog of {TEXT_BYTES // 1000} kB texts"
    report.tried(fault, count)
    report.measured[f"{fault}: resident memory at the start, MB"] = round(before)
    report.measured[f"{fault}: at most, MB"] = round(max(seen))


def produce_large(stream: Stream, count: int) -> None:
    """Produce numbered texts of 100 kB, uncompressed and hardly compressible."""
    random.seed(7)
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9))) for _ in range(5_000)]
    bodies = ["Ann " + " ".join(random.choices(words, k=14_000))[: TEXT_BYTES - 4] for _ in range(20)]
    producer = Producer({"bootstrap.servers": stream.bootstrap, "linger.ms": 5})
    for number in range(count):
        value = json.dumps({"id": number, "text": bodies[number % len(bodies)]})
        while True:
            try:
                producer.produce(stream.texts, value=value, key=str(number), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 / MB if found else 0.0

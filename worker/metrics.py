"""The metrics, in Prometheus' terms."""

from collections.abc import Mapping

from prometheus_client import Counter, Gauge, Histogram

from worker.records import Partition

ANSWERS = Counter("glistream_answers", "Records answered and committed.", ["kind"])
DEAD_LETTERS = Counter("glistream_dead_letters", "Dead letters committed, by the stage that failed.", ["stage"])
FORWARD_SECONDS = Histogram(
    "glistream_forward_seconds",
    "Duration of a micro-batch's forward.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
BATCHES = Counter("glistream_batches", "Micro-batches, by what closed them.", ["reason"])
BATCH_TOKENS = Histogram(
    "glistream_batch_tokens",
    "Tokens of a micro-batch.",
    buckets=(64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536),
)
HELD_RECORDS = Gauge("glistream_held_records", "Records in hand, from taken to committed.")
HELD_BYTES = Gauge("glistream_held_bytes", "Bytes of the records in hand.")
PUBLISH_FAILURES = Counter("glistream_publish_failures", "Tries to publish that failed or whose outcome is unknown.")
TRIALS = Counter("glistream_trials", "Suspect records run alone, by whether a child process died.", ["died"])
UNCLEAN_ENDS = Counter("glistream_unclean_ends", "Assigned partitions that their last owner left by dying.")
SKIPPED_OFFSETS = Counter(
    "glistream_skipped_offsets", "Offsets passed over as they were gone from the topic.", ["topic", "partition"]
)
LAG = Gauge("glistream_partition_lag", "Offsets between the committed one and the end.", ["topic", "partition"])
STALLED = Gauge(
    "glistream_partition_stalled_seconds",
    "Seconds since the committed offset last moved, while there was something to read; 0 otherwise.",
    ["topic", "partition"],
)
BREAKER_OPEN = Gauge("glistream_breaker_open", "1 while the circuit breaker pauses the stream.")


def show_partitions(
    bases: Mapping[Partition, int], ends: Mapping[Partition, int], stalled: Mapping[Partition, float]
) -> None:
    """Show lag and stall of the partitions that are held, and no longer those of others.

    Args:
        bases: the committed offset of each.
        ends: the end of each, as far as known.
        stalled: for how many seconds each has made no progress though it could.
    """
    LAG.clear()
    STALLED.clear()
    for partition, base in bases.items():
        if partition in ends:
            LAG.labels(*partition).set(max(0, ends[partition] - base))
        STALLED.labels(*partition).set(stalled.get(partition, 0.0))

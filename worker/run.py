"""The worker as a process: made of its settings, stopped by signals, ended with an exit code."""

import os
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from types import FrameType
from typing import TypeVar

import structlog

from packing import DEMO_MODEL, Engine
from schemas.events import ModelInfo
from worker import logging, topics
from worker.config import DEFAULT_MODEL, Settings, unknown_variables
from worker.cores import threads_each, use_threads
from worker.loop import Worker
from worker.processes import child_number, stop_with_parent
from worker.status import Status, served
from worker.tasks import Extractor
from worker.watchdog import Watchdog

log = structlog.get_logger()

Answer = TypeVar("Answer")

LOOK_S = 0.1


def run_worker(settings: Settings) -> Counter[str]:
    """Run the worker until SIGTERM or SIGINT; a second one leaves at once.

    Returns:
        the records answered, by kind.

    Raises:
        ConfigError, ModelError: the settings can't be used; nothing was consumed.
        BrokerUnreachableError: no broker answers and `fail_fast` is set.
        ConsumerError, OffsetsGoneError, PublishError, EngineError, KafkaException: the worker can't go on.
    """
    stop = stop_on_signals() if child_number() is None else stop_with_parent()
    watchdog, status = new_watchdog(settings), Status()
    for line in unknown_variables():
        log.warning("unknown_variable", reason=line)

    def start() -> Counter[str]:
        try:
            admin = topics.reach(settings, stop)
        except topics.BrokerUnreachableError:
            if stop.is_set():
                return Counter()
            raise
        found = topics.inspect(admin, settings)
        engine, model = load_engine(settings)
        counts = work(settings, engine, model, found, stop, watchdog, status)
        for name, (hits, misses) in engine.caches().items():
            log.info("cache", of=name, hits=hits, misses=misses)
        return counts

    # Longer than all that a worker may wait for when it leaves.
    patience_s = 2 * (settings.drain_ms + settings.transaction_timeout_ms) / 1000
    port = settings.status_port and settings.status_port + (child_number() or 1) - 1
    with served(port, status, watchdog.hung):
        return supervised(start, stop, patience_s=patience_s, watchdog=watchdog)


def work(
    settings: Settings,
    engine: Extractor,
    model: ModelInfo,
    found: topics.Topics,
    stop: threading.Event,
    watchdog: Watchdog | None = None,
    status: Status | None = None,
) -> Counter[str]:
    """Run a worker with an engine at hand until `stop` is set."""
    run = uuid.uuid4().hex[:12]
    log.info(
        "worker_started",
        run=run,
        group=settings.group_id,
        delivery=settings.delivery,
        input=settings.input_topic,
        output=settings.output_topic,
        dead_letters=settings.dead_letter_topic,
        model=model.name,
        revision=model.revision,
        process=child_number() or 1,
    )
    worker = Worker(
        settings,
        engine,
        load_engine,
        model,
        found,
        run=run,
        stop=stop,
        watchdog=watchdog or new_watchdog(settings),
        status=status or Status(),
    )
    counts = worker.run()
    log.info("worker_stopped", run=run, **counts)
    return counts


def new_watchdog(settings: Settings) -> Watchdog:
    """Return a watchdog of the polling thread: the group gave that up long ago when it barks."""
    return Watchdog(2 * settings.poll_interval_ms / 1000)


def supervised(
    job: Callable[[], Answer], stop: threading.Event, *, patience_s: float, watchdog: Watchdog | None = None
) -> Answer:
    """Run a job in a thread of its own and return what it returns.

    Signals are handled by the main thread between two steps of Python: here they are, even while a call to the Kafka
    client doesn't come back. A job that goes on for `patience_s` seconds after `stop` is given up, and the process
    with it: exit code 1. So is one that gives its watchdog no sign of life any more.
    """
    outcome: Future[Answer] = Future()

    def run() -> None:
        try:
            outcome.set_result(job())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="worker", daemon=True).start()
    give_up = float("inf")
    while not outcome.done():
        wait([outcome], timeout=LOOK_S)
        if stop.is_set():
            give_up = min(give_up, time.monotonic() + patience_s)
        if time.monotonic() >= give_up:
            log.error("worker_hangs", after_s=patience_s, reason="it was told to stop and did not; giving up")
            os._exit(1)
        if watchdog and (doing := watchdog.hung()):
            log.error("worker_hangs", after_s=watchdog.patience_s, reason=f"no sign of life while {doing}; giving up")
            os._exit(1)
    return outcome.result()


def load_engine(settings: Settings) -> tuple[Engine, ModelInfo]:
    """Load the model that is set.

    Raises:
        ModelError: it can't be loaded; the message says why.
    """
    bundled = settings.model == DEFAULT_MODEL
    if bundled:
        log.warning(
            "bundled_model",
            reason="no model is set: using the small one that is bundled, made for trying out; set --model",
        )
    threads = threads_each(settings.threads, settings.processes)
    use_threads(threads)
    engine = Engine.load(
        DEMO_MODEL if bundled else settings.model,
        device=settings.device,
        dtype=settings.dtype,
        revision=settings.revision,
        window_words=settings.window_words,
        overlap_words=settings.window_overlap,
        text_share=settings.text_share,
        chunk_labels=settings.chunk_labels,
    )
    logging.adopt_libraries()
    info = engine.info
    log.info(
        "model_loaded",
        name=info.name,
        device=info.device,
        backend=info.backend,
        dtype=info.dtype,
        why=info.why,
        self_test_steps=len(info.steps),
        threads=threads,
    )
    return engine, ModelInfo(name=info.name, revision=info.revision)


def stop_on_signals() -> threading.Event:
    """Return an event that the first SIGTERM or SIGINT sets; the second ends the process on the spot."""
    stop = threading.Event()

    def on_signal(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop

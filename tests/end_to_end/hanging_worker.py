"""The fast worker with a client call that never comes back: `HANG` is the name of a method of the producer.

What a broker can be made to do ends in a time-out of the client's; a call that ignores its own can't be had otherwise.
"""

import os
import time

import confluent_kafka

import worker.publisher
from tests.end_to_end import fast_worker  # noqa: F401 (makes the engine a fast one)
from worker.cli import main


class HangingProducer(confluent_kafka.Producer):
    pass


def hang(*_: object) -> None:
    time.sleep(3600)


setattr(HangingProducer, os.environ.get("HANG", ""), hang)
worker.publisher.Producer = HangingProducer  # type: ignore[attr-defined]

if __name__ == "__main__":
    main()

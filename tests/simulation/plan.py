"""What a seed says: how large a run is, what its records are like, and which faults it has."""

import random
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a record does to the process that runs it."""

    PLAIN = "plain"
    TOMBSTONE = "tombstone"
    RAISES = "raises"
    SLOW = "slow"
    KILLS_PREPARE = "kills_prepare"
    KILLS_FORWARD = "kills_forward"
    KILLS_BOTH = "kills_both"
    FLAKY = "flaky"


MOST_BYTES = 20
"""Of a record."""
KILLERS = frozenset({Kind.KILLS_PREPARE, Kind.KILLS_FORWARD, Kind.KILLS_BOTH})


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of an input partition.

    Attributes:
        refusals: how many forms of its answer the broker refuses before it takes one.
    """

    partition: int
    offset: int
    kind: Kind
    tokens: int
    size: int
    refusals: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Faults: for those that happen to the cluster how many in a second, for the others a probability each time."""

    sigkill: float
    sigterm: float
    expire: float
    rebalance: float
    outage: float
    trouble: float
    applied_unseen: float
    aborted: float
    limbo: float
    kill_in_trial: float
    kill_child: float
    no_child: float
    sick_engine: float


@dataclass(frozen=True, slots=True)
class Plan:
    """One run.

    Attributes:
        logs: the records of each partition, in their order.
        produced: how many of each partition are there at the start.
        faults_s: until when there are faults.
        trouble_alone: nothing is wrong but one output partition, so that all others can be timed.
        stable_ids: a worker that is started in place of a dead one has its transactional id.
    """

    logs: list[list[Entry]]
    produced: list[int]
    workers: int
    rates: Rates
    faults_s: float
    trouble_alone: bool
    budget_tokens: int
    buffer_records: int
    buffer_bytes: int
    take_records: int
    trials: int
    children: bool
    breaker_share: float
    drain_s: float
    max_latency_s: float
    stable_ids: bool


def new_plan(rng: random.Random) -> Plan:
    """Return a plan; every fault is left out of many, so that each is also seen alone."""
    trouble_alone = rng.random() < 0.08
    partitions = rng.randint(2, 3) if trouble_alone else rng.randint(1, 3)
    rates = _only_trouble() if trouble_alone else _rates(rng)
    children = rng.random() < 0.75
    kinds = _kinds(rng, quick=trouble_alone)
    gap = rng.choice((1, 1, 4, 20))
    refusing = rng.choice((0.0, 0.0, 0.2))
    sizes = [rng.randint(3, 16) for _ in range(partitions)]
    logs = [_log(rng, number, size, gap, kinds, refusing) for number, size in enumerate(sizes)]
    return Plan(
        logs=logs,
        produced=[rng.randint(0, size) for size in sizes],
        workers=1 if trouble_alone else rng.randint(1, 3),
        rates=rates,
        faults_s=25.0 if trouble_alone else rng.uniform(5, 25),
        trouble_alone=trouble_alone,
        budget_tokens=rng.choice((16, 32, 64)),
        buffer_records=rng.choice((2, 8, 40, 400)),
        buffer_bytes=rng.choice((40, 1000)),
        # One by one, chance alone may leave a partition waiting for longer than the trouble of another should.
        take_records=rng.choice((5, 20) if trouble_alone else (1, 5, 20)),
        trials=rng.choice((1, 2, 3, 3)),
        children=children,
        breaker_share=rng.choice((0.0, 0.0, 0.3)),
        drain_s=rng.choice((0.0, 0.5, 2.0)),
        max_latency_s=rng.choice((0.0, 0.5, 2.0)),
        stable_ids=rng.random() < 0.5,
    )


def _rates(rng: random.Random) -> Rates:
    def some(*rates: float) -> float:
        return rng.choice((0.0, 0.0, *rates))

    return Rates(
        sigkill=some(0.05, 0.3),
        sigterm=some(0.05, 0.2),
        expire=some(0.1, 0.4),
        rebalance=some(0.1, 0.4),
        outage=some(0.05),
        trouble=some(0.1),
        applied_unseen=some(0.1, 0.4),
        aborted=some(0.1, 0.4),
        limbo=some(0.1, 0.3),
        kill_in_trial=some(0.2, 0.6),
        kill_child=some(0.2),
        no_child=some(0.3),
        sick_engine=some(0.02),
    )


def _only_trouble() -> Rates:
    return Rates(0, 0, 0, 0, 0, 0.2, 0, 0, 0, 0, 0, 0, 0)


def _kinds(rng: random.Random, *, quick: bool) -> dict[Kind, int]:
    weights = {Kind.PLAIN: 20, Kind.TOMBSTONE: 1, Kind.RAISES: rng.choice((0, 1, 6))}
    if quick:
        return weights
    weights[Kind.SLOW] = rng.choice((0, 0, 2))
    if rng.random() < 0.6:
        weights[rng.choice((Kind.KILLS_PREPARE, Kind.KILLS_FORWARD))] = rng.choice((1, 3))
        weights[Kind.FLAKY] = rng.choice((0, 0, 1))
        weights[Kind.KILLS_BOTH] = rng.choice((0, 0, 0, 0, 1))
    return weights


def _log(
    rng: random.Random, partition: int, size: int, gap: int, kinds: dict[Kind, int], refusing: float
) -> list[Entry]:
    offset = 0
    log = []
    # Texts that grow shorten how far a worker may reach ahead.
    growing = rng.random() < 0.3
    for index, kind in enumerate(rng.choices(list(kinds), list(kinds.values()), k=size)):
        tokens = rng.randint(1, 20)
        if growing:
            tokens = 1 if index < size / 2 else rng.randint(20, 60)
        offset += rng.randint(0, gap)
        refusals = rng.randint(1, 2) if rng.random() < refusing else 0
        log.append(Entry(partition, offset, kind, tokens, rng.randint(1, MOST_BYTES), refusals))
        offset += 1
    return log

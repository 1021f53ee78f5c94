"""One run from a seed: workers, records and faults on a virtual clock, until every record has its answer."""

import heapq
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from logging import CRITICAL

import structlog

from tests.simulation.cluster import Cluster, Transaction
from tests.simulation.ledger import Ledger
from tests.simulation.plan import Rates, new_plan
from tests.simulation.process import Process, ProcessDiedError, Steps
from worker.records import Partition

STEPS = 60_000
DRAIN_S = 400.0
"""Within which all must be done once the faults have ended."""
HELD_UP_S = 12.0
"""How long a partition may wait for its next answer while the output of another fails: for a few tries of that."""
SESSION_S = 1.5
RESTART_S = 1.0
NONE = Rates(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

Trace = Callable[[str], None]


class Simulation:
    """The state of a run.

    Args:
        seed: what the run is made of.
        trace: is given a line for each step, where wanted.
    """

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.rng = random.Random(seed)
        self.plan = new_plan(self.rng)
        self.rates = self.plan.rates
        self.ledger = Ledger(self.plan)
        self.cluster = Cluster(self.plan.logs, self.plan.produced, self.rng, self.ledger)
        self.now = 0.0
        self.steps = 0
        self._trace = trace
        self._agenda: list[tuple[float, float, Steps, Process | None]] = []
        self._processes: list[Process] = []
        self._started = 0
        self._moved: dict[Partition, tuple[int, float]] = {}

    def run(self) -> None:
        """Run to the end.

        Raises:
            BrokenPromiseError: the workers did what they must not.
        """
        for _ in range(self.plan.workers):
            self._start_worker()
        self.start(self._produce())
        self.start(self._faults())
        while not self._finished():
            self.steps += 1
            if self.steps > STEPS or self.now > self.plan.faults_s + DRAIN_S:
                self.ledger.expect(False, "not done in time", *self.ledger.missing())
            self.now, _, steps, process = heapq.heappop(self._agenda)
            if process and not process.alive:
                continue
            try:
                wait = next(steps)
            except StopIteration:
                continue
            except ProcessDiedError:
                assert process is not None
                self._bury(process)
                continue
            heapq.heappush(self._agenda, (self.now + wait, self.rng.random(), steps, process))

    def trace(self, who: Process | None, what: object, *details: object) -> None:
        if self._trace:
            name = who.name if who else "-"
            self._trace(f"{self.now:9.3f}  {name:6} {what} {' '.join(str(detail) for detail in details)}")

    # What processes ask for

    def start(self, steps: Steps, process: Process | None = None) -> None:
        heapq.heappush(self._agenda, (self.now, self.rng.random(), steps, process))

    def settle_later(self, transaction: Transaction) -> None:
        self.start(self._settle(transaction))

    def kill_soon(self, process: Process) -> None:
        self.start(self._kill(process, self.rng.uniform(0, 0.3)))

    # What happens by itself

    def _finished(self) -> bool:
        if self.plan.trouble_alone:
            self._check_trouble()
        return self.ledger.complete and not self.cluster.open

    def _check_trouble(self) -> None:
        """Check that the trouble of one output partition holds up no other for long."""
        for partition, log in self.cluster.logs.items():
            there = log[: self.cluster.produced[partition]]
            waiting = [entry for entry in there if not self.ledger.answered(partition, entry.offset)]
            if not waiting or partition in self.cluster.failing:
                self._moved[partition] = (-1, self.now)
            elif self._moved.get(partition, (-1, 0.0))[0] != waiting[0].offset:
                self._moved[partition] = (waiting[0].offset, self.now)
            held_up = self.now - self._moved[partition][1]
            self.ledger.expect(held_up < HELD_UP_S, "held up by the trouble of another", partition, waiting)

    def _start_worker(self) -> None:
        self._started += 1
        process = Process(self, f"w{self._started}")
        self._processes.append(process)
        self.start(process.work(), process)

    def _bury(self, process: Process) -> None:
        process.alive = False
        self._processes.remove(process)
        if transaction := process.abandon():
            self.start(self._settle(transaction))
        self.start(self._replace(process))

    def _replace(self, process: Process) -> Steps:
        """Have the group notice that a process is gone, and its supervisor start another, in either order."""
        restart = self.rng.uniform(0, RESTART_S)
        expire = self.rng.uniform(0, SESSION_S)
        steps = sorted([(restart, self._succeed), (expire, self._expire_of)], key=lambda step: step[0])
        waited = 0.0
        for at, step in steps:
            yield at - waited
            waited = at
            step(process)

    def _succeed(self, process: Process) -> None:
        transaction = process.abandon()
        if transaction and self.plan.stable_ids:
            # A producer of the same transactional id settles what the dead one left open.
            self.cluster.settle(transaction, commits=transaction.commits)
        self._start_worker()

    def _expire_of(self, process: Process) -> None:
        if process.member:
            self.cluster.remove(process.member)

    def _settle(self, transaction: Transaction) -> Steps:
        yield self.rng.uniform(0, 4)
        self.trace(None, "settled", transaction.ends, transaction.commits)
        self.cluster.settle(transaction, commits=transaction.commits)

    def _kill(self, process: Process, after_s: float) -> Steps:
        yield after_s
        if process.alive:
            self.trace(process, "SIGKILL")
            self._bury(process)

    def _produce(self) -> Steps:
        cluster = self.cluster
        while growing := [part for part, log in cluster.logs.items() if cluster.produced[part] < len(log)]:
            yield self.rng.expovariate(1) * self.plan.faults_s / 20
            partition = self.rng.choice(growing)
            left = len(cluster.logs[partition]) - cluster.produced[partition]
            cluster.produced[partition] += self.rng.randint(1, left)

    def _faults(self) -> Steps:
        rates = self.rates
        faults: dict[Callable[[], None], float] = {
            self._sigkill: rates.sigkill,
            self._sigterm: rates.sigterm,
            self._expire: rates.expire,
            self.cluster.rebalance: rates.rebalance,
            self._outage: rates.outage,
            self._trouble: rates.trouble,
        }
        total = sum(faults.values())
        while total:
            wait = self.rng.expovariate(total)
            if self.now + wait >= self.plan.faults_s:
                break
            yield wait
            self.rng.choices(list(faults), list(faults.values()))[0]()
        yield max(0.0, self.plan.faults_s - self.now)
        self.trace(None, "no more faults")
        self.rates = NONE

    def _sigkill(self) -> None:
        if self._processes:
            process = self.rng.choice(self._processes)
            self.trace(process, "SIGKILL")
            self._bury(process)

    def _sigterm(self) -> None:
        if self._processes:
            process = self.rng.choice(self._processes)
            self.trace(process, "SIGTERM")
            process.stop = True

    def _expire(self) -> None:
        if self.cluster.members:
            member = self.rng.choice(self.cluster.members)
            self.trace(None, "session expires", member.name)
            self.cluster.remove(member)

    def _outage(self) -> None:
        def last() -> Steps:
            self.trace(None, "the broker is away")
            self.cluster.down = True
            yield self.rng.uniform(0, 6)
            self.cluster.down = False

        self.start(last())

    def _trouble(self) -> None:
        def last(seconds: float) -> Steps:
            partition = self.rng.choice(list(self.cluster.logs))
            if self.cluster.failing:
                return
            self.trace(None, "output fails", partition, seconds)
            self.cluster.failing = {partition}
            yield seconds
            self.cluster.failing = set()

        self.start(last(self.rng.uniform(0, 20)))


@contextmanager
def quiet() -> Generator[None, None, None]:
    """Keep the workers' log lines away: there would be millions."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


def run(seed: int, trace: Trace | None = None) -> Simulation:
    """Run a seed to its end.

    Raises:
        BrokenPromiseError: the workers did what they must not.
    """
    simulation = Simulation(seed, trace)
    simulation.run()
    return simulation

"""A model of the broker, its consumer group and its transactions: no more than what the worker's promises rest on."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tests.simulation.ledger import Ledger, Move
from tests.simulation.plan import Entry
from worker import checkpoint
from worker.answers import Written
from worker.checkpoint import Checkpoint
from worker.records import Partition


class RefusedByGroupError(Exception):
    """The group does not take a commit: not a member's, or of an earlier generation."""


class UnstableError(Exception):
    """A commit is open, so that nobody can say yet what is committed."""


@dataclass(slots=True, eq=False)
class Member:
    """A member of the group, and the generation it knows of."""

    name: str
    generation: int = -1


@dataclass(slots=True, eq=False)
class Transaction:
    """A transaction whose offsets were sent.

    Attributes:
        commits: what it becomes when it is settled by somebody else than the call that was to commit it.
    """

    member: Member
    answers: Sequence[Written]
    ends: Mapping[Partition, int]
    stamps: Mapping[Partition, Checkpoint]
    commits: bool = False


class Cluster:
    """What is at the broker.

    Commits are refused by their generation and by nothing else, as by a real broker: a member that lost a partition
    and regained it, or that never had it, can commit for it.

    Args:
        logs: the records of each partition.
        produced: how many of each are there from the start.
    """

    def __init__(
        self, logs: Sequence[Sequence[Entry]], produced: Sequence[int], rng: random.Random, ledger: Ledger
    ) -> None:
        self._rng = rng
        self._ledger = ledger
        self.logs = {Partition("texts", number): log for number, log in enumerate(logs)}
        self.produced = {Partition("texts", number): count for number, count in enumerate(produced)}
        self.committed: dict[Partition, tuple[int, str]] = {}
        self.open: dict[Partition, Transaction] = {}
        self.members: list[Member] = []
        self.generation = 0
        self.owners: dict[Partition, Member | None] = dict.fromkeys(self.logs)
        self._targets: dict[Partition, Member | None] = dict.fromkeys(self.logs)
        self.failing: set[Partition] = set()
        self.down = False

    # The group

    def join(self, name: str) -> Member:
        member = Member(name)
        self.members.append(member)
        self.rebalance()
        return member

    def remove(self, member: Member) -> None:
        """End a membership, by the member's own wish or because it was not heard of."""
        if member in self.members:
            self.members.remove(member)
            self.owners = {part: None if owner is member else owner for part, owner in self.owners.items()}
            self.rebalance()

    def rebalance(self) -> None:
        """Share the partitions out anew; they change hands when the members next ask."""
        self.generation += 1
        for partition, target in self._targets.items():
            if target not in self.members or self._rng.random() < 0.4:
                self._targets[partition] = self._rng.choice(self.members) if self.members else None

    def given(self, member: Member) -> list[Partition]:
        """Give a member what is meant for it and free."""
        free = [part for part, target in self._targets.items() if target is member and self.owners[part] is None]
        if member not in self.members:
            return []
        self.owners.update(dict.fromkeys(free, member))
        return free

    def wanted_back(self, member: Member) -> list[Partition]:
        return [part for part, owner in self.owners.items() if owner is member and self._targets[part] is not member]

    def release(self, member: Member, partitions: Collection[Partition]) -> None:
        for partition in partitions:
            if self.owners[partition] is member:
                self.owners[partition] = None
        self.generation += 1

    # Reading

    def fetch(self, partition: Partition, offset: int, most: int) -> list[Entry]:
        there = self.logs[partition][: self.produced[partition]]
        return [entry for entry in there if entry.offset >= offset][:most]

    def end(self, partition: Partition) -> int:
        """Return the offset after the last record; a marker of a transaction takes one too."""
        count = self.produced[partition]
        return self.logs[partition][count - 1].offset + 2 if count else 0

    def stable(self, partition: Partition) -> tuple[int, str] | None:
        """Return the committed offset and its metadata.

        Raises:
            UnstableError: a transaction that holds an offset of the partition is open.
        """
        if partition in self.open:
            raise UnstableError
        return self.committed.get(partition)

    # Committing

    def check(self, member: Member) -> None:
        """Make sure that the group takes a commit of this member.

        Raises:
            RefusedByGroupError: it doesn't.
        """
        if member not in self.members or member.generation != self.generation:
            raise RefusedByGroupError

    def commit_plainly(self, member: Member, partition: Partition, offset: int, metadata: str) -> None:
        self.check(member)
        self.committed[partition] = (offset, metadata)

    def send(self, transaction: Transaction) -> None:
        """Take the messages and offsets of a transaction, which is open from now on."""
        self.check(transaction.member)
        for partition in transaction.ends:
            # Two open transactions with one partition would mean that somebody read an offset that wasn't stable.
            self._ledger.expect(partition not in self.open, "two transactions are open for one partition", partition)
            self.open[partition] = transaction

    def settle(self, transaction: Transaction, *, commits: bool) -> None:
        """Commit an open transaction, all of it, or abort it."""
        if all(self.open.get(partition) is not transaction for partition in transaction.ends):
            return
        for partition in transaction.ends:
            del self.open[partition]
        if not commits:
            return
        moves = []
        for partition, offset in transaction.ends.items():
            after = offset, checkpoint.encode(transaction.stamps[partition])
            moves.append(Move(partition, self.committed[partition], after))
            self.committed[partition] = after
        self._ledger.applied(moves, transaction.answers)

"""Isolation: which records are suspect after an unclean end, and when one of them is given up. Pure.

A worker that dies may have been killed by a record it held. Whoever gets the partition next runs the records that may
have been in hand one by one, alone in the process; a record during whose trial a process died `trials` times goes to
the dead letters. Deaths alone never cost a record: they only isolate.
"""

from dataclasses import dataclass

from worker.checkpoint import Checkpoint

PATIENT_DEATHS = 12
"""Unclean ends after which a trial counts even if the worker died along with the child that ran it: a container's
out-of-memory kill takes both (memory.oom.group, which Kubernetes sets since 1.28)."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is held against the records of one partition from its committed offset on.

    Attributes:
        deaths: unclean ends, one after the other, with these records in hand.
        until: the first offset that is not suspect.
        trials: how often a process died while the record at the committed offset ran alone; counted before the trial
            where the worker itself would die in it, after it where a child process would.
    """

    deaths: int
    until: int
    trials: int

    @property
    def in_child(self) -> bool:
        """Whether a trial should run in a child process, whose death costs no session.

        Most unclean ends are nobody's fault (a machine that went away, an impatient operator): a first one isn't
        worth loading the model a second time.
        """
        return self.deaths > 1

    @property
    def counts_beforehand(self) -> bool:
        """Whether a trial in a child process counts before it has run, as the worker may die in it too."""
        return self.deaths > PATIENT_DEATHS


def suspicion_of(checkpoint: Checkpoint | None, offset: int, end: int) -> Suspicion | None:
    """Return what a commit's checkpoint holds against the records from `offset` on; None where it is nothing.

    Args:
        checkpoint: what was committed with `offset`.
        offset: the committed offset.
        end: the offset after the partition's last record: none beyond it can have been in hand.
    """
    if checkpoint is None or checkpoint.until is None:
        return None
    deaths = checkpoint.deaths + (not checkpoint.clean)
    until = min(checkpoint.until, end)
    if deaths == 0 or until <= offset:
        return None
    return Suspicion(deaths, until, checkpoint.trials)

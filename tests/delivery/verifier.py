"""The verdict on a stream that has come to its end: is every text answered once, in order, and nothing left open?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tests.delivery.answers import Ledger, Source, id_of, read_answer
from tests.end_to_end.conftest import Stream
from tests.end_to_end.workers import wait_until
from tests.kafka_server.read_back import end_offsets, read_topic

SETTLE_S = 15.0
"""How long the broker may take to end what a dead worker left open."""
SHOWN = 20


@dataclass(frozen=True)
class Verdict:
    """What was found; all that names texts does so as `text <id> (<partition>:<offset> of the input)`.

    Attributes:
        texts: records of the input.
        answered: those that have an entity event or a dead letter.
        lost: those that have neither.
        doubled: those with more than one answer. Empty where repeats are allowed.
        out_of_order: those answered behind a later one of their partition, in the same partition of a topic.
        dead_letters: records set aside: the stage that the letter names.
        attempts: how often those were tried, as the letters say.
        repeats: answers beyond the first of each text.
        aborted: messages of aborted transactions that only a reader of the uncommitted sees.
        open_transactions: partitions in which a transaction is still open.
        faults: everything else that is wrong, a line each.
    """

    texts: int
    answered: int
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    out_of_order: tuple[str, ...]
    dead_letters: Mapping[Source, str] = field(default_factory=dict)
    attempts: Mapping[Source, int] = field(default_factory=dict)
    repeats: int = 0
    aborted: int = 0
    open_transactions: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    def assert_sound(self, *, dead_letters: Collection[Source] = ()) -> None:
        """Check that nothing is lost, doubled, inverted or left open, and that just those records are set aside.

        Raises:
            AssertionError: names the texts.
        """
        letters = {source: f"{source} ({stage})" for source, stage in self.dead_letters.items()}
        complaints = {
            "lost": self.lost,
            "doubled": self.doubled,
            "out of order": self.out_of_order,
            "set aside for no reason": [said for source, said in letters.items() if source not in set(dead_letters)],
            "not set aside": [str(source) for source in dead_letters if source not in letters],
            "transactions left open": self.open_transactions,
            "wrong besides": self.faults,
        }
        assert not any(complaints.values()), "\n".join(
            f"{len(found)} {what} of {self.texts} texts:\n{_listed(found)}"
            for what, found in complaints.items()
            if found
        )


def verify(stream: Stream, ids: Collection[object] | None = None, *, repeats_allowed: bool = False) -> Verdict:
    """Read a whole stream back once its workers are done with it, and judge it.

    Args:
        stream: its topics and its group.
        ids: the `id` of every text that was produced; where given, the input must hold just these, once each.
        repeats_allowed: an answer may come again (`at_least_once`), if it is the same then.
    """
    topics = (stream.entities, stream.dead_letters)
    still_open = _wait_for_open_transactions(stream, topics)
    ledger, faults = Ledger(), list[str]()
    seen, uncommitted = 0, 0
    for topic in topics:
        messages = stream.messages(topic)
        seen += len(messages)
        everything = len(read_topic(stream.bootstrap, topic, isolation="read_uncommitted"))
        uncommitted += everything
        if everything < len(messages):
            faults.append(f"{topic}: {len(messages)} messages read committed, only {everything} read uncommitted")
        for message in messages:
            ledger.take(read_answer(stream, message))
    texts = _texts(stream)
    if ids is not None:
        faults += _differences("produced", Counter(map(str, ids)), "in the input", Counter(map(str, texts.values())))
    faults += [
        f"text {texts.get(source)} ({source}): answered as text {answer.text_id}"
        for source, answer in ledger.answers.items()
        if source not in texts or answer.text_id not in (texts[source], None if answer.stage else texts[source])
    ]
    faults += _uncommitted_records(stream, texts)
    if repeats_allowed:
        faults += [f"another answer the second time: {line}" for line in ledger.differing]
    letters = [answer for answer in ledger.answers.values() if answer.stage is not None]
    return Verdict(
        texts=len(texts),
        answered=len(ledger.answers),
        lost=tuple(f"text {texts[source]} ({source})" for source in sorted(texts.keys() - ledger.answers.keys())),
        doubled=() if repeats_allowed else tuple(ledger.doubled),
        out_of_order=tuple(ledger.out_of_order),
        dead_letters={answer.source: str(answer.stage) for answer in letters},
        attempts={answer.source: answer.attempts for answer in letters},
        repeats=len(ledger.doubled),
        aborted=uncommitted - seen,
        open_transactions=still_open,
        faults=tuple(faults),
    )


def _texts(stream: Stream) -> dict[Source, str | None]:
    return {
        Source(message.partition() or 0, message.offset() or 0): id_of(message.value() or b"")
        for message in stream.messages(stream.texts)
    }


def _wait_for_open_transactions(stream: Stream, topics: Sequence[str]) -> tuple[str, ...]:
    """Return the partitions in which a transaction stays open although its producer's time is over."""

    def found() -> tuple[str, ...]:
        return tuple(
            f"{topic}-{number}: read committed ends at {end.last_stable}, read uncommitted at {end.high_watermark}"
            for topic in topics
            for number, end in end_offsets(stream.bootstrap, topic).items()
            if end.last_stable < end.high_watermark
        )

    try:
        wait_until(lambda: not found(), SETTLE_S, lambda: "open transactions")
    except TimeoutError:
        return found()
    return ()


def _uncommitted_records(stream: Stream, texts: Collection[Source]) -> list[str]:
    """Return what is wrong with the committed offsets: each must lie behind the last record and not behind the end.

    The two are the same offset unless the input ends with the marker of a transaction.
    """
    committed = stream.committed()
    wrong = []
    for number, end in end_offsets(stream.bootstrap, stream.texts).items():
        after_last = max((source.offset for source in texts if source.partition == number), default=-1) + 1
        at = committed[number].offset if number in committed else 0
        if not after_last <= at <= end.high_watermark:
            wrong.append(f"input partition {number}: committed {at}, the last text ends at {after_last}")
    return wrong


def _differences(one: str, these: Counter[str], other: str, those: Counter[str]) -> list[str]:
    return [f"text {text}: {one} but not {other}" for text in (these - those)] + [
        f"text {text}: {other} more often than {one}" for text in (those - these)
    ]


def _listed(lines: Sequence[str]) -> str:
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join(f"  {line}" for line in [*lines[:SHOWN], *more])

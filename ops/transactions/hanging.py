"""Open transactions on partitions that their coordinator no longer knows (KIP-664): nobody will ever end them.

A partition shows a transaction as open; its coordinator has no id for the producer, another epoch, or another set of
partitions. Both sides change while they are looked at, so partitions are looked at twice, with the coordinators in
between: what was open before and after, from the same offset, and unknown in between, hangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.fence.observe import look
from connectctl.ops.model.finding import Finding, Severity
from connectctl.ops.model.transactions import PartitionProducer, Place, Transaction
from connectctl.ops.model.verdicts import PRODUCERS, Code, Move, verdict
from connectctl.ops.transactions.decided import Decision, Outcome, unknown
from connectctl.ops.transactions.decisions import decisions

if TYPE_CHECKING:
    from connectctl.ops.edges.contract import TransactionCalls, TransactionLogReads

Open = dict[tuple[Place, int], PartitionProducer]
"""Open transactions by partition and producer id."""
NOT_ASKED = unknown("nobody looked")
BLOCKING = {
    "config": "A hanging transaction on the config topic stops connectors from starting.",
    "offsets": "A hanging transaction on the offsets topic stops connectors from starting.",
}


@dataclass(frozen=True)
class Hanging:
    """A transaction that hangs on ``place``. ``id`` is the transactional id that has the producer id now, if any has.

    ``role`` is what the topic is to a Connect cluster: config, offsets, status, or None. ``decision`` is how its
    coordinator had decided it.
    """

    place: Place
    producer: PartitionProducer
    id: str | None
    why: str
    role: str | None = None
    decision: Decision = NOT_ASKED

    def seconds(self, now: float) -> float | None:
        """Since when the producer wrote nothing more, ``now`` in seconds since the epoch."""
        return max(0.0, now - self.producer.last_timestamp / 1000) if self.producer.last_timestamp >= 0 else None

    @property
    def command(self) -> str:
        """What ends it: the commit that was decided, else an abort."""
        verb = Outcome.COMMIT if self.decision.outcome is Outcome.COMMIT else Outcome.ABORT
        where = f"--topic {self.place.topic} --partition {self.place.partition}"
        return f"connectctl transactions {verb} {where} --start-offset {self.producer.start_offset}"

    def as_json(self, now: float) -> dict[str, Any]:
        """The transaction as scripts get it."""
        seconds = self.seconds(now)
        return {
            "topic": self.place.topic,
            "partition": self.place.partition,
            "role": self.role,
            "producerId": self.producer.producer_id,
            "producerEpoch": self.producer.epoch,
            "coordinatorEpoch": self.producer.coordinator_epoch,
            "startOffset": self.producer.start_offset,
            "silentSeconds": None if seconds is None else round(seconds, 3),
            "formerTransactionalId": self.id,
            "why": self.why,
            "decided": self.decision.outcome,
            "decidedWhy": self.decision.why,
        }


@dataclass(frozen=True)
class Search:
    """What hangs, what could not be looked at, and how many partitions were."""

    found: tuple[Hanging, ...]
    partitions: int
    findings: tuple[Finding, ...] = ()


def search(
    calls: TransactionCalls,
    topics: Sequence[str] | None,
    roles: Mapping[str, str],
    log: TransactionLogReads | None = None,
) -> Search:
    """Look for hanging transactions on ``topics``, or on all; ``roles`` are those of the internal topics by name.

    How they were decided is looked up in ``log``, where it is given and something hangs.
    """
    places = calls.places(topics)
    before = calls.producers(places)
    open_before = opened(before)
    if not open_before:
        return Search((), len(places), unseen(before))
    listed = calls.listed(producer_ids=sorted({number for _, number in open_before}))
    owners = {listing.producer_id: listing.id for listing in listed.listings}
    described = look(calls, sorted(set(owners.values())))
    if listed.problems:
        # A coordinator that does not answer may know every one of them.
        return Search((), len(places), (*unseen(before), _no_verdict(listed.problems)))
    after = opened(calls.producers(sorted({place for place, _ in open_before})))
    found = hanging(open_before, owners, described, after)
    told = tuple(replace(each, role=roles.get(each.place.topic)) for each in found)
    if log is not None and told:
        answers = decisions(log, [(each.place, each.producer, each.id) for each in told])
        # A coordinator that is just taking its log over knows nothing as yet, and does not say so.
        answered = zip(told, answers, strict=True)
        told = tuple(replace(each, decision=answer) for each, answer in answered if not answer.running)
    return Search(told, len(places), (*unseen(before), *filter(None, map(blocking, told))))


def opened(producers: Mapping[Place, tuple[PartitionProducer, ...] | Code]) -> Open:
    """The open transactions among the producers of all partitions."""
    return {
        (place, each.producer_id): each
        for place, known in producers.items()
        if not isinstance(known, Code)
        for each in known
        if each.start_offset is not None
    }


def hanging(
    before: Open, owners: Mapping[int, str], described: Mapping[str, Transaction | Code], after: Open
) -> list[Hanging]:
    """Which open transactions their coordinator does not know. ``owners`` has the id of each producer id."""
    found = []
    for key, producer in sorted(before.items(), key=lambda item: item[0]):
        still = after.get(key)
        if still is None or (still.epoch, still.start_offset) != (producer.epoch, producer.start_offset):
            continue
        id = owners.get(producer.producer_id)
        why = _unknown(key[0], producer, None if id is None else described.get(id, Code.NO_ANSWER))
        if why is not None:
            found.append(Hanging(key[0], producer, id, why))
    return found


def _unknown(place: Place, producer: PartitionProducer, known: Transaction | Code | None) -> str | None:
    """Why the coordinator cannot end this transaction; None where it can, or where it did not answer."""
    if known is None or known is Code.TRANSACTIONAL_ID_NOT_FOUND:
        return "no coordinator knows its producer id"
    if isinstance(known, Code):
        return None
    if known.producer_id != producer.producer_id:
        return "its transactional id has another producer by now"
    if place not in known.partitions:
        return f"its coordinator has the id as {known.state}, without this partition"
    return None


def blocking(found: Hanging) -> Finding | None:
    """TXN001: a transaction hangs on the config or offsets topic: workers and tasks wait for its end before they start."""
    words = BLOCKING.get(found.role or "")
    if words is None:
        return None
    place = found.place
    return Finding("TXN001", Severity.ERROR, str(place), words, found.command)


def unseen(producers: Mapping[Place, Any]) -> tuple[Finding, ...]:
    """TXN002: partitions that could not be looked at, by topic and reason."""
    found: dict[tuple[str, Code], list[int]] = {}
    for place, known in producers.items():
        if isinstance(known, Code):
            found.setdefault((place.topic, known), []).append(place.partition)
    return tuple(
        Finding(
            "TXN002",
            Severity.WARNING,
            topic,
            f"{len(numbers)} of its partitions could not be looked at: {verdict(PRODUCERS, code).meaning}.",
            verdict(PRODUCERS, code).advice,
        )
        for (topic, code), numbers in sorted(found.items())
        if verdict(PRODUCERS, code).move is not Move.ABSENT
    )


def _no_verdict(problems: Mapping[int, Code]) -> Finding:
    """TXN003: a coordinator does not answer, so that no transaction can be said to hang."""
    brokers = ", ".join(f"broker {broker}: {code.name}" for broker, code in sorted(problems.items()))
    message = f"Not every coordinator answers ({brokers}), so that nothing can be said to hang."
    return Finding("TXN003", Severity.ERROR, "coordinators", message, "Look at the brokers, and try again.")


def pick(found: Iterable[Hanging], place: Place, start: int | None, producer_id: int | None) -> list[Hanging]:
    """The hanging transactions on ``place`` that begin at ``start`` and are of ``producer_id``, where those are given."""
    return [
        each
        for each in found
        if each.place == place
        and start in (None, each.producer.start_offset)
        and producer_id in (None, each.producer.producer_id)
    ]

"""Open transactions on partitions that their coordinator no longer knows (KIP-664): they are never ended.

A partition shows a transaction as open; its coordinator has no id for the producer, another epoch, or another set of
partitions. Both sides change while they are looked at, so partitions are looked at twice, with the coordinators in
between: what was open before and after, from the same offset, and unknown in between, hangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import Finding, some_of
from connectctl.ops.kafka.error_handling import PRODUCERS, Code, ErrorAction, verdict
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import TOPIC
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.kafka.visibility import (
    Complete,
    Gap,
    Reason,
    describe_id,
    gap_findings,
    not_authorized,
    read_topic,
    refused,
    whole,
)
from connectctl.ops.operations.fencing.observe import describe_ids
from connectctl.ops.operations.transactions import rules
from connectctl.ops.operations.transactions.outcome import DecidedOutcome, TransactionResult, unknown
from connectctl.ops.operations.transactions.outcome_lookup import decisions

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls, TransactionLogReads
    from connectctl.ops.kafka.visibility import Observation

Open = dict[tuple[TopicPartition, int], PartitionProducer]
"""Open transactions by partition and producer id."""
MOST_NAMED = 3
NOT_ASKED = unknown("not checked")
BLOCKING = {
    "config": "A hanging transaction on the config topic stops connectors from starting.",
    "offsets": "A hanging transaction on the offsets topic stops connectors from starting.",
}


@dataclass(frozen=True)
class Hanging:
    """A transaction that hangs on ``place``. ``id`` is the transactional id that has the producer id now, if any has.

    ``role`` is what the topic is to a Connect cluster: config, offsets, status, or None. ``decision`` is how its
    coordinator had decided it. Where it is not ``proven``, a coordinator may well have it, under an id that this principal
    is not allowed to see.
    """

    place: TopicPartition
    producer: PartitionProducer
    id: str | None
    why: str
    role: str | None = None
    decision: DecidedOutcome = NOT_ASKED
    proven: bool = True

    def seconds(self, now: float) -> float | None:
        """Since when the producer wrote nothing more, ``now`` in seconds since the epoch."""
        return max(0.0, now - self.producer.last_timestamp / 1000) if self.producer.last_timestamp >= 0 else None

    @property
    def command(self) -> str:
        """What ends it: the commit that was decided, else an abort."""
        verb = (
            TransactionResult.COMMIT if self.decision.outcome is TransactionResult.COMMIT else TransactionResult.ABORT
        )
        where = f"--topic {self.place.topic} --partition {self.place.partition}"
        return f"connectctl transactions {verb} {where} --start-offset {self.producer.start_offset}"

    def as_json(self, now: float) -> dict[str, Any]:
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
    """What hangs, what could not be looked at, and how many partitions were.

    ``unproven`` are transactions that look as if they hang, and may be those of ids that this principal does not see;
    ``gaps`` are what it does not see.
    """

    found: tuple[Hanging, ...]
    partitions: int
    findings: tuple[Finding, ...] = ()
    unproven: tuple[Hanging, ...] = ()
    gaps: tuple[Gap, ...] = ()

    def only_one(self, place: TopicPartition, start: int | None, producer_id: int | None) -> Hanging:
        """The one on ``place`` that begins at ``start`` and is of ``producer_id``, where those are given.

        Raises ``Refused`` where none hangs there, ``BadInput`` where several do.
        """
        found = pick((*self.found, *self.unproven), place, start, producer_id)
        if not found and self.gaps:
            raise refused(self.gaps, f"No transaction is proven to hang on {place}; nothing was done")
        if not found:
            raise Refused(
                f"No such transaction hangs on {place}; nothing was done",
                why="the open transaction is known to its coordinator, or no transaction is open",
                next_step="See connectctl transactions list --open; an open transaction is aborted by its id.",
                code="not-hanging",
            )
        if len(found) > 1:
            starts = ", ".join(
                f"producer {each.producer.producer_id} from offset {each.producer.start_offset}" for each in found
            )
            raise BadInput(f"Several transactions hang on {place}: {starts}", next_step="Give --producer-id.")
        return found[0]


def search(
    calls: TransactionCalls,
    topics: Sequence[str] | None,
    roles: Mapping[str, str],
    log: TransactionLogReads | None = None,
) -> Search:
    """Look for hanging transactions on ``topics``, or on all; ``roles`` are those of the internal topics by name.

    How they were decided is looked up in ``log``, where it is given and something hangs. Without a log, and where it may
    not be read, only a principal that provably sees every transactional id gets an answer.
    """
    wanted: Observation[list[TopicPartition]] = calls.all_places() if topics is None else Complete(calls.places(topics))
    places, not_seen = wanted.seen, gap_findings(wanted.gaps)
    if not places:
        whole(wanted, "the topics")
    before = calls.producers(places)
    refuse_unreadable(before)
    open_before = opened(before)
    if not open_before:
        return Search((), len(places), (*not_seen, *unseen(before)))
    listed = calls.listed(producer_ids=sorted({number for _, number in open_before}))
    owners = {listing.producer_id: listing.id for listing in listed.seen}
    described = describe_ids(calls, sorted(set(owners.values())))
    if silent := [gap for gap in listed.gaps if gap.reason is Reason.NO_ANSWER]:
        # A coordinator that does not answer may know every one of them.
        return Search((), len(places), (*not_seen, *unseen(before), _no_verdict(silent)), gaps=tuple(silent))
    after = opened(calls.producers(sorted({place for place, _ in open_before})))
    candidates = hanging(open_before, owners, described, after)
    found = tuple(replace(each, role=roles.get(each.place.topic)) for each in candidates)
    if log is not None and found:
        answers = decisions(log, [(each.place, each.producer, each.id) for each in found])
        # A coordinator that is just taking its log over knows nothing as yet, and does not say so.
        answered = zip(found, answers, strict=True)
        found = tuple(replace(each, decision=answer) for each, answer in answered if not answer.running)
    return _searched(found, listed.gaps, len(places), (*not_seen, *unseen(before)), read=log is not None)


def _searched(
    found: Sequence[Hanging], gaps: tuple[Gap, ...], partitions: int, findings: tuple[Finding, ...], *, read: bool
) -> Search:
    """What was found, with what is proven apart from what is not.

    No coordinator knows a producer id for certain where every id was seen, or where their log was read.
    """
    proven = [each for each in found if each.id is not None or not gaps or (read and each.decision.log_read)]
    doubtful = tuple(replace(each, proven=False) for each in found if each not in proven)
    missing = (Gap("hanging transactions", Reason.NOT_AUTHORIZED, read_topic(TOPIC)), *gaps) if doubtful else ()
    more = (*filter(None, map(blocking, proven)), *map(_not_proven, doubtful), *gap_findings(missing))
    return Search(tuple(proven), partitions, (*findings, *more), doubtful, missing)


def refuse_unreadable(answers: Mapping[TopicPartition, object]) -> None:
    """Raises ``NotAuthorized`` where this principal may read none of the partitions: nothing was seen."""
    if answers and all(each is Code.TOPIC_AUTHORIZATION_FAILED for each in answers.values()):
        topics = sorted({place.topic for place in answers})
        raise not_authorized(f"Not authorized to read {some_of(topics, MOST_NAMED)}", read_topic(topics[0]))


def opened(producers: Mapping[TopicPartition, tuple[PartitionProducer, ...] | Code]) -> Open:
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


def _unknown(place: TopicPartition, producer: PartitionProducer, known: Transaction | Code | None) -> str | None:
    """Why the coordinator cannot end this transaction; None where it can, or where it did not answer."""
    if known is None or known is Code.TRANSACTIONAL_ID_NOT_FOUND:
        return "no coordinator knows its producer id"
    if isinstance(known, Code):
        return None
    if known.producer_id != producer.producer_id:
        return "its transactional id has another producer now"
    if place not in known.partitions:
        return f"its coordinator has the id as {known.state}, without this partition"
    return None


def blocking(found: Hanging) -> Finding | None:
    words = BLOCKING.get(found.role or "")
    if words is None:
        return None
    place = found.place
    return rules.BLOCKING_TRANSACTION.found(str(place), words, found.command)


def unseen(producers: Mapping[TopicPartition, Any]) -> tuple[Finding, ...]:
    found: dict[tuple[str, Code], list[int]] = {}
    for place, known in producers.items():
        if isinstance(known, Code):
            found.setdefault((place.topic, known), []).append(place.partition)
    answers = ((topic, verdict(PRODUCERS, code, topic), numbers) for (topic, code), numbers in sorted(found.items()))
    return tuple(
        rules.UNREAD.found(topic, f"{len(numbers)} of its partitions could not be read: {said.meaning}.", said.advice)
        for topic, said, numbers in answers
        if said.move is not ErrorAction.ABSENT
    )


def _not_proven(found: Hanging) -> Finding:
    message = (
        f"Producer {found.producer.producer_id} has a transaction open since offset {found.producer.start_offset}; "
        "not proven to hang, because its coordinator may have it under an id that this principal does not see."
    )
    hint = f"Grant {read_topic(TOPIC)}, or {describe_id()}, and look again."
    return rules.NOT_PROVEN.found(str(found.place), message, hint)


def _no_verdict(silent: Iterable[Gap]) -> Finding:
    brokers = ", ".join(f"{gap.subject}: {gap.detail}" for gap in silent)
    message = f"Not every coordinator answers ({brokers}), so that nothing can be said to hang."
    return rules.NO_VERDICT.found("coordinators", message, "Check the brokers, and try again.")


def pick(found: Iterable[Hanging], place: TopicPartition, start: int | None, producer_id: int | None) -> list[Hanging]:
    """The hanging transactions on ``place`` that begin at ``start`` and are of ``producer_id``, where those are given."""
    return [
        each
        for each in found
        if each.place == place
        and start in (None, each.producer.start_offset)
        and producer_id in (None, each.producer.producer_id)
    ]

"""Finds hanging transactions (KIP-664): open ones on partitions that their coordinator does not
know and will never end.

A partition has an open transaction; its coordinator has no id for the producer, another epoch, or
other partitions. Both change during the observation, so partitions are read before and after the
coordinators. A transaction hangs if it is open from the same offset in both readings, and unknown
to its coordinator between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from connectctl.ops.clients.protocols import TransactionCalls, TransactionLogReads
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import Finding, some_of
from connectctl.ops.kafka.error_handling import PRODUCERS, Code, ErrorAction, verdict
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import TOPIC
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.kafka.visibility import (
    Complete,
    Gap,
    Observation,
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
from connectctl.ops.operations.transactions.outcome import (
    DecidedOutcome,
    TransactionResult,
    unknown,
)
from connectctl.ops.operations.transactions.outcome_lookup import decisions

Open = dict[tuple[TopicPartition, int], PartitionProducer]
"""Open transactions by partition and producer id."""
MOST_NAMED = 3
NOT_CHECKED = unknown("not checked")
BLOCKING = {
    "config": "A hanging transaction on the config topic stops connectors from starting.",
    "offsets": "A hanging transaction on the offsets topic stops connectors from starting.",
}


@dataclass(frozen=True)
class Hanging:
    """A transaction that hangs on the partition ``topic_partition``. ``id`` is the transactional id
    with its producer id, if any.

    ``role`` is the role of the topic in a Connect cluster: config, offsets, status, or None.
    ``decision`` is the decision of its coordinator. If it is not ``proven``, a coordinator may have
    it under an id that this principal may not describe.
    """

    topic_partition: TopicPartition
    producer: PartitionProducer
    id: str | None
    why: str
    role: str | None = None
    decision: DecidedOutcome = NOT_CHECKED
    proven: bool = True

    def seconds(self, now: float) -> float | None:
        """Return the seconds since the last write of the producer; ``now`` in seconds since the
        epoch.
        """
        return (
            max(0.0, now - self.producer.last_timestamp / 1000)
            if self.producer.last_timestamp >= 0
            else None
        )

    @property
    def command(self) -> str:
        """Return the command that ends it: a commit if that was decided, else an abort."""
        verb = (
            TransactionResult.COMMIT
            if self.decision.outcome is TransactionResult.COMMIT
            else TransactionResult.ABORT
        )
        where = f"--topic {self.topic_partition.topic} --partition {self.topic_partition.partition}"
        return f"connectctl transactions {verb} {where} --start-offset {self.producer.start_offset}"

    def as_json(self, now: float) -> dict[str, Any]:
        seconds = self.seconds(now)
        return {
            "topic": self.topic_partition.topic,
            "partition": self.topic_partition.partition,
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
    """The result of a search: the hanging transactions, the number of partitions, and the findings.

    ``unproven`` are transactions that hang unless they belong to ids that this principal may not
    describe; ``gaps`` are the missing observations.
    """

    found: tuple[Hanging, ...]
    partitions: int
    findings: tuple[Finding, ...] = ()
    unproven: tuple[Hanging, ...] = ()
    gaps: tuple[Gap, ...] = ()

    def exactly_one(
        self, partition: TopicPartition, start: int | None, producer_id: int | None
    ) -> Hanging:
        """Return the only one on ``partition`` that begins at ``start`` and is of ``producer_id``,
        if these are given.

        Raises ``Refused`` if none hangs there, ``BadInput`` if several do.
        """
        found = matching((*self.found, *self.unproven), partition, start, producer_id)
        if not found and self.gaps:
            raise refused(
                self.gaps, f"No transaction is proven to hang on {partition}; nothing was done"
            )
        if not found:
            raise Refused(
                f"No such transaction hangs on {partition}; nothing was done",
                why="the open transaction is known to its coordinator, or no transaction is open",
                next_step="See connectctl transactions list --open; an open transaction is "
                "aborted by its id.",
                code="not-hanging",
            )
        if len(found) > 1:
            starts = ", ".join(
                f"producer {transaction.producer.producer_id} from offset "
                f"{transaction.producer.start_offset}"
                for transaction in found
            )
            raise BadInput(
                f"Several transactions hang on {partition}: {starts}",
                next_step="Give --producer-id.",
            )
        return found[0]


def search(
    calls: TransactionCalls,
    topics: Sequence[str] | None,
    roles: Mapping[str, str],
    log: TransactionLogReads | None = None,
) -> Search:
    """Return the hanging transactions on ``topics``, or on all; ``roles`` are the roles of the
    internal topics by name.

    The decisions are looked up in ``log``, if it is given and a transaction hangs. If the log
    cannot be read, only a principal that may describe all transactional ids gets proven results.
    """
    requested: Observation[list[TopicPartition]] = (
        calls.all_topic_partitions() if topics is None else Complete(calls.topic_partitions(topics))
    )
    partitions, not_seen = requested.seen, gap_findings(requested.gaps)
    if not partitions:
        whole(requested, "the topics")
    before = calls.producers(partitions)
    refuse_unreadable(before)
    open_before = open_transactions(before)
    if not open_before:
        return Search((), len(partitions), (*not_seen, *unread_findings(before)))
    listed = calls.listed(producer_ids=sorted({number for _, number in open_before}))
    owners = {listing.producer_id: listing.id for listing in listed.seen}
    described = describe_ids(calls, sorted(set(owners.values())))
    if silent := [gap for gap in listed.gaps if gap.reason is Reason.NO_ANSWER]:
        # A coordinator that does not answer may know all of them.
        return Search(
            (),
            len(partitions),
            (*not_seen, *unread_findings(before), _no_verdict(silent)),
            gaps=tuple(silent),
        )
    after = open_transactions(calls.producers(sorted({partition for partition, _ in open_before})))
    candidates = hanging(open_before, owners, described, after)
    found = tuple(
        replace(transaction, role=roles.get(transaction.topic_partition.topic))
        for transaction in candidates
    )
    if log is not None and found:
        answers = decisions(
            log,
            [
                (transaction.topic_partition, transaction.producer, transaction.id)
                for transaction in found
            ],
        )
        # A coordinator that is still loading its log reports no transaction, and no error.
        answered = zip(found, answers, strict=True)
        found = tuple(
            replace(transaction, decision=answer)
            for transaction, answer in answered
            if not answer.running
        )
    return _searched(
        found,
        listed.gaps,
        len(partitions),
        (*not_seen, *unread_findings(before)),
        read=log is not None,
    )


def _searched(
    found: Sequence[Hanging],
    gaps: tuple[Gap, ...],
    partitions: int,
    findings: tuple[Finding, ...],
    *,
    read: bool,
) -> Search:
    """Return the result of a search, with proven and unproven transactions separated.

    It is proven that no coordinator has a producer id if every id was described, or if their log
    was read.
    """
    proven = [
        transaction
        for transaction in found
        if transaction.id is not None or not gaps or (read and transaction.decision.log_read)
    ]
    doubtful = tuple(
        replace(transaction, proven=False) for transaction in found if transaction not in proven
    )
    missing = (
        (Gap("hanging transactions", Reason.NOT_AUTHORIZED, read_topic(TOPIC)), *gaps)
        if doubtful
        else ()
    )
    more = (
        *filter(None, map(blocking, proven)),
        *map(_not_proven, doubtful),
        *gap_findings(missing),
    )
    return Search(tuple(proven), partitions, (*findings, *more), doubtful, missing)


def refuse_unreadable(answers: Mapping[TopicPartition, object]) -> None:
    """Raise ``NotAuthorized`` if this principal may not read any of the partitions."""
    if answers and all(answer is Code.TOPIC_AUTHORIZATION_FAILED for answer in answers.values()):
        topics = sorted({partition.topic for partition in answers})
        raise not_authorized(
            f"Not authorized to read {some_of(topics, MOST_NAMED)}", read_topic(topics[0])
        )


def open_transactions(
    producers: Mapping[TopicPartition, tuple[PartitionProducer, ...] | Code],
) -> Open:
    return {
        (partition, producer.producer_id): producer
        for partition, known in producers.items()
        if not isinstance(known, Code)
        for producer in known
        if producer.start_offset is not None
    }


def hanging(
    before: Open,
    owners: Mapping[int, str],
    described: Mapping[str, Transaction | Code],
    after: Open,
) -> list[Hanging]:
    """Return the open transactions that their coordinator does not know. ``owners`` has the id of
    each producer id.
    """
    found = []
    for key, producer in sorted(before.items(), key=lambda item: item[0]):
        still = after.get(key)
        if still is None or (still.epoch, still.start_offset) != (
            producer.epoch,
            producer.start_offset,
        ):
            continue
        id = owners.get(producer.producer_id)
        why = _why_unknown(
            key[0], producer, None if id is None else described.get(id, Code.NO_ANSWER)
        )
        if why is not None:
            found.append(Hanging(key[0], producer, id, why))
    return found


def _why_unknown(
    partition: TopicPartition, producer: PartitionProducer, known: Transaction | Code | None
) -> str | None:
    """Return why the coordinator cannot end this transaction; None if it can, or if it did not
    answer.
    """
    if known is None or known is Code.TRANSACTIONAL_ID_NOT_FOUND:
        return "no coordinator knows its producer id"
    if isinstance(known, Code):
        return None
    if known.producer_id != producer.producer_id:
        return "its transactional id has another producer now"
    if partition not in known.partitions:
        return f"its coordinator has the id as {known.state}, without this partition"
    return None


def blocking(found: Hanging) -> Finding | None:
    message = BLOCKING.get(found.role or "")
    if message is None:
        return None
    partition = found.topic_partition
    return rules.BLOCKING_TRANSACTION.found(str(partition), message, found.command)


def unread_findings(producers: Mapping[TopicPartition, Any]) -> tuple[Finding, ...]:
    found: dict[tuple[str, Code], list[int]] = {}
    for partition, known in producers.items():
        if isinstance(known, Code):
            found.setdefault((partition.topic, known), []).append(partition.partition)
    answers = (
        (topic, verdict(PRODUCERS, code, topic), numbers)
        for (topic, code), numbers in sorted(found.items())
    )
    return tuple(
        rules.UNREAD.found(
            topic,
            f"{len(numbers)} of its partitions could not be read: {answer.meaning}.",
            answer.advice,
        )
        for topic, answer, numbers in answers
        if answer.move is not ErrorAction.ABSENT
    )


def _not_proven(found: Hanging) -> Finding:
    message = (
        f"Producer {found.producer.producer_id} has a transaction open since offset "
        f"{found.producer.start_offset}; not proven to hang, because its coordinator may have it "
        "under an id that this principal does not see."
    )
    hint = f"Grant {read_topic(TOPIC)}, or {describe_id()}, and look again."
    return rules.NOT_PROVEN.found(str(found.topic_partition), message, hint)


def _no_verdict(silent: Iterable[Gap]) -> Finding:
    brokers = ", ".join(f"{gap.subject}: {gap.detail}" for gap in silent)
    message = f"Not every coordinator answers ({brokers}), so that nothing can be said to hang."
    return rules.NO_VERDICT.found("coordinators", message, "Check the brokers, and try again.")


def matching(
    found: Iterable[Hanging], partition: TopicPartition, start: int | None, producer_id: int | None
) -> list[Hanging]:
    """Return the hanging transactions on ``partition`` that begin at ``start`` and are of
    ``producer_id``, if these are given.
    """
    return [
        transaction
        for transaction in found
        if transaction.topic_partition == partition
        and start in (None, transaction.producer.start_offset)
        and producer_id in (None, transaction.producer.producer_id)
    ]

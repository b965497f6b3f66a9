"""Determines the decision of a coordinator on a hanging transaction, from its log and the markers
in the partition.

The log has the transactions of the producer that included the partition. A transaction whose marker
precedes the open records in the partition is complete, and so are all before it. The open records
belong to one of the remaining transactions: one was decided, and its marker was lost (KAFKA-20734).
Without remaining transactions, the records were written after the marker of their own transaction
(KIP-890), and none of them is committed. If there is a doubt, the decision is unknown.

Compaction keeps the newest record of each id, and may have removed the ``Prepare…`` record of a
transaction. Only this record has the decision and the partitions: ``Complete…`` records have no
partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.kafka.acls import Right
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import LogEntry

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import PrecedingLog
    from connectctl.ops.kafka.batch_headers import Marker
    from connectctl.ops.kafka.transactions import PartitionProducer

CLOCKS_MS = 10
"""The maximum difference of brokers' clocks: smaller intervals prove no order."""
BY_HAND_MS = 10_000
"""A marker with the records' own epoch that is later than this after the decision was written with
WriteTxnMarkers by a user.
"""
_OWN_EPOCHS = 2
"""The first transaction version with an own epoch for every transaction (KIP-890)."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A transaction that began at ``started_ms``, and that its coordinator decided to commit or to
    abort at ``at_ms``.

    ``epoch`` is the epoch of its records, ``marker_epoch`` the epoch of its markers. ``own_epoch``:
    no other transaction has the epoch. Times are in milliseconds since the epoch, by the
    coordinator's clock.
    """

    epoch: int
    marker_epoch: int
    commit: bool
    topic_partitions: frozenset[TopicPartition]
    started_ms: int
    at_ms: int
    own_epoch: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """A transaction that is not decided yet."""

    epoch: int
    topic_partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A transaction that ended with an unknown decision. The epoch of its records is ``epoch``, or
    one less.
    """

    epoch: int


@dataclass(frozen=True, slots=True)
class Initialised:
    """The producer was initialized with ``epoch``; its earlier records have older epochs."""

    epoch: int


Event = Decided | Running | Forgotten | Initialised


def history(entries: Iterable[LogEntry], producer_id: int) -> list[Event]:
    """Return the events of the producer id, the oldest first. ``entries`` of one id are in the
    order of the log.
    """
    found: list[Event] = []
    running: LogEntry | None = None
    prepared = False
    for entry in entries:
        if entry.producer_id != producer_id:
            # another producer of the id, after its epochs were exhausted or it had expired
            continue
        match entry.state:
            case "Ongoing":
                running, prepared = entry, False
            case "PrepareCommit" | "PrepareAbort":
                found.append(_decided(entry, running))
                running, prepared = None, True
            case "CompleteCommit" | "CompleteAbort":
                if not prepared:
                    own_epoch = entry.client_version >= _OWN_EPOCHS
                    found.append(Forgotten(entry.epoch - 1 if own_epoch else entry.epoch))
                running, prepared = None, False
            case "Empty":
                found.append(Initialised(entry.epoch))
    if running is not None:
        found.append(Running(running.epoch, running.topic_partitions))
    return found


def _decided(entry: LogEntry, running: LogEntry | None) -> Decided:
    commit = entry.state == "PrepareCommit"
    if running is not None:
        epoch, own_epoch = running.epoch, running.client_version >= _OWN_EPOCHS
    else:
        # A client commits, and its version determines the increment of the epoch. The coordinator
        # aborts after the time-out, increments the epoch once more, and writes its own version: the
        # records may have an older epoch than computed here. They are not found then, and their
        # decision stays unknown.
        version = entry.client_version
        epoch, own_epoch = entry.epoch - (version >= _OWN_EPOCHS), commit and version >= _OWN_EPOCHS
    return Decided(
        epoch,
        entry.epoch,
        commit,
        entry.topic_partitions,
        entry.started_ms,
        entry.updated_ms,
        own_epoch,
    )


def decided_with(past: Sequence[Event], partition: TopicPartition, newest: int) -> list[Decided]:
    """Return the decided transactions with the partition whose records are not newer than the epoch
    ``newest``.
    """
    return [
        event
        for event in past
        if isinstance(event, Decided)
        and partition in event.topic_partitions
        and event.epoch <= newest
    ]


class TransactionResult(StrEnum):
    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class DecidedOutcome:
    """The decision on a transaction; ``outcome`` is None if it is unknown. ``why`` follows
    "because".

    ``running``: its coordinator still has it, and will end it. ``log_read`` is False if the
    transaction log, which has every id, could not be read. ``right`` is the missing right, if it is
    the reason for an unknown outcome.
    """

    outcome: TransactionResult | None
    why: str
    running: bool = False
    log_read: bool = True
    right: Right | None = None


def unknown(why: str, right: Right | None = None) -> DecidedOutcome:
    return DecidedOutcome(None, why, right=right)


def unread(why: str, right: Right | None = None) -> DecidedOutcome:
    return DecidedOutcome(None, why, log_read=False, right=right)


def decide(
    past: Sequence[Event],
    partition: TopicPartition,
    producer: PartitionProducer,
    preceding: PrecedingLog,
) -> DecidedOutcome:
    """Return the decision on the open transaction of ``producer`` on ``partition``.

    ``past`` is the history of the producer, the oldest event first; ``preceding`` are the first
    batch and the marker before it.
    """
    first, last = preceding.epoch, producer.epoch
    if first is None:
        return unknown("its first batch is missing")
    undelivered: list[Decided] = []
    for event in reversed(past):
        step = _step(event, partition, first, last, preceding)
        if isinstance(step, DecidedOutcome):
            return step
        if step is _Continuation.DONE:
            break
        if isinstance(step, Decided):
            undelivered.append(step)
    else:
        # The log begins here. With an own epoch for each transaction, the records cannot belong to
        # another one.
        if not (undelivered and undelivered[-1].own_epoch and undelivered[-1].epoch == first):
            return unknown("the transaction log does not reach back far enough")
    return _outcome_of(undelivered, {first, last}, preceding)


class _Continuation(Enum):
    """The consequence of a transaction for the older ones: continue, or none of them can have
    written the open records.
    """

    ON = 0
    DONE = 1


def _step(
    event: Event, partition: TopicPartition, first: int, last: int, preceding: PrecedingLog
) -> DecidedOutcome | Decided | _Continuation:
    """Return the result of the next older event: a final outcome, a transaction whose records may
    be open, or the continuation.
    """
    match event:
        case Running(epoch, partitions):
            # A transaction without the partition is irrelevant; one of a newer epoch has not
            # written to it.
            is_own = partition in partitions and first <= epoch <= last
            return (
                DecidedOutcome(None, "its coordinator has not decided yet", running=True)
                if is_own
                else _Continuation.ON
            )
        case Initialised(epoch):
            # Epochs only increase in a partition: a transaction with an older epoch than the first
            # open batch is not open.
            return _Continuation.DONE if epoch <= first else _Continuation.ON
        case Forgotten(epoch):
            return (
                _Continuation.DONE
                if epoch < first
                else unknown("compaction has removed what its coordinator decided")
            )
        case Decided():
            if event.epoch < first:
                return _Continuation.DONE
            # With version 1 many transactions have the same epoch: one without this partition is
            # irrelevant.
            if partition not in event.topic_partitions or event.epoch > last:
                return _Continuation.ON
            return _ended(event, preceding)


def _ended(decided: Decided, preceding: PrecedingLog) -> DecidedOutcome | Decided | _Continuation:
    """Return ``DONE`` if the marker of the transaction is in the partition, the transaction itself
    if it is not.
    """
    if preceding.marker is None:
        if decided.started_ms < preceding.since_ms:
            lacking = f": {preceding.right} is missing" if preceding.right else ""
            return unknown(
                f"the partition cannot be searched for an earlier marker{lacking}", preceding.right
            )
        return decided
    carried_out = _carried_out(decided, preceding.marker)
    if carried_out is None:
        return unknown("the marker before it is too close in time to identify its transaction")
    return _Continuation.DONE if carried_out else decided


def _carried_out(decided: Decided, marker: Marker) -> bool | None:
    """Return whether the newest marker of the producer belongs to this transaction or a later one;
    None if unknown.
    """
    if marker.epoch != decided.epoch or decided.marker_epoch != decided.epoch:
        # The epoch decides, because it was incremented at the end (version 2, and an abort that
        # fences) or later. The marker of the previous transaction may have the epoch of these
        # records; otherwise only a marker of a user has it.
        by_hand = marker.epoch == decided.epoch and marker.timestamp > decided.at_ms + BY_HAND_MS
        return marker.epoch >= decided.marker_epoch or by_hand
    # Version 1 and the same epoch: the previous marker is older than the beginning, the own one
    # newer than the decision. The timestamps may be of two brokers. The result is wrong only if
    # their clocks differ by more than the duration.
    if marker.timestamp >= decided.at_ms:
        return True if marker.timestamp - decided.started_ms >= CLOCKS_MS else None
    if marker.timestamp <= decided.started_ms:
        return False if decided.at_ms - marker.timestamp >= CLOCKS_MS else None
    return None


def _outcome_of(
    undelivered: Sequence[Decided], epochs: set[int], preceding: PrecedingLog
) -> DecidedOutcome:
    """Return the decision on open records of ``epochs``; the transactions ``undelivered`` have no
    marker in the partition.
    """
    if not undelivered:
        marker = preceding.marker
        after = f", after the marker at offset {marker.offset}" if marker else ""
        return DecidedOutcome(
            TransactionResult.ABORT,
            f"its records came when no transaction had the partition{after}",
        )
    if epochs - {decided.epoch for decided in undelivered}:
        return unknown("records of another epoch are open with it")
    if len({decided.commit for decided in undelivered}) > 1:
        return unknown("several transactions are open as one, and were decided differently")
    outcome = TransactionResult.COMMIT if undelivered[0].commit else TransactionResult.ABORT
    return DecidedOutcome(
        outcome, f"its coordinator decided to {outcome} it, and the marker is not in the partition"
    )

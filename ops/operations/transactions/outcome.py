"""How a coordinator had decided a transaction that hangs: its log knows, together with the markers in the partition.

The log says which transactions of the producer had the partition. Those whose marker is in the partition before the open
records were carried out, and so was everything before them. The open records are of those that are left: of one that was
decided and whose marker was lost (KAFKA-20734), or of none at all. The latter came late, after the marker of their own
transaction (KIP-890): nothing that was committed is among them. Whatever leaves a doubt makes the decision not known.

Compaction leaves the newest record of each id, and may have taken the ``Prepare…`` record of a transaction, the only one
that says how it was decided and where it wrote: ``Complete…`` records have no partitions.
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
"""By how much brokers' clocks may differ: what is nearer proves no order."""
BY_HAND_MS = 10_000
"""From so long after the decision on, a marker with the records' own epoch was written by hand (WriteTxnMarkers)."""
_OWN_EPOCHS = 2
"""The transaction version from which on every transaction has an epoch of its own (KIP-890)."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A transaction that its coordinator decided to commit, or to abort, at ``at_ms``, and began at ``started_ms``.

    ``epoch`` is that of its records, ``marker_epoch`` that of its markers. ``own_epoch``: no other has that epoch. Times
    are in milliseconds since the epoch, by the coordinator's clock.
    """

    epoch: int
    marker_epoch: int
    commit: bool
    places: frozenset[TopicPartition]
    started_ms: int
    at_ms: int
    own_epoch: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """A transaction that is not decided yet."""

    epoch: int
    places: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A transaction of which only is known that it ended. Its records have ``epoch``, or one below."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Initialised:
    """The producer got ``epoch``; all that it did before is of older epochs."""

    epoch: int


Event = Decided | Running | Forgotten | Initialised


def history(entries: Iterable[LogEntry], producer_id: int) -> list[Event]:
    """What happened to the producer id, the oldest first. ``entries`` are in the order of the log, of one id."""
    found: list[Event] = []
    running: LogEntry | None = None
    prepared = False
    for entry in entries:
        if entry.producer_id != producer_id:
            continue  # of the same id after its epochs ran out, or after it expired
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
        found.append(Running(running.epoch, running.places))
    return found


def _decided(entry: LogEntry, running: LogEntry | None) -> Decided:
    commit = entry.state == "PrepareCommit"
    if running is not None:
        epoch, own_epoch = running.epoch, running.client_version >= _OWN_EPOCHS
    else:
        # A commit is a client's, whose version says by how much the epoch was moved. An abort for its time-out is the
        # coordinator's, which moves the epoch once more and writes its own version: its records may be older than this.
        # They are not found then, and nothing is said of them.
        version = entry.client_version
        epoch, own_epoch = entry.epoch - (version >= _OWN_EPOCHS), commit and version >= _OWN_EPOCHS
    return Decided(epoch, entry.epoch, commit, entry.places, entry.started_ms, entry.updated_ms, own_epoch)


def decided_with(past: Sequence[Event], partition: TopicPartition, newest: int) -> list[Decided]:
    """The decided transactions that had the partition and whose records are not newer than the epoch ``newest``."""
    return [
        event for event in past if isinstance(event, Decided) and partition in event.places and event.epoch <= newest
    ]


class TransactionResult(StrEnum):
    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class DecidedOutcome:
    """How a transaction was decided; ``outcome`` is None where that is not known. ``why`` follows "because".

    With ``running`` its coordinator still has it, and will end it. ``log_read`` is False where the transaction log, which
    knows of every id, could not be read. ``right`` is the missing one, where that is why it is not known.
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
    past: Sequence[Event], partition: TopicPartition, producer: PartitionProducer, preceding: PrecedingLog
) -> DecidedOutcome:
    """How the open transaction of ``producer`` on ``place`` was decided. ``past`` is its history, the oldest first."""
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
        # The log begins here. With an epoch for each transaction there is no other whose records these could be.
        if not (undelivered and undelivered[-1].own_epoch and undelivered[-1].epoch == first):
            return unknown("the transaction log does not reach back far enough")
    return _outcome_of(undelivered, {first, last}, preceding)


class _Continuation(Enum):
    """What a transaction means for those before it: look on, or no older one can have written what is open."""

    ON = 0
    DONE = 1


def _step(
    event: Event, partition: TopicPartition, first: int, last: int, preceding: PrecedingLog
) -> DecidedOutcome | Decided | _Continuation:
    """What the next older transaction means: the end of it, or that its records are open, or nothing."""
    match event:
        case Running(epoch, partitions):
            # What another transaction wrote elsewhere is no concern; one of a newer epoch has not written here.
            is_own = partition in partitions and first <= epoch <= last
            return (
                DecidedOutcome(None, "its coordinator has not decided yet", running=True)
                if is_own
                else _Continuation.ON
            )
        case Initialised(epoch):
            # Epochs only grow in a partition: all that is older than its first open batch is not part of it.
            return _Continuation.DONE if epoch <= first else _Continuation.ON
        case Forgotten(epoch):
            return (
                _Continuation.DONE if epoch < first else unknown("compaction has removed what its coordinator decided")
            )
        case Decided():
            if event.epoch < first:
                return _Continuation.DONE
            # An epoch has many transactions with version 1: one that did not name this partition is another.
            if partition not in event.places or event.epoch > last:
                return _Continuation.ON
            return _ended(event, preceding)


def _ended(decided: Decided, preceding: PrecedingLog) -> DecidedOutcome | Decided | _Continuation:
    """``DONE`` where the transaction's end is in the partition already, the transaction itself where it is not."""
    if preceding.marker is None:
        if decided.started_ms < preceding.since_ms:
            lacking = f": {preceding.right} is missing" if preceding.right else ""
            return unknown(f"the partition cannot be searched for an earlier marker{lacking}", preceding.right)
        return decided
    carried_out = _carried_out(decided, preceding.marker)
    if carried_out is None:
        return unknown("the marker before it is too close in time to identify its transaction")
    return _Continuation.DONE if carried_out else decided


def _carried_out(decided: Decided, marker: Marker) -> bool | None:
    """Whether the newest marker of the producer is this transaction's or a later one's; None where that is open."""
    if marker.epoch != decided.epoch or decided.marker_epoch != decided.epoch:
        # The epoch tells, because it moved at the end (version 2, and an abort that fences) or since: the marker of the
        # transaction before this one may have the epoch of this one's records. Only a marker written by hand has it, too.
        by_hand = marker.epoch == decided.epoch and marker.timestamp > decided.at_ms + BY_HAND_MS
        return marker.epoch >= decided.marker_epoch or by_hand
    # Version 1, and the same epoch: the marker before is older than the beginning, its own younger than the decision.
    # The clocks are of two brokers, maybe. To be misled they would have to differ by more than the transaction took.
    if marker.timestamp >= decided.at_ms:
        return True if marker.timestamp - decided.started_ms >= CLOCKS_MS else None
    if marker.timestamp <= decided.started_ms:
        return False if decided.at_ms - marker.timestamp >= CLOCKS_MS else None
    return None


def _outcome_of(undelivered: Sequence[Decided], epochs: set[int], preceding: PrecedingLog) -> DecidedOutcome:
    """The decision where these transactions have no marker yet, and the open records are of these epochs."""
    if not undelivered:
        marker = preceding.marker
        after = f", after the marker at offset {marker.offset}" if marker else ""
        return DecidedOutcome(TransactionResult.ABORT, f"its records came when no transaction had the partition{after}")
    if epochs - {decided.epoch for decided in undelivered}:
        return unknown("records of another epoch are open with it")
    if len({decided.commit for decided in undelivered}) > 1:
        return unknown("several transactions are open as one, and were decided differently")
    outcome = TransactionResult.COMMIT if undelivered[0].commit else TransactionResult.ABORT
    return DecidedOutcome(outcome, f"its coordinator decided to {outcome} it, and the marker is not in the partition")

"""How a coordinator had decided a transaction that hangs: its log knows, together with the markers in the partition.

The log says which transactions of the producer had the partition. Those whose marker is in the partition before the open
records were carried out, and so was everything before them. The open records are of those that are left: of one that was
decided and whose marker was lost (KAFKA-20734), or of none at all. The latter came late, after the marker of their own
transaction (KIP-890): nothing that was committed is among them. Whatever leaves a doubt makes the decision not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.operations.transactions.producer_history import Decided, Event, Forgotten, Initialised, Running

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import PrecedingLog
    from connectctl.ops.kafka.batch_headers import Marker
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.kafka.transactions import PartitionProducer

CLOCKS_MS = 10
"""By how much brokers' clocks may differ: what is nearer proves no order."""
BY_HAND_MS = 10_000
"""From so long after the decision on, a marker with the records' own epoch was written by hand (WriteTxnMarkers)."""


class TransactionResult(StrEnum):
    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class DecidedOutcome:
    """How a transaction was decided; ``outcome`` is None where that is not known. ``why`` follows "because".

    With ``running`` its coordinator still has it, and will end it. ``log_read`` is False where the transaction log, which
    knows of every id, could not be read.
    """

    outcome: TransactionResult | None
    why: str
    running: bool = False
    log_read: bool = True


def unknown(why: str) -> DecidedOutcome:
    return DecidedOutcome(None, why)


def unread(why: str) -> DecidedOutcome:
    return DecidedOutcome(None, why, log_read=False)


def decide(
    past: Sequence[Event], place: TopicPartition, producer: PartitionProducer, behind: PrecedingLog
) -> DecidedOutcome:
    """How the open transaction of ``producer`` on ``place`` was decided. ``past`` is its history, the oldest first."""
    first, last = behind.epoch, producer.epoch
    if first is None:
        return unknown("its first batch is missing")
    left: list[Decided] = []
    for event in reversed(past):
        said = _step(event, place, first, last, behind)
        if isinstance(said, DecidedOutcome):
            return said
        if said is _Look.DONE:
            break
        if isinstance(said, Decided):
            left.append(said)
    else:
        # The log begins here. With an epoch for each transaction there is no other whose records these could be.
        if not (left and left[-1].own_epoch and left[-1].epoch == first):
            return unknown("the transaction log does not reach back far enough")
    return _of(left, {first, last}, behind)


class _Look(Enum):
    """What a transaction means for those before it: look on, or no older one can have written what is open."""

    ON = 0
    DONE = 1


def _step(
    event: Event, place: TopicPartition, first: int, last: int, behind: PrecedingLog
) -> DecidedOutcome | Decided | _Look:
    """What the next older transaction means: the end of it, or that its records are open, or nothing."""
    match event:
        case Running(epoch, places):
            # What another transaction wrote elsewhere is no concern; one of a newer epoch has not written here.
            ours = place in places and first <= epoch <= last
            return DecidedOutcome(None, "its coordinator has not decided yet", running=True) if ours else _Look.ON
        case Initialised(epoch):
            # Epochs only grow in a partition: all that is older than its first open batch is not part of it.
            return _Look.DONE if epoch <= first else _Look.ON
        case Forgotten(epoch):
            return _Look.DONE if epoch < first else unknown("compaction has removed what its coordinator decided")
        case Decided():
            if event.epoch < first:
                return _Look.DONE
            # An epoch has many transactions with version 1: one that did not name this partition is another.
            if place not in event.places or event.epoch > last:
                return _Look.ON
            return _ended(event, behind)


def _ended(one: Decided, behind: PrecedingLog) -> DecidedOutcome | Decided | _Look:
    """``DONE`` where the transaction's end is in the partition already, the transaction itself where it is not."""
    if behind.marker is None:
        if one.started_ms < behind.since_ms:
            return unknown("the partition cannot be searched for an earlier marker")
        return one
    carried_out = _carried_out(one, behind.marker)
    if carried_out is None:
        return unknown("the marker before it is too close in time to identify its transaction")
    return _Look.DONE if carried_out else one


def _carried_out(one: Decided, marker: Marker) -> bool | None:
    """Whether the newest marker of the producer is this transaction's or a later one's; None where that is open."""
    if marker.epoch != one.epoch or one.marker_epoch != one.epoch:
        # The epoch tells, because it moved at the end (version 2, and an abort that fences) or since: the marker of the
        # transaction before this one may have the epoch of this one's records. Only a marker written by hand has it, too.
        by_hand = marker.epoch == one.epoch and marker.timestamp > one.at_ms + BY_HAND_MS
        return marker.epoch >= one.marker_epoch or by_hand
    # Version 1, and the same epoch: the marker before is older than the beginning, its own younger than the decision.
    # The clocks are of two brokers, maybe. To be misled they would have to differ by more than the transaction took.
    if marker.timestamp >= one.at_ms:
        return True if marker.timestamp - one.started_ms >= CLOCKS_MS else None
    if marker.timestamp <= one.started_ms:
        return False if one.at_ms - marker.timestamp >= CLOCKS_MS else None
    return None


def _of(left: Sequence[Decided], epochs: set[int], behind: PrecedingLog) -> DecidedOutcome:
    """The decision where these transactions have no marker yet, and the open records are of these epochs."""
    if not left:
        marker = behind.marker
        after = f", after the marker at offset {marker.offset}" if marker else ""
        return DecidedOutcome(TransactionResult.ABORT, f"its records came when no transaction had the partition{after}")
    if epochs - {each.epoch for each in left}:
        return unknown("records of another epoch are open with it")
    if len({each.commit for each in left}) > 1:
        return unknown("several transactions are open as one, and were decided differently")
    outcome = TransactionResult.COMMIT if left[0].commit else TransactionResult.ABORT
    return DecidedOutcome(outcome, f"its coordinator decided to {outcome} it, and the marker is not in the partition")

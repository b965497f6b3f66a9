"""The transactions of one producer id, as ``__transaction_state`` still has them.

Compaction leaves the newest record of each id, and may have taken the ``Prepare…`` record of a transaction, the only one
that says how it was decided and where it wrote: ``Complete…`` records have no partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import LogEntry

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
                    own = entry.client_version >= _OWN_EPOCHS
                    found.append(Forgotten(entry.epoch - 1 if own else entry.epoch))
                running, prepared = None, False
            case "Empty":
                found.append(Initialised(entry.epoch))
    if running is not None:
        found.append(Running(running.epoch, running.places))
    return found


def _decided(entry: LogEntry, running: LogEntry | None) -> Decided:
    commit = entry.state == "PrepareCommit"
    if running is not None:
        epoch, own = running.epoch, running.client_version >= _OWN_EPOCHS
    else:
        # A commit is a client's, whose version says by how much the epoch was moved. An abort for its time-out is the
        # coordinator's, which moves the epoch once more and writes its own version: its records may be older than this.
        # They are not found then, and nothing is said of them.
        version = entry.client_version
        epoch, own = entry.epoch - (version >= _OWN_EPOCHS), commit and version >= _OWN_EPOCHS
    return Decided(epoch, entry.epoch, commit, entry.places, entry.started_ms, entry.updated_ms, own)


def of_place(past: Sequence[Event], place: TopicPartition, newest: int) -> list[Decided]:
    """The decided transactions that had the partition and whose records are not newer than the epoch ``newest``."""
    return [each for each in past if isinstance(each, Decided) and place in each.places and each.epoch <= newest]

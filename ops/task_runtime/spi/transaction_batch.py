"""The content of a transaction and the result of a task: values shared by the task loop and record
sources.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from connectctl.ops.kafka.copied_records import CopiedRecords
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.spi.metrics import Counters
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.task.progress import TaskProgress

MOST_LINES = 100
Offsets = Mapping[bytes, bytes | None]
"""Records of an offsets topic: raw key to raw value, None for a tombstone."""


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record to produce. With ``partition`` None, Java's partitioner chooses; ``timestamp`` is in
    ms.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class RecordLists:
    """Many records for one topic without headers and timestamps: a list of each part. ``keys`` and
    ``partitions`` are empty if no record has one; a missing partition is chosen as for
    ``ProducerRecord``.
    """

    topic: str
    values: list[bytes | None]
    keys: list[bytes | None] = field(default_factory=list)
    partitions: list[int | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the arguments of librdkafka: dictionaries with ``value``, and ``key`` and
        ``partition`` if present.
        """
        found: list[dict[str, Any]] = [{"value": value} for value in self.values]
        for name, column in (("key", self.keys), ("partition", self.partitions)):
            for message, each in zip(found, column, strict=False):
                if each is not None:
                    message[name] = each
        return found


@dataclass(frozen=True, slots=True)
class ColumnBatch:
    """Many records for one topic as columns, encoded as a record batch without a loop over records.
    ``describe_row`` names the row of the source by its number.
    """

    topic: str
    columns: RecordColumns
    describe_row: Callable[[int], str] | None = None

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.columns.messages()


@dataclass(frozen=True, slots=True)
class CopiedMessages:
    """Records read by librdkafka from another topic: they keep partition, key, value, headers and
    timestamp. One without a timestamp gets the time of sending."""

    topic: str
    messages: Sequence[Any]


@dataclass(frozen=True, slots=True)
class CopiedBatches:
    """Record batches of one topic of the source, for the same partitions of ``topic``.
    ``describe_record`` names a record of the source by its partition and its offset; ``count`` is
    called with whether batches were sent unopened, and how many.
    """

    topic: str
    batches: Sequence[CopiedRecords]
    describe_record: Callable[[int, int], str]
    count: Callable[[bool, int], None]

    def __len__(self) -> int:
        return sum(map(len, self.batches))


@dataclass(frozen=True, slots=True)
class TransactionBatch:
    """One transaction or a part of it: records and their offsets, in the form of the task's ledger.

    With ``abort`` the records are sent and aborted, and the offsets committed in a separate
    transaction, so that the source continues after the discarded records (KIP-618,
    "Connector-defined transaction boundaries"). With ``more`` the transaction continues with the
    next batch, whose offsets then cover all of it. ``describe_record`` names the source's record by
    its number in the order of ``records``, ``record_batches`` and ``copies``. ``polled`` is the
    time of the poll, by the monotonic clock; None is the time at which the batch is returned.
    ``copied_batches`` are for a transactional producer.

    ``read`` is the number of records for which a sink commits offsets, told before as ``Read``.
    ``refused`` is called if the consumer group has a newer generation, so that the offsets are to
    be returned again; where it is None, that is an unknown outcome like any other.
    """

    records: Sequence[ProducerRecord] = ()
    record_batches: Sequence[RecordLists | ColumnBatch] = ()
    offsets: Mapping[Any, Any] = field(default_factory=dict)
    abort: bool = False
    more: bool = False
    copies: Sequence[CopiedMessages] = ()
    describe_record: Callable[[int], str] | None = None
    polled: float | None = None
    copied_batches: Sequence[CopiedBatches] = ()
    read: int | None = None
    refused: Callable[[Exception], None] | None = None

    @property
    def fresh(self) -> int:
        """The number of records that the source returns for the first time."""
        return self.size if self.read is None else 0

    @property
    def topics(self) -> set[str]:
        records = {record.topic for record in self.records}
        many = (*self.record_batches, *self.copies, *self.copied_batches)
        return records | {each.topic for each in many}

    @property
    def size(self) -> int:
        """Return the number of records, without offsets."""
        copied = (copies.messages for copies in self.copies)
        many: Iterable[Sized] = (*self.record_batches, *copied, *self.copied_batches)
        return len(self.records) + sum(map(len, many))

    def record_name(self, number: int) -> str | None:
        """Return the name of the source's record with this number; None if unknown."""
        if self.describe_record is not None:
            return self.describe_record(number)
        number -= len(self.records)
        for bulk in self.record_batches:
            if 0 <= number < len(bulk):
                named = bulk.describe_row if isinstance(bulk, ColumnBatch) else None
                return None if named is None else named(number)
            number -= len(bulk)
        return None


@dataclass(frozen=True, slots=True)
class Read:
    """``fresh`` records were read, and nothing is to be written for them now."""

    fresh: int = 0


IDLE = Read()


@dataclass(frozen=True, slots=True)
class End:
    """No more records will follow."""

    fresh: ClassVar[int] = 0


END = End()
Event = TransactionBatch | Read | End
"""What a task's loop hears from its source, transform or sink."""


class RecordSource(Protocol):
    """The body of a task, whose events the loop handles one after the other: a source, a transform
    or a sink. No method is called during a call of another.
    """

    def resume(self, stored: Any) -> None:
        """Begin, or begin again, at the stored offsets: they determine whether pending records were
        committed. A consumer group member is stored offsets, too.
        """

    def next(self) -> Event:
        """Return the next event. Never blocks for longer than a poll."""

    def final_batch(self) -> TransactionBatch | None:
        """Return what is to be committed before the end, one transaction after the other; None if
        nothing is left that can be.
        """

    def committed(self, batch: TransactionBatch) -> None:
        """Note that ``batch``, with all before it that had ``more``, is committed, or aborted as
        requested.
        """


class TaskRecordSource(RecordSource, Protocol):
    """A record source of one task, for one lease."""

    @property
    def lag(self) -> int | None:
        """Return how much remains to be read; None if unknown. Only displayed."""

    @property
    def has_more(self) -> bool:
        """Return whether the source has or may have more records: until it has none, a task without
        records is not idle.
        """

    @property
    def producer_properties(self) -> Mapping[str, str]:
        """Default properties of librdkafka for these records; the connector's configuration
        overrides them.
        """

    def close(self) -> None:
        """Close the source."""


class StoredOffsets(Protocol):
    """The offsets that were committed when the task's producer was initialised."""

    def value(self, key: bytes) -> bytes | None:
        """Return the newest value of ``key``, a raw key of an offsets topic; None without one or
        for a tombstone.
        """

    def known(self) -> frozenset[bytes]:
        """Return the raw keys of this connector that have a value."""


class RefreshableOffsets(StoredOffsets, Protocol):
    """Stored offsets that can be read again."""

    def refresh(self, patience: float) -> None:
        """Read to the current end offset. Raises ``TimedOut`` if it is not reached within
        ``patience`` seconds.
        """

    def position(self, key: bytes) -> tuple[int, int] | None:
        """Return partition and offset of the newest record of ``key`` in its own partition, also of
        a tombstone.
        """


class EndReason(StrEnum):
    """Why a task ended. FENCED and STALE are normal: another task has taken over, or is about to.
    SLOW: its consumer group has taken its partitions, because it did not poll for
    ``max.poll.interval.ms``; it continues in the next lease.
    """

    ENDED = "ended"
    STOPPED = "stopped"
    FENCED = "fenced"
    STALE = "stale"
    SLOW = "slow"


@dataclass
class TaskStats(Counters):
    """A task's counters for its metrics, and its ``progress``."""

    doubts: list[str] = field(default_factory=list)
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)
    """The known ends of the offsets topics, as in ``TaskSpec.reached``."""
    progress: TaskProgress = field(default_factory=TaskProgress)
    sink: SinkMeter = field(default_factory=SinkMeter)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    """The newest messages of a sink's task for the user."""
    assigned: Collection[str] = ()
    """The partitions assigned to its group member, or assigned when the lease ended."""
    known: Collection[str] = ()
    """All partitions assigned to its member during the lease."""
    observe: Callable[[], None] = lambda: None
    """Brings ``reached``, ``unwritten`` and what belongs to them up to date."""

    def assign(self, partitions: Collection[object]) -> None:
        """Note that ``partitions`` are now all that its member is assigned."""
        self.assigned = {str(partition) for partition in partitions}
        self.known = {*self.known, *self.assigned}

    def commit(self, size: int) -> None:
        """Count a committed transaction with ``size`` records; one with offsets only has no
        size.
        """
        self.records += size
        self.transactions += 1
        self.meter.commit(size)
        if not size:
            return
        self.largest = max(self.largest, size)
        self.smallest = size if self.smallest is None else min(self.smallest, size)


@dataclass(frozen=True)
class TaskResult:
    """The end of a task, with details if there are any."""

    reason: EndReason
    stats: TaskStats
    detail: str | None = None

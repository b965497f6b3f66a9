"""What one transaction of a task holds, and how a task comes to its end: values that the kernel and its supplies share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from connectctl.ops.kafka.copied_records import CopiedRecords
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.spi.latency_meter import LatencyMeter
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.task.progress import TaskProgress

MOST_LINES = 100
Offsets = Mapping[bytes, bytes | None]
"""Records of an offsets topic: raw key to raw value, None for a tombstone."""


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record on its way to a topic. ``partition`` None leaves the choice to Java's partitioner; ``timestamp`` in ms."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class RecordLists:
    """Many records for one topic without headers and timestamps: a list of each part. ``keys`` and ``partitions`` are empty
    where no record has one; what is None or left out is chosen as for ``ProducerRecord``.
    """

    topic: str
    values: list[bytes | None]
    keys: list[bytes | None] = field(default_factory=list)
    partitions: list[int | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """As librdkafka takes them: dictionaries with ``value``, and ``key`` and ``partition`` where there is one."""
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
    """Records that were read from another topic, as librdkafka gave them: they keep partition, key, value, headers and
    timestamp. One without a timestamp gets the time at which it is sent.
    """

    topic: str
    messages: Sequence[Any]


@dataclass(frozen=True, slots=True)
class CopiedBatches:
    """Record batches of one topic of the source, for the same partitions of ``topic``. ``describe_record`` names a record of
    the source by its partition and its offset; ``count`` hears whether batches were sent unopened, and how many they were.
    """

    topic: str
    batches: Sequence[CopiedRecords]
    describe_record: Callable[[int, int], str]
    count: Callable[[bool, int], None]

    def __len__(self) -> int:
        return sum(map(len, self.batches))


@dataclass(frozen=True, slots=True)
class TransactionBatch:
    """One transaction: records, and the offsets that stand for them, as the task's ledger takes them.

    With ``abort`` the records are sent and aborted, and the offsets committed in a transaction of their own, so that the
    source continues behind what it did not want delivered (KIP-618, "Connector-defined transaction boundaries"). With
    ``more`` the transaction continues with the next step, whose offsets then stand for all of it. ``describe_record`` names
    the record of the source by its number in the order of ``records``, ``record_batches`` and ``copies``. ``origins`` are
    the parts of ``records`` with the input partitions that they were made of; empty where one producer writes them all.
    ``polled`` is when the records were, by the monotonic clock; None is when the step is given.
    ``copied_batches`` are for a producer of batches (``batch_copy_producer``).
    """

    records: Sequence[ProducerRecord] = ()
    record_batches: Sequence[RecordLists | ColumnBatch] = ()
    offsets: Mapping[Any, Any] = field(default_factory=dict)
    abort: bool = False
    more: bool = False
    copies: Sequence[CopiedMessages] = ()
    describe_record: Callable[[int], str] | None = None
    origins: Sequence[tuple[Any, TransactionBatch]] = ()
    polled: float | None = None
    copied_batches: Sequence[CopiedBatches] = ()

    @property
    def topics(self) -> set[str]:
        records = {record.topic for record in self.records}
        many = (*self.record_batches, *self.copies, *self.copied_batches)
        return records | {each.topic for each in many}

    @property
    def size(self) -> int:
        """How many records it has, offsets not counted."""
        copied = (copies.messages for copies in self.copies)
        many: Iterable[Sized] = (*self.record_batches, *copied, *self.copied_batches)
        return len(self.records) + sum(map(len, many))

    def record_name(self, number: int) -> str | None:
        """Which record of the source it is, by its number; None where unknown."""
        if self.describe_record is not None:
            return self.describe_record(number)
        number -= len(self.records)
        for bulk in self.record_batches:
            if 0 <= number < len(bulk):
                named = bulk.describe_row if isinstance(bulk, ColumnBatch) else None
                return None if named is None else named(number)
            number -= len(bulk)
        return None


class RecordSource(Protocol):
    """Where a task's records come from: a polled source, or the rows of a DataFrame."""

    def resume(self, stored: StoredOffsets) -> None:
        """Begin at the offsets that are stored, or begin again there: whatever was in hand has to be decided by them."""

    def next_batch(self) -> TransactionBatch | None:
        """What the next transaction holds; None where there is nothing now. Never blocks for longer than a poll."""

    def final_batch(self) -> TransactionBatch | None:
        """What to end with when nothing more will be asked for: the end of what is open, if it has a good one."""

    def committed(self, batch: TransactionBatch) -> None:
        """``next_batch``, with all before it that had ``more``, is committed for certain, or aborted as it wished."""

    @property
    def ended(self) -> bool:
        """Whether nothing will come any more."""


class TaskRecordSource(RecordSource, Protocol):
    """A supply that one task has for itself, for as long as a lease."""

    @property
    def lag(self) -> int | None:
        """How much is left to read, where that is known. For people only."""

    @property
    def has_more(self) -> bool:
        """Whether the source has more, or may have: while it does, a task that is given nothing is not idle."""

    @property
    def producer_properties(self) -> Mapping[str, str]:
        """librdkafka's properties that suit these records, where the connector's configuration says nothing else."""

    def close(self) -> None:
        """Let go of the source."""


class StoredOffsets(Protocol):
    """The offsets that were committed when the task's producer was initialised."""

    def value(self, key: bytes) -> bytes | None:
        """The newest value of ``key``, a raw key of an offsets topic; None where there is none, or a tombstone."""

    def known(self) -> frozenset[bytes]:
        """The raw keys of this connector that have a value."""


class RefreshableOffsets(StoredOffsets, Protocol):
    """Stored offsets that can be read again."""

    def refresh(self, patience: float) -> None:
        """Read to an end that is taken now. Raises ``TimedOut`` where it cannot be reached within ``patience`` seconds."""

    def position(self, key: bytes) -> tuple[int, int] | None:
        """Partition and offset of the newest record of ``key`` that was found in its place, be it a tombstone."""


class EndReason(StrEnum):
    """How a task came to its end. FENCED and STALE are normal: another one has taken over, or is about to."""

    ENDED = "ended"
    STOPPED = "stopped"
    FENCED = "fenced"
    STALE = "stale"


@dataclass
class TaskStats:
    """What a task did, for its metrics, and what it is ``progress``. Sizes are records per committed transaction."""

    records: int = 0
    transactions: int = 0
    aborted: int = 0
    instances: int = 0
    smallest: int | None = None
    largest: int = 0
    doubts: list[str] = field(default_factory=list)
    meter: TaskMeter = field(default_factory=TaskMeter)
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)
    """How far the offsets topics are known to reach, as ``TaskSpec.reached`` has it."""
    progress: TaskProgress = field(default_factory=TaskProgress)
    unwritten: Collection[str] = ()
    """The keys, as text, whose newest offset the global offsets topic behind a dedicated one may lack."""
    unwritten_because: str | None = None
    sink: SinkMeter = field(default_factory=SinkMeter)
    latency: LatencyMeter = field(default_factory=LatencyMeter)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    """What people should know of a sink's task, the newest of it."""
    assigned: Collection[str] = ()
    """The partitions that its member of the consumer group has, or had when the lease ended."""
    known: Collection[str] = ()
    """All that its member has had in the lease."""

    def assign(self, partitions: Collection[object]) -> None:
        """``partitions`` are all that its member has from now on."""
        self.assigned = {str(partition) for partition in partitions}
        self.known = {*self.known, *self.assigned}

    def commit(self, size: int) -> None:
        """A transaction with ``size`` records was committed; one of offsets alone has no size to count."""
        self.records += size
        self.transactions += 1
        self.meter.commit(size)
        if not size:
            return
        self.largest = max(self.largest, size)
        self.smallest = size if self.smallest is None else min(self.smallest, size)


@dataclass(frozen=True)
class TaskResult:
    """The end of a task, with the reason where there is one to tell."""

    reason: EndReason
    stats: TaskStats
    detail: str | None = None

"""What a person writes to get records into Kafka: connectors and tasks in the shape of Connect's own, in Python.

The names and the order of calls are those of ``org.apache.kafka.connect.source``: a connector says what its configuration
is and splits it into tasks, a task polls records that carry their place in the source. An offset is what ``start`` finds
again through ``context.offsets`` after whatever happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.core.errors import ConnectctlError

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings
    from connectctl.ops.task_runtime.spi.transaction_batch import TaskRecordSource

Partition = Mapping[str, Any]
"""A source partition: a JSON object with plain values, to which one task belongs at a time."""
Offset = Mapping[str, Any]
"""A source offset: a JSON object with plain values; what it means is the connector's business."""


class RetriableError(ConnectctlError):
    """``RetriableException``: what failed may succeed later, and the task continues. Raised by ``poll``, it stands for no
    records, and ``poll`` is called again at once; wait before raising it. Raised by ``put`` of a sink, it asks for the same
    records again, after ``context.timeout``. Anything else that a task raises fails it.
    """


class ExactlyOnceSupport(StrEnum):
    """``ExactlyOnceSupport``: whether a connector can be exactly-once with a configuration."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class TransactionBoundaries(StrEnum):
    """``ConnectorTransactionBoundaries``: whether a connector can define its own transactions with a configuration."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


@dataclass(eq=False, slots=True)  # frozen, it would take five times as long to make, and there is one for each record
class SourceRecord:
    """A record and its place in the source. ``partition`` None leaves the Kafka partition to Java's partitioner.

    ``timestamp`` is in milliseconds since the epoch. Records are told apart by identity, as Java's are, and are not
    changed any more once ``poll`` has given them.
    """

    source_partition: Partition
    source_offset: Offset | None
    topic: str
    value: Any
    key: Any = None
    partition: int | None = None
    headers: Sequence[tuple[str, Any]] = ()
    timestamp: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class SourceRecords:
    """Values of one source partition for one topic, in their order: what ``poll`` may give in place of a list of records,
    and many times as quick. The last one's offset stands for all.

    ``commit_record`` hears of none of them, and a transaction that the task defines can end only behind all of them.
    """

    source_partition: Partition
    source_offset: Offset
    topic: str
    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.values)


Batch = Sequence[SourceRecord] | SourceRecords
"""What one poll gives."""


class OffsetReader(Protocol):
    """``OffsetStorageReader``: the offsets that were committed before the task was started."""

    def offset(self, partition: Partition) -> dict[str, Any] | None:
        """The offset of ``partition``, None where there is none."""
        ...

    def offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Every source partition of the connector that has an offset."""
        ...


class TransactionContext(Protocol):
    """``TransactionContext`` of KIP-618: how a task says where its transactions end. None where it may not."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after ``record``, or after the batch that ``poll`` returns next."""
        ...

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """The same, but discard the transaction's records. Their offsets are committed all the same."""
        ...


@dataclass(frozen=True)
class TaskContext:
    """What a task gets before it is started."""

    offsets: OffsetReader
    configs: Mapping[str, str]
    transaction: TransactionContext | None = None


class SourceTask(ABC):
    """One task; used by one thread. ``context`` is set before ``start``."""

    context: TaskContext

    @abstractmethod
    def start(self, configs: Mapping[str, str]) -> None:
        """Begin where ``context.offsets`` says."""

    @abstractmethod
    def poll(self) -> Batch | None:
        """The next records, None where there are none for now; may wait for up to a second or so."""

    def commit_record(self, record: SourceRecord) -> None:  # noqa: B027  # a hook that most tasks do not need
        """``record`` is committed, or was left out. Called after the transaction, before ``commit``."""

    def commit(self) -> None:  # noqa: B027  # a hook that most tasks do not need
        """The offsets of all records so far are committed."""

    def update_offsets(
        self, offsets: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> list[tuple[Partition, Offset | None]] | None:
        """KIP-910: offsets to commit besides ``offsets``, or in their place, just before they are written.

        An offset of None is a tombstone. What is left out is committed as it was; None or nothing changes nothing.
        """
        return None

    @property
    def finished(self) -> bool:
        """Whether ``poll`` will never return anything again. Connect's tasks never are; bounded sources may be."""
        return False

    @property
    def lag(self) -> int | None:
        """How much is left to read, in a unit of the source's own; None where that cannot be known. For people only."""
        return None

    def stop(self) -> None:  # noqa: B027  # a hook that most tasks do not need
        """Let go of what was opened in ``start``."""


@dataclass(frozen=True)
class Setting:
    """One property of a connector's configuration, as ``ConfigDef`` has it."""

    name: str
    help: str
    required: bool = False
    default: str | None = None


def not_above_zero(configs: Mapping[str, str], *names: str) -> dict[str, list[str]]:
    """An error message for each property of ``names`` that has a value which is no whole number above 0."""
    found = {}
    for name in names:
        value = configs.get(name, "1").strip()
        if not (value.isascii() and value.isdigit() and int(value)):
            found[name] = [f"Invalid value {value} for configuration {name}: it must be a number above 0"]
    return found


@dataclass(frozen=True)
class ConnectorContext:
    """What a connector gets before it is looked at or started: ``target`` is the Kafka that its records go to."""

    target: Kafka


@dataclass(frozen=True)
class Outlook:
    """What a start will do besides running tasks, and what people should know beforehand; lines of text.

    ``tasks`` is how many there will be. Where it is None, a connector without ``steps`` is started to be asked for them.
    """

    steps: Sequence[str] = ()
    notes: Sequence[str] = ()
    tasks: int | None = None


@dataclass(frozen=True)
class SourceContext:
    """What a task is made of that has a supply of its own: ``configs`` are the task's, ``timeout`` is in seconds."""

    connector: str
    configs: Mapping[str, str]
    delivery: DeliverySettings
    offsets_topic: str
    timeout: float


class Connector(ABC):
    """What all kinds of connectors share: a configuration, and how it is split into tasks. ``context`` is set before it is
    used.
    """

    context: ConnectorContext
    task: type
    settings: Sequence[Setting] = ()
    converts: bool = True
    """Whether its values go through ``value.converter``."""

    def __init__(self) -> None:
        self.configs: Mapping[str, str] = {}

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        """Error messages by property; none where the configuration will do."""
        missing = [s.name for s in self.settings if s.required and not configs.get(s.name)]
        return {name: [f'Missing required configuration "{name}" which has no default value.'] for name in missing}

    def outlook(self, configs: Mapping[str, str]) -> Outlook:
        """Look at what ``start`` will find, and change nothing; ``configs`` were validated."""
        return Outlook()

    def start(self, configs: Mapping[str, str]) -> None:
        """Take the configuration; look at the system behind it, if need be. What it changes is in ``Outlook.steps``: without
        them it is called, with ``task_configs`` and ``stop`` behind it, for ``--dry-run`` and before every run, too.
        """
        self.configs = configs

    @abstractmethod
    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """A configuration for each task, at most ``max_tasks`` (KIP-1004)."""

    def stop(self) -> None:  # noqa: B027  # a hook that most connectors do not need
        """Let go of what was opened in ``start``."""


class SourceConnector(Connector):
    """A kind of source, whose tasks are polled or supply records in bulk."""

    task: type[SourceTask]

    @classmethod
    def supply(cls, share: SourceContext) -> TaskRecordSource | None:
        """Records in bulk, in place of a task that is polled; None where tasks are polled.

        The callbacks of polled tasks, ``commit_record``, ``commit`` and ``update_offsets``, are not called then.
        """
        return None

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Whether it is exactly-once with ``configs``; None where the connector does not say."""
        return None

    def can_define_transaction_boundaries(self, configs: Mapping[str, str]) -> TransactionBoundaries | None:
        """Whether its tasks may use ``context.transaction``."""
        return TransactionBoundaries.UNSUPPORTED

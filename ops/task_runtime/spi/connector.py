"""What a person writes to get records into Kafka: connectors and tasks in the shape of Connect's own, in Python.

The names and the order of calls are those of ``org.apache.kafka.connect.source``: a connector says what its configuration
is and splits it into tasks, a task polls records that carry their place in the source. An offset is what ``start`` finds
again through ``context.offsets`` after whatever happened.

Where it runs: the connector in the driver, each task in a Python process of an executor, on a thread of its own beside other
tasks. Nothing of either is pickled: executors import the class by its name and get the task's configuration, strings only
(``task_configs``). So a task shares no object with its connector, and with other tasks only what is global to the process.

How long: a task object is made, started, polled and stopped for each lease (``run --lease``, 30 s), and anew behind each
commit whose outcome is unknown. What it has to keep from one to the next belongs into its offsets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import TaskRecordSource, TaskStats

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings

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
    """A record and its place in the source. ``source_offset`` is where to resume *after* it; None adds none.

    ``partition`` is the Kafka partition; None leaves it to Java's partitioner: by the bytes of the key, any without one.
    ``timestamp`` is in milliseconds since the epoch; None or -1 is the time of sending. ``headers`` are names with values.

    ``key``, ``value`` and the values of headers are what the converters take; None is null, a value of None a tombstone:

    - ``StringConverter`` (default): str; bool, int, float, dict and list as JSON; bytes as they are
    - ``JsonConverter``: bool, int, float, str, dict, list and tuple of these, bytes as base64; with ``schemas.enable``, the
      default, in the envelope, whose schema is that of a plain value, and null for a dict or list
    - ``ByteArrayConverter``: bytes
    - ``SimpleHeaderConverter`` (default of headers): as ``StringConverter``

    Anything else, such as a datetime or a Decimal, fails the task. Records are told apart by identity, as Java's are, and
    are not changed any more once ``poll`` has given them.
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

    def offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Every source partition of the connector that has an offset."""


class TransactionContext(Protocol):
    """``TransactionContext`` of KIP-618: how a task says where its transactions end. None where it may not."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after ``record``, or after the batch that ``poll`` returns next."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """The same, but discard the transaction's records. Their offsets are committed all the same."""


@dataclass(frozen=True)
class TaskContext:
    """What a task gets before it is started."""

    offsets: OffsetReader
    configs: Mapping[str, str]
    transaction: TransactionContext | None = None


class SourceTask(ABC):
    """One task. Every method and property is called by the same thread; ``context`` is set before ``start``.

    The order is ``start``, then ``poll`` again and again, and behind each transaction ``commit_record`` for each of its
    records and ``commit``; ``stop`` at the end. A process that is killed calls none of them: what has to last is in the
    offsets.

    What a method raises fails the task, with its trace in the status topic: what it has not committed is aborted, and comes
    again when the connector is run again. Only ``RetriableError`` of ``poll`` does not. Kafka's failures are no business of
    the task: the runtime settles them, and starts a new task where it has to read the committed offsets.
    """

    context: TaskContext

    @abstractmethod
    def start(self, configs: Mapping[str, str]) -> None:
        """Begin where ``context.offsets`` says. ``configs`` is one of ``task_configs``; durations and sizes in it have the
        units of their properties. What is opened here is closed in ``stop``, which is called also where this raises.
        """

    @abstractmethod
    def poll(self) -> Batch | None:
        """The next records, None or nothing where there are none for now; may wait for up to a second or so. A longer wait
        delays the end of the run, and of a transaction that is open; ``transaction.timeout.ms`` ends one that takes too
        long. With ``transaction.boundary.latency.ms`` it delays no transaction, unless the task has ``update_offsets``.

        Records of a source partition come in the order of their offsets. They may be asked for again: not what was given is
        done, but what is committed. Raises ``RetriableError`` for what may pass: it is polled again at once, and the run is
        not idle meanwhile, so wait before raising it. Anything else that it raises fails the task.
        """

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
    """One property of a connector's configuration, as ``ConfigDef`` has it: a string, whose unit ``help`` says. ``default``
    is documentation: a property that is missing is missing from ``configs``.
    """

    name: str
    help: str
    required: bool = False
    default: str | None = None


def not_above_zero(configs: Mapping[str, str], *names: str) -> dict[str, list[str]]:
    """An error message for each property of ``names`` that has a value which is not a whole number above 0."""
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
    """What a task is made of that has a supply of its own: ``configs`` are the task's, ``timeout`` is in seconds.
    ``stats`` is where it counts what the task loop cannot.
    """

    connector: str
    configs: Mapping[str, str]
    delivery: DeliverySettings
    offsets_topic: str
    timeout: float
    stats: TaskStats = field(default_factory=TaskStats)


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
        """Error messages by property; none where the configuration will do. What it raises is an error message, too."""
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
        """A configuration for each task, at most ``max_tasks`` (KIP-1004): strings, which executors get as they are. A
        source partition belongs to one of the tasks, and to the same one in each call with the same configuration, where it
        can.
        """

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

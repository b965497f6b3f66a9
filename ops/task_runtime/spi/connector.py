"""The interfaces of source connectors and their tasks in Python, modelled on those of Kafka
Connect.

The names and the order of calls are those of ``org.apache.kafka.connect.source``: a connector
defines its configuration and splits it into tasks; a task polls records with their source
partitions and offsets. ``start`` reads the committed offsets through ``context.offsets``, also
after a failure.

The connector runs in the driver. Each task runs on its own thread in a Python process of an
executor, together with other tasks. Neither is pickled: executors import the class by its name and
receive the task's configuration, strings only (``task_configs``). So a task shares no object with
its connector, and with other tasks only globals of the process.

A task object is created, started, polled and stopped once for each lease (``run --lease``, an hour
at most). A new one is also created after a commit with an unknown outcome, and where tasks of the
run are fenced, lost or changed. State that must survive belongs in the task's offsets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.schema import Schema
from connectctl.ops.task_runtime.spi.transaction_batch import TaskRecordSource, TaskStats

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings

Partition = Mapping[str, Any]
"""A source partition: a JSON object, assigned to one task at a time. Its values are strings,
booleans, integers of 64 bits, finite floats, bytes (stored as base64) and None, as in Connect;
others fail the task.
"""
Offset = Mapping[str, Any]
"""A source offset: a JSON object with the same types of values; only the connector interprets
it.
"""


class RetriableError(ConnectctlError):
    """``RetriableException``: the failed call may succeed later, and the task continues. If
    ``poll`` raises it, the poll counts as one without records and is repeated immediately, so wait
    before raising it. If ``put`` of a sink raises it, the same records are delivered again after
    ``context.timeout``. Any other exception fails the task.
    """


class ExactlyOnceSupport(StrEnum):
    """``ExactlyOnceSupport``: whether a connector can be exactly-once with a configuration."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class TransactionBoundaries(StrEnum):
    """``ConnectorTransactionBoundaries``: whether a connector can define its own transactions with
    a configuration.
    """

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


# frozen, it would take five times as long to make, and there is one for each record
@dataclass(eq=False, slots=True)
class SourceRecord:
    """A record with its source partition and offset. ``source_offset`` is where to resume *after*
    it; None adds no offset.

    ``partition`` is the Kafka partition; with None, Java's partitioner chooses: by the bytes of the
    key, any without one. ``timestamp`` is in milliseconds since the epoch; None or -1 is the time
    of sending. ``headers`` are names with values.

    ``key``, ``value`` and header values have the types that the converters accept; None is null, a
    None value a tombstone:

    - ``StringConverter`` (default): str; bool, int, float, dict and list as JSON; bytes unchanged
    - ``JsonConverter``: what ``value_schema`` or ``key_schema`` allows; without one bool, int, float,
      str, dict, list and tuple of these, bytes as base64; with ``schemas.enable``, the default, in
      the envelope, whose schema is that of a plain value, and null for a dict or list
    - ``AvroConverter``, ``JsonSchemaConverter``: what the schema allows, or a plain value
    - ``ByteArrayConverter``: bytes
    - ``SimpleHeaderConverter`` (default of headers): as ``StringConverter``

    Other types, such as datetime or Decimal without a schema in text, fail the task. Records are
    compared by identity, as in Java. Do not modify them after ``poll`` has returned them.
    """

    source_partition: Partition
    source_offset: Offset | None
    topic: str
    value: Any
    key: Any = None
    partition: int | None = None
    headers: Sequence[tuple[str, Any]] = ()
    timestamp: int | None = None
    key_schema: Schema | None = None
    value_schema: Schema | None = None


@dataclass(frozen=True, eq=False, slots=True)
class SourceRecords:
    """Values of one source partition for one topic, in their order: ``poll`` may return it instead
    of a list of records, which is many times faster. ``source_offset`` is that of the last value.

    ``commit_record`` is not called for them, and a transaction that the task defines can end only
    after all of them.
    """

    source_partition: Partition
    source_offset: Offset
    topic: str
    values: Sequence[Any]
    value_schema: Schema | None = None

    def __len__(self) -> int:
        return len(self.values)


Batch = Sequence[SourceRecord] | SourceRecords
"""The records that one poll returns."""


class OffsetReader(Protocol):
    """``OffsetStorageReader``: the offsets that were committed before the task was started."""

    def offset(self, partition: Partition) -> dict[str, Any] | None:
        """Return the offset of ``partition``, None if it has none."""

    def offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return every source partition of the connector that has an offset."""


class TransactionContext(Protocol):
    """``TransactionContext`` of KIP-618: a task ends its transactions through it. None if the task
    may not.
    """

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after ``record``, or after the batch that ``poll`` returns next. A
        record that ``poll`` does not return ends no transaction.
        """

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Request the same end, but discard the transaction's records. Their offsets are still
        committed.
        """


@dataclass(frozen=True)
class TaskContext:
    """The context that a task receives before ``start``."""

    offsets: OffsetReader
    configs: Mapping[str, str]
    transaction: TransactionContext | None = None


class SourceTask(ABC):
    """One task. Every method and property is called by the same thread; ``context`` is set before
    ``start``.

    The order is ``start``, then ``poll`` repeatedly, and after each transaction ``commit_record``
    for each of its records and ``commit``; ``stop`` at the end. A killed process calls none of
    them: state that must survive belongs in the offsets.

    An exception in a method fails the task, with its trace in the status topic: uncommitted records
    are aborted, and delivered again when the connector runs again. Only ``RetriableError`` of
    ``poll`` does not. The runtime handles Kafka's failures, and starts a new task if it has to read
    the committed offsets.
    """

    context: TaskContext

    @abstractmethod
    def start(self, configs: Mapping[str, str]) -> None:
        """Begin at the offsets of ``context.offsets``. ``configs`` is one of ``task_configs``;
        durations and sizes have the units of their properties. Close in ``stop`` what is opened
        here; ``stop`` is also called if this raises.
        """

    @abstractmethod
    def poll(self) -> Batch | None:
        """Return the next records, or None or nothing if none are available; may wait for about a
        second. A longer wait delays the end of the run and of an open transaction;
        ``transaction.timeout.ms`` ends one that takes too long. With
        ``transaction.boundary.latency.ms`` it delays no transaction, unless the task has
        ``update_offsets``.

        Return the records of a source partition in the order of their offsets. Returned records may
        be requested again until they are committed. Raises ``RetriableError`` for a temporary
        failure: ``poll`` is called again immediately, and the run is not idle meanwhile, so wait
        before raising it. Any other exception fails the task.
        """

    # a hook that most tasks do not need
    def commit_record(self, record: SourceRecord) -> None:  # noqa: B027
        """Note that ``record`` is committed, or was left out. Called after the transaction, before
        ``commit``.
        """

    def commit(self) -> None:  # noqa: B027  # a hook that most tasks do not need
        """Note that the offsets of all records so far are committed."""

    def update_offsets(
        self, offsets: list[tuple[dict[str, Any], dict[str, Any]]]
    ) -> list[tuple[Partition, Offset | None]] | Mapping[Any, Offset | None] | None:
        """Return offsets to commit in addition to ``offsets`` or instead of them, just before they
        are written (KIP-910): pairs of a source partition and its offset, or a mapping with keys
        that are a tuple of the source partition's items, ``tuple(partition.items())``.

        An offset of None is a tombstone. Omitted offsets are committed unchanged; None or nothing
        changes nothing.
        """
        return None

    @property
    def finished(self) -> bool:
        """Return whether ``poll`` will never return records again. Connect's tasks never finish;
        bounded sources may.
        """
        return False

    @property
    def lag(self) -> int | None:
        """Return how much remains to be read, in a unit of the source; None if unknown. Only
        displayed.
        """
        return None

    def stop(self) -> None:  # noqa: B027  # a hook that most tasks do not need
        """Let go of what was opened in ``start``."""


@dataclass(frozen=True)
class Setting:
    """One property of a connector's configuration, as in ``ConfigDef``: a string, with its unit in
    ``help``. ``default`` is documentation: a missing property is also missing from ``configs``.
    """

    name: str
    help: str
    required: bool = False
    default: str | None = None


def not_above_zero(configs: Mapping[str, str], *names: str) -> dict[str, list[str]]:
    """Return an error message for each property of ``names`` whose value is not a whole number
    above 0.
    """
    found = {}
    for name in names:
        value = configs.get(name, "1").strip()
        if not (value.isascii() and value.isdigit() and int(value)):
            found[name] = [
                f"Invalid value {value} for configuration {name}: it must be a number above 0"
            ]
    return found


@dataclass(frozen=True)
class ConnectorContext:
    """The context that a connector receives before any call: ``target`` is the Kafka cluster that
    its records go to.
    """

    target: Kafka


@dataclass(frozen=True)
class Outlook:
    """The changes that a start makes before tasks run, and notes for the user; lines of text.

    ``tasks`` is the number of tasks. If it is None, a connector without ``steps`` is started to
    determine them.
    """

    steps: Sequence[str] = ()
    notes: Sequence[str] = ()
    tasks: int | None = None


@dataclass(frozen=True)
class SourceContext:
    """The arguments for ``supply``, which reads in bulk: ``configs`` are the task's, ``timeout`` is
    in seconds. It counts in ``stats`` what the task loop cannot count.
    """

    connector: str
    configs: Mapping[str, str]
    delivery: DeliverySettings
    offsets_topic: str
    timeout: float
    stats: TaskStats = field(default_factory=TaskStats)


class Connector(ABC):
    """The base of all connectors: a configuration that is split into tasks. ``context`` is set
    before the first call.
    """

    context: ConnectorContext
    task: type
    settings: Sequence[Setting] = ()
    converts: bool = True
    """Whether ``value.converter`` converts its values."""

    def __init__(self) -> None:
        self.configs: Mapping[str, str] = {}

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        """Return error messages by property; none if the configuration is valid. An exception is
        also an error message.
        """
        missing = [s.name for s in self.settings if s.required and not configs.get(s.name)]
        return {
            name: [f'Missing required configuration "{name}" which has no default value.']
            for name in missing
        }

    def outlook(self, configs: Mapping[str, str]) -> Outlook:
        """Return what ``start`` will do, without changing anything; ``configs`` were validated."""
        return Outlook()

    def start(self, configs: Mapping[str, str]) -> None:
        """Start with this configuration; query the source or target system if necessary. List
        changes in ``Outlook.steps``: without steps, ``start``, ``task_configs`` and ``stop`` are
        also called for ``--dry-run`` and before every run.
        """
        self.configs = configs

    @abstractmethod
    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return a configuration for each task, at most ``max_tasks`` (KIP-1004): strings, passed
        unchanged to executors. A source partition belongs to one task, if possible to the same one
        in each call with the same configuration.
        """

    def refresh_seconds(self, configs: Mapping[str, str]) -> float | None:
        """Return the seconds between two calls of ``changed_tasks``; None: never."""
        return None

    def changed_tasks(
        self, configs: Mapping[str, str], tasks: Sequence[Mapping[str, str]], max_tasks: int
    ) -> list[dict[str, str]] | None:
        """Return the task configurations that replace ``tasks``, which run; None while they are the
        right ones. Called by another thread than the other methods. Raises ``ConnectctlError`` to
        be called again.
        """
        return None

    def stop(self) -> None:  # noqa: B027  # a hook that most connectors do not need
        """Let go of what was opened in ``start``."""


class SourceConnector(Connector):
    """A source connector, whose tasks are polled or supply records in bulk."""

    task: type[SourceTask]

    @classmethod
    def supply(cls, share: SourceContext) -> TaskRecordSource | None:
        """Return a supply of records in bulk, instead of a polled task; None if tasks are polled.

        With a supply, ``commit_record``, ``commit`` and ``update_offsets`` are not called.
        """
        return None

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Return whether it is exactly-once with ``configs``; None if unknown."""
        return None

    def can_define_transaction_boundaries(
        self, configs: Mapping[str, str]
    ) -> TransactionBoundaries | None:
        """Return whether its tasks may use ``context.transaction``."""
        return TransactionBoundaries.UNSUPPORTED

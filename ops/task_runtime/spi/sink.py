"""The interfaces of sink connectors and their tasks in Python, modelled on those of Kafka Connect.

The names and the order of calls are those of ``org.apache.kafka.connect.sink``, with ``is_closing``
of KIP-275. A record may be delivered again, with the same topic, partition and offset, until its
offset is committed.

Execution, pickling (none) and the lifetime of a task are as for sources (``connector.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.task_runtime.spi.connector import Connector
from connectctl.ops.task_runtime.spi.schema import Schema

if TYPE_CHECKING:
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.task_runtime.group.consumer import GroupOffsets
    from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord


class TimestampType(StrEnum):
    """The origin of a record's timestamp: its producer or the broker."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


# frozen, it would take five times as long to make, and there is one for each record
@dataclass(eq=False, slots=True)
class SinkRecord:
    """A record of a topic, converted. ``timestamp`` is in milliseconds since the epoch, None if it
    has none.

    ``key``, ``value`` and header values are the converters' results: ``StringConverter`` (default)
    str, ``JsonConverter`` JSON's types (with ``schemas.enable``, the default, the payload, with
    bytes, Decimal and datetime if its schema requires it), ``ByteArrayConverter`` bytes; None is
    null. ``offset`` and ``partition`` are Kafka's numbers. Schemas are None if the converter has
    none. ``original`` is confluent-kafka's message, for a dead letter.
    """

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    timestamp: int | None = None
    timestamp_type: TimestampType = TimestampType.NO_TIMESTAMP_TYPE
    headers: Sequence[tuple[str, Any]] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    original: Any = field(default=None, repr=False)


class ErrantRecordReporter(Protocol):
    """``ErrantRecordReporter`` of KIP-610: reports records that the task cannot process, without
    failing the task.
    """

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Log ``record`` and send it to the dead letter topic, as configured by ``errors.*``; no
        offset is committed before it is written. Raises ``ConnectctlError`` if ``errors.tolerance``
        is none.
        """


class SinkTaskContext(Protocol):
    """``SinkTaskContext``: a task's requests to its runtime. Used by the task's thread only."""

    @property
    def configs(self) -> Mapping[str, str]:
        """Return the task's configuration."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions assigned to the task; during ``pre_commit`` of partitions being
        closed, these as well.
        """

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """Return the reporter; None if neither a dead letter topic nor ``errors.log.enable`` is
        configured.
        """

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue reading at ``offsets`` of assigned partitions, before the next ``put``. For a
        sink that stores its offsets with its data; may be called in ``open``.
        """

    def pause(self, *partitions: TopicPartition) -> None:
        """Deliver no records of these until ``resume``. Raises ``ConnectctlError`` for one that is
        not assigned.
        """

    def resume(self, *partitions: TopicPartition) -> None:
        """Deliver their records again. Raises ``ConnectctlError`` for one that is not assigned."""

    def request_commit(self) -> None:
        """Commit before the next ``put``, rather than at ``offset.flush.interval.ms``."""

    def timeout(self, milliseconds: int) -> None:
        """Call ``put`` again after this time at the latest; after a ``RetriableError``, at the
        earliest.
        """

    def is_closing(self) -> bool:
        """Return whether this ``pre_commit`` is the last one for its partitions, which are closed
        afterwards (KIP-275). False during all other calls.
        """


class SinkTask(ABC):
    """One task. Every method is called by the same thread; ``context`` is set before ``start``.

    An exception in a method fails the task: partitions are closed, and uncommitted records are
    delivered again when the connector runs again. ``RetriableError`` of ``put`` and exceptions of
    ``pre_commit`` or ``flush`` do not: those records are delivered again.
    """

    context: SinkTaskContext

    @abstractmethod
    def start(self, configs: Mapping[str, str]) -> None:
        """Start with this configuration; no partition is assigned yet."""

    # a hook that most tasks do not need
    def open(self, partitions: Collection[TopicPartition]) -> None:  # noqa: B027
        """Prepare for ``partitions``, which were assigned in addition; their records are delivered
        afterwards.
        """

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Process ``records``, in the order of each partition; may be empty. Raises
        ``RetriableError`` to receive the same records again after ``context.timeout``, by default a
        second, and no others before. Any other exception fails the task. A call may take as long as
        ``max.poll.interval.ms`` of the consumer allows.
        """

    # a hook that sinks that pre_commit do not need
    def flush(self, offsets: GroupOffsets) -> None:  # noqa: B027
        """Write all records that ``put`` accepted; ``offsets`` are those of the next records."""

    def pre_commit(self, offsets: GroupOffsets) -> GroupOffsets:
        """Return the offsets that can be committed, of ``offsets``; none, to commit nothing.
        ``offsets`` has the position of every assigned partition, or of those that are closed: after
        the records that ``put`` accepted, else where its reading began. Without a partition, this
        is not called.

        Check ``context.is_closing()`` (KIP-275): if true, this is the last chance to commit these
        partitions before they are closed by a rebalance or a shutdown. A sink that buffers records
        then writes them, and returns their offsets; what it does not return is delivered again,
        perhaps to another task.

        If it raises, partitions are read again from their committed offsets: all of them, or, when
        closing, those of ``offsets``, by the next task that they are assigned to.
        """
        self.flush(offsets)
        return offsets

    def transaction_records(self, offsets: GroupOffsets) -> Sequence[ProducerRecord]:
        """Return records for the transaction that commits ``offsets``, some or all of them just
        returned by ``pre_commit``; for connectors that are ``exactly_once``. Called again with the
        same offsets if the transaction is repeated.
        """
        return ()

    # a hook that most sinks do not need
    def committed(self, offsets: GroupOffsets) -> None:  # noqa: B027
        """Note that ``offsets`` and their ``transaction_records`` are committed; not called if the
        outcome is unknown.
        """

    # a hook that most do not need
    def close(self, partitions: Collection[TopicPartition]) -> None:  # noqa: B027
        """Release the resources of ``partitions``, which are no longer assigned, without
        writing.
        """

    def stop(self) -> None:  # noqa: B027  # a hook that most tasks do not need
        """Close what ``start`` opened. Every partition was closed before."""


class SinkConnector(Connector):
    """A sink connector, whose tasks share the partitions of its topics as one consumer group."""

    task: type[SinkTask]
    exactly_once: bool = False
    """Whether offsets are committed in a transaction, with the task's ``transaction_records``."""
    default_converters: Mapping[str, str] = {}
    """The converters of a configuration that names none: ``key.converter``, ``value.converter``,
    ``header.converter``.
    """

    @classmethod
    def internal_topics(cls, name: str) -> Mapping[str, Mapping[str, str]]:
        """Return the topics of the connector ``name`` that a run creates if missing, with their
        configuration; one partition each.
        """
        return {}

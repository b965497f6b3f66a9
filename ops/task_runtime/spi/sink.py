"""What a person writes to get records out of Kafka: sinks in the shape of Connect's own, in Python.

The names and the order of calls are those of ``org.apache.kafka.connect.sink``, with ``is_closing`` of KIP-275. A record
may come again, with the same topic, partition and offset, as long as its offset is not committed.

Where it runs, what is pickled (nothing) and how long a task lives is as for sources (``connector.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.task_runtime.spi.connector import Connector

if TYPE_CHECKING:
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.task_runtime.group.consumer import GroupOffsets
    from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord

Schema = Mapping[str, Any]
"""A schema as ``JsonConverter`` writes it: ``{"type": "struct", "fields": […], "optional": false}``."""


class TimestampType(StrEnum):
    """Who gave a record its timestamp."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


@dataclass(eq=False, slots=True)  # frozen, it would take five times as long to make, and there is one for each record
class SinkRecord:
    """A record of a topic, converted. ``timestamp`` is in milliseconds since the epoch, None where there is none.

    ``key``, ``value`` and values of headers are what the converters read: ``StringConverter`` (default) str,
    ``JsonConverter`` what JSON has (with ``schemas.enable``, the default, the payload, with bytes, Decimal and datetime
    where its schema says so), ``ByteArrayConverter`` bytes; None is null. ``offset`` and ``partition`` are Kafka's numbers.
    Schemas are None where a converter has none. ``original`` is confluent-kafka's message, for a dead letter.
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
    """``ErrantRecordReporter`` of KIP-610: records that the task cannot handle, and that are not to end it."""

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Log ``record`` and send it to the dead letter topic, as ``errors.*`` says; no offset is committed before it is
        written. Raises ``ConnectctlError`` where ``errors.tolerance`` is none.
        """


class SinkTaskContext(Protocol):
    """``SinkTaskContext``: what a task can ask of its runtime. Used by the task's thread only."""

    @property
    def configs(self) -> Mapping[str, str]:
        """The task's configuration."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are the task's own now; during ``pre_commit`` of those that are closed, these as well."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """None where neither a dead letter topic nor ``errors.log.enable`` is configured."""

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from ``offsets`` of the task's own partitions, before the next ``put``. For a sink that keeps its offsets
        with its data; a call in ``open`` counts.
        """

    def pause(self, *partitions: TopicPartition) -> None:
        """Get no records of these partitions until ``resume``. Raises ``ConnectctlError`` for one that is not assigned."""

    def resume(self, *partitions: TopicPartition) -> None:
        """Get their records again. Raises ``ConnectctlError`` for one that is not assigned."""

    def request_commit(self) -> None:
        """Commit before the next ``put``, rather than at ``offset.flush.interval.ms``."""

    def timeout(self, milliseconds: int) -> None:
        """Call ``put`` again after this time, at the latest; after a ``RetriableError``, not before."""

    def is_closing(self) -> bool:
        """KIP-275: whether this ``pre_commit`` is the last one for its partitions, which are closed afterwards. False at all
        other times.
        """


class SinkTask(ABC):
    """One task. Every method is called by the same thread; ``context`` is set before ``start``.

    What a method raises fails the task: partitions are closed, and what is not committed comes again when the connector is
    run again. Only ``RetriableError`` of ``put``, and whatever ``pre_commit`` or ``flush`` raise, do not: those records
    come again.
    """

    context: SinkTaskContext

    @abstractmethod
    def start(self, configs: Mapping[str, str]) -> None:
        """Take the configuration; no partition is assigned yet."""

    def open(self, partitions: Collection[TopicPartition]) -> None:  # noqa: B027  # a hook that most tasks do not need
        """``partitions`` were added to the task's own; their records come afterwards."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take ``records``, in the order of each partition; there may be none. Raises ``RetriableError`` to get the same
        ones again after ``context.timeout``, else a second; no others come before. Anything else that it raises fails the
        task. It may take as long as ``max.poll.interval.ms`` of the consumer allows.
        """

    def flush(self, offsets: GroupOffsets) -> None:  # noqa: B027  # a hook that sinks that pre_commit do not need
        """Write everything that ``put`` took; ``offsets`` are of the next records."""

    def pre_commit(self, offsets: GroupOffsets) -> GroupOffsets:
        """The offsets that can be committed, of those ``offsets`` that ``put`` took; none, to commit nothing.

        Where it raises, its partitions are read again from what is committed: all of them, while closing those of
        ``offsets`` alone, by whoever has them next.
        """
        self.flush(offsets)
        return offsets

    def transaction_records(self, offsets: GroupOffsets) -> Sequence[ProducerRecord]:
        """Of a connector that is ``exactly_once``: records for the transaction that commits ``offsets``, of which
        ``pre_commit`` just gave some or all. Called again with the same offsets where the transaction has to be repeated.
        """
        return ()

    def committed(self, offsets: GroupOffsets) -> None:  # noqa: B027  # a hook that most sinks do not need
        """``offsets`` are committed, and so are their ``transaction_records``; not called where that is unknown."""

    def close(self, partitions: Collection[TopicPartition]) -> None:  # noqa: B027  # a hook that most do not need
        """``partitions`` are not the task's own any more; let go of what belongs to them, without writing."""

    def stop(self) -> None:  # noqa: B027  # a hook that most tasks do not need
        """Let go of what was opened in ``start``. Every partition was closed before."""


class SinkConnector(Connector):
    """A kind of sink, whose tasks share the partitions of its topics as one consumer group."""

    task: type[SinkTask]
    exactly_once: bool = False
    """Whether offsets are committed in a transaction, with the task's ``transaction_records``."""

    @classmethod
    def internal_topics(cls, name: str) -> Mapping[str, Mapping[str, str]]:
        """Topics of the connector ``name`` that a run creates where they are missing, with their configuration; one
        partition each.
        """
        return {}

"""The interface of transforms: a class with ``process``, or a function from one DataFrame to
another.

A transform is a loop of consume, process and produce, exactly once by KIP-447: one producer for
each task, and the group's offsets in its transactions. The order of the records of a partition is
kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.connector import Connector, Setting, not_above_zero
from connectctl.ops.task_runtime.spi.subscription import input_problems, input_topics

if TYPE_CHECKING:
    import pyarrow as pa

GUARANTEE, OUTPUT, INTERVAL = "guarantee", "topic", "commit.interval.ms"
COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class Guarantee(StrEnum):
    """``guarantee`` of a transform."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(eq=False, slots=True)
class Record:
    """A record that was read, or one to write. ``timestamp`` is in ms since the epoch. In one to
    write, ``topic`` None is the job's output topic, with ``partition`` None Java's partitioner
    chooses, and ``offset`` has no meaning.
    """

    value: bytes | None
    key: bytes | None = None
    topic: str | None = None
    partition: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None
    offset: int = -1


class Records(Sequence[Record]):
    """Records of one poll, in the order of each partition: a sequence of ``Record``, or columns."""

    def __init__(self, messages: Sequence[Any]):
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: Any) -> Any:
        return self._objects[index]

    @cached_property
    def _objects(self) -> list[Record]:
        return [
            Record(
                m.value(),
                m.key(),
                m.topic(),
                m.partition(),
                m.headers() or (),
                _timestamp(m),
                m.offset(),
            )
            for m in self._messages
        ]

    @cached_property
    def arrow(self) -> pa.Table:
        """Return the records as columns: topic, partition, offset, timestamp (ms), key, value and
        headers.
        """
        import pyarrow as pa

        headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        kinds = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary(), headers)
        columns: tuple[Iterable[Any], ...] = (
            (m.topic() for m in self._messages),
            (m.partition() for m in self._messages),
            (m.offset() for m in self._messages),
            (_timestamp(m) for m in self._messages),
            (m.key() for m in self._messages),
            (m.value() for m in self._messages),
            ([{"key": k, "value": v} for k, v in m.headers() or ()] for m in self._messages),
        )
        return pa.table(
            {n: pa.array(c, kind) for n, c, kind in zip(COLUMNS, columns, kinds, strict=True)}
        )

    @property
    def pandas(self) -> Any:
        """Return the same columns as a pandas DataFrame."""
        return self.arrow.to_pandas()

    def by_partition(self) -> Iterable[Records]:
        """Return the records of each partition separately."""
        found: dict[tuple[str, int], list[Any]] = {}
        for m in self._messages:
            found.setdefault((m.topic(), m.partition()), []).append(m)
        return map(Records, found.values())


Output = Any
"""The result of ``process``: ``Record``s, or columns (an Arrow table or a pandas DataFrame) with
``value`` and optionally key, topic, partition, timestamp and headers; or several of these. None is
no record.
"""


class Transform(ABC):
    """One task. Every method is called by the same thread. It may be started again and must discard
    its state then: uncommitted records are delivered again. It is not pickled: executors import its
    class, or its function of DataFrames, by name.

    An exception in a method fails the task and aborts the open transaction; nothing is retried.
    ``report`` handles a single record instead.
    Keys and values are bytes: converters are not used.
    """

    settings: ClassVar[Sequence[Setting]] = ()
    columnar: ClassVar[bool] = False
    """Whether ``process`` returns only columns. They are written as whole record batches, without
    an object for each record, if the job has an output topic and
    ``consumer.override.max.poll.records`` is not below its default.
    """

    report: Callable[[Record, Exception], None] | None = None
    """Reports a record that cannot be processed, as ``errors.*`` says: logs it, writes it to the dead
    letter topic in the transaction of its offset, and raises ``ConnectctlError`` if
    ``errors.tolerance`` is none. None if ``errors.*`` is not configured.
    """

    # a hook that most do not need
    def start(self, configs: Mapping[str, str]) -> None:  # noqa: B027
        """Start with this configuration."""

    @abstractmethod
    def process(self, records: Records) -> Output:
        """Return the records to write for ``records``, which may be of several partitions. All
        output must be returned; none may be kept for a later call.
        """

    def stop(self) -> None:  # noqa: B027  # a hook that most do not need
        """Close what ``start`` opened."""


class FrameTransform(Transform):
    """A function from one pandas DataFrame to another, called for each partition."""

    columnar = True
    function: ClassVar[Callable[[Any], Any]]

    def process(self, records: Records) -> Output:
        return [type(self).function(part.pandas) for part in records.by_partition()]


class TransformConnector(Connector):
    """The connector of a transform: ``task`` is its class. All tasks are equal; the group assigns
    their partitions.
    """

    task: type[Transform]
    converts = False

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        self.settings = self.task.settings
        found = super().validate(configs)
        found["topics"] = list(input_problems(configs))
        if configs.get(OUTPUT, "").strip() in input_topics(configs):
            found[OUTPUT] = [f"The output topic {configs[OUTPUT]} is an input topic, too"]
        guarantees = [str(each) for each in Guarantee]
        if (given := configs.get(GUARANTEE, Guarantee.EXACTLY_ONCE)) not in guarantees:
            found[GUARANTEE] = [
                f"Invalid value {given} for configuration {GUARANTEE}: use "
                f"{' or '.join(guarantees)}"
            ]
        return found | not_above_zero(configs, INTERVAL, "tasks.max")

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.configs) for _ in range(max_tasks)]


def connector_of(found: Any) -> type[TransformConnector] | None:
    """Return the connector class for a transform, a class or a function of DataFrames; None for
    anything else.
    """
    if isinstance(found, type) and issubclass(found, Transform):
        return type(found.__name__, (TransformConnector,), {"task": found})
    if not isinstance(found, type) and callable(found):
        name = getattr(found, "__name__", "function")
        of = {"function": staticmethod(found), "__module__": found.__module__, "__qualname__": name}
        return type(name, (TransformConnector,), {"task": type(name, (FrameTransform,), of)})
    return None


def check_columns(table: Any) -> None:
    """Raise ``ConnectctlError`` for an Arrow table without column ``value``, or with an unknown
    column.
    """
    names = set(table.schema.names)
    if "value" not in names or names - set(COLUMNS):
        raise ConnectctlError(
            "The transform returned a table that cannot be written",
            why=f"unknown column {min(names - set(COLUMNS))}"
            if "value" in names
            else "it has no column value",
            next_step=f"Its columns may be {', '.join(COLUMNS)}.",
        )


def _timestamp(message: Any) -> int | None:
    kind, timestamp = message.timestamp()
    return timestamp if kind else None

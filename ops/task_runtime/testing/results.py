"""The results of a run in memory: every commit, with its records and offsets, and the end of the
task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.testing.memory_kafka import MemoryKafka

O = TypeVar("O")  # noqa: E741  # offsets: pairs of a source, or numbers of a consumer group
SourceOffsets = list[tuple[dict[str, Any], dict[str, Any]]]
"""Source partitions, each with its offset."""


@dataclass(frozen=True)
class Commit(Generic[O]):
    """A transaction that was committed: records as consumers with ``read_committed`` get them, with
    the offsets in it.

    An offset of a source partition is None where the task has removed it; offsets of a consumer
    group are those of the next records.
    """

    records: tuple[ProducerRecord, ...]
    offsets: O


@dataclass
class Run(Generic[O]):
    """A run: its ``commits`` in their order. ``starts`` is the number of starts of a task, also
    after failures.

    ``state`` is ``RUNNING``, or ``FAILED`` with the ``error`` that the connector or a task raised.
    ``occasions`` are the numbers of polls, puts and commits: at each of them a ``Fault`` can be
    requested. ``notes`` are the lines that a run logs.
    """

    commits: list[Commit[O]] = field(default_factory=list)
    starts: int = 0
    state: str = "RUNNING"
    error: Exception | None = None
    occasions: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def records(self) -> list[ProducerRecord]:
        """Return the records of all commits as a consumer gets them, partition by partition."""
        return [record for commit in self.commits for record in commit.records]

    def values(self, topic: str | None = None) -> list[bytes | None]:
        """Return the values of all records, or of those for ``topic``."""
        return [record.value for record in self.records if topic in (None, record.topic)]


@dataclass
class SourceRun(Run[list[tuple[dict[str, Any], dict[str, Any] | None]]]):
    """A run of a source connector. ``offsets`` is what a next run starts with:
    ``run_source(…, offsets=run.offsets)``.
    """

    offsets: SourceOffsets = field(default_factory=list)


@dataclass
class GroupRun(Run[dict[TopicPartition, int]]):
    """A run of a sink or a transform. ``offsets`` is what its consumer group has committed."""

    offsets: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass
class SinkRun(GroupRun):
    """A run of a sink: ``records`` are those of ``transaction_records``; the test reads what the
    sink stored.

    ``dead_letters`` are records for ``errors.deadletterqueue.topic.name``.
    """

    dead_letters: list[ProducerRecord] = field(default_factory=list)


@contextmanager
def failing(run: Run[Any], expected: bool) -> Iterator[None]:
    """Note in ``run`` what the connector or a task raises, which is raised on unless it was
    ``expected``.
    """
    try:
        yield
    except Exception as e:
        run.state, run.error = "FAILED", e
        if not expected:
            raise


def keep(run: GroupRun, kafka: MemoryKafka) -> None:
    """Copy the final state of ``kafka`` to ``run``."""
    run.occasions, run.offsets = kafka.faults.seen, _numbers(kafka.group)
    run.commits = [
        Commit(records, _numbers(committed)) for records, committed in kafka.transactions
    ]


def _numbers(offsets: Mapping[TopicPartition, GroupOffset]) -> dict[TopicPartition, int]:
    return {partition: each.offset for partition, each in offsets.items()}

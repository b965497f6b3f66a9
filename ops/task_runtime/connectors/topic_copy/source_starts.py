"""The offsets at which partitions of the source are read: after the committed ones, and the ranges
that the source has lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.task_runtime.attempt.coalesced_read import coalesced
from connectctl.ops.task_runtime.connectors.topic_copy.source_clients import (
    partition_gone,
    unreachable,
)

LOST_RECORDS = Rule("COPY001", Severity.WARNING)
RESET_PROPERTY = "source.consumer.auto.offset.reset"


@dataclass(frozen=True)
class SourceCluster:
    """The source cluster ``alias``. ``consumer`` and ``admin`` are librdkafka's properties of its
    clients, ``isolation`` and ``reset`` are isolation.level and auto.offset.reset, ``reset_given``
    is true if the user has set the latter; ``timeout`` is in seconds, for each request. ``added``
    are partitions that have appeared while the copy runs: they begin at their beginning, whatever
    ``reset`` is.
    """

    alias: str
    consumer: Mapping[str, Any]
    admin: Mapping[str, Any]
    isolation: str
    reset: str
    timeout: float
    reset_given: bool = False
    added: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True)
class LostRange:
    """Offsets of a partition, from ``first`` to ``last``, that the source deleted before they were
    copied.
    """

    alias: str
    topic_partition: TopicPartition
    first: int
    last: int

    def __str__(self) -> str:
        return f"Offsets {self.first:,} to {self.last:,} of {self.topic_partition} on {self.alias}"

    @property
    def left_out(self) -> str:
        """That they are not copied."""
        return f"{self} were not copied: the source had lost them ({RESET_PROPERTY} is set)"

    @property
    def count(self) -> int:
        """Return the number of its offsets, which is the maximum number of its records."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class Start:
    """The first offset to read of a partition. ``latest``: it is the end, because of
    auto.offset.reset; ``lost`` is the range that is left out.
    """

    offset: int
    latest: bool = False
    lost: LostRange | None = None

    @property
    def leaves_out(self) -> bool:
        """Return whether it must be committed at once, because a later beginning would differ."""
        return self.latest or self.lost is not None


def starts_of(
    source: SourceCluster, kafka: Kafka, begin: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, Start]:
    """Return the first offsets for these offsets, each after a committed one, None without one.

    Raises ``ConnectctlError`` for a partition that does not exist any more, that has fewer records
    than were copied from it, or that has deleted some before they were copied, unless
    auto.offset.reset is configured.
    """
    topics = sorted({topic for topic, _ in begin})
    # Of whole topics, of which other tasks of the process have other partitions.
    key = ("extents", repr(sorted(source.admin.items(), key=str)), *topics)
    with unreachable(source.alias):
        found = coalesced(key, lambda: kafka.extents(topics))
    for partition in begin:
        if partition.topic not in found:
            raise partition_gone(source.alias, f"topic {partition.topic}")
        if partition.partition not in found[partition.topic]:
            raise partition_gone(source.alias, f"partition {partition}")
    return {
        partition: start_of(source, partition, at, found[partition.topic][partition.partition])
        for partition, at in begin.items()
    }


def start_of(
    source: SourceCluster, topic_partition: TopicPartition, at: int | None, extent: OffsetRange
) -> Start:
    """Return the first offset of a partition with this ``extent``; see ``starts_of``."""
    if at is not None and at > extent.end:
        raise ConnectctlError(
            f"{topic_partition} of {source.alias} ends at {extent.end}, but the committed "
            f"offset is {at - 1}",
            why="the topic was recreated or lost records",
            next_step="Set or reset the offset: connectctl offsets set, connectctl offsets reset.",
            code="beyond-the-end",
        )
    if at is not None and at >= extent.first:
        return Start(at)
    if at is None and topic_partition in source.added:
        return Start(extent.first)
    end = extent.stable if source.isolation == "read_committed" else extent.end
    start = end if source.reset == "latest" else extent.first
    lost = None if at is None else LostRange(source.alias, topic_partition, at, start - 1)
    if lost is not None and (not source.reset_given or source.reset == "none"):
        raise ConnectctlError(
            f"{lost} were lost before they were copied",
            why=f"the log now starts at {lost.last + 1:,} (retention, deleted records, or another "
            "topic of that name)",
            next_step=f"Set {RESET_PROPERTY} (earliest or latest) to continue without them.",
            code="lost-records",
        )
    if source.reset == "none":
        raise unset(source.alias, str(topic_partition))
    return Start(start, source.reset == "latest", lost)


def unset(alias: str, what: str) -> ConnectctlError:
    """Return the error for a partition without a committed offset, where auto.offset.reset=none."""
    return ConnectctlError(
        f"{what} of {alias} has no start offset",
        why="no committed offset is within the log, and auto.offset.reset=none",
        next_step=f"Set {RESET_PROPERTY}, or set the offset: connectctl offsets set.",
        code="no-offset",
    )

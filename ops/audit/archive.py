"""The parts of an audit of a Parquet archive: its manifest, the content of its files, its group's
committed offsets, and the inputs. Pure.

A file with each offset from its first to its last proves itself. If offsets are missing in a file
or between files, the input shows whether a committed record was there: transaction markers and
aborted records have offsets, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.kafka.group_positions import GroupPositions
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile

Extents = Mapping[str, Mapping[int, OffsetRange]]


class FileContent(NamedTuple):
    """The content of a file: the number of rows and of different offsets, the lowest and the
    highest offset; and whether all records are of its partition.
    """

    rows: int
    offsets: int
    first: int
    last: int
    own: bool

    @property
    def dense(self) -> bool:
        """Return whether it has every offset from its first to its last."""
        return self.own and self.offsets == self.last - self.first + 1


class MissingRecords(NamedTuple):
    """Committed records of an input that no file has: how many, and the offsets of the first and
    the last one.
    """

    records: int
    first: int
    last: int


@dataclass(frozen=True)
class ArchivePartition:
    """A partition: its ``files`` by the manifest; ``input`` is None if the topic does not exist any
    more.

    ``committed`` is the group's committed offset before the manifest was read, ``later`` after;
    None if there was none, or if it could not be read for the reason ``unknown``.
    """

    topic_partition: TopicPartition
    files: tuple[ArchivedFile, ...] = ()
    input: OffsetRange | None = None
    committed: int | None = None
    later: int | None = None
    unknown: str | None = None

    @property
    def end(self) -> int:
        """Return the offset up to which the archive has to be complete: the committed offset,
        without one the end of its last file.
        """
        last = max((each.last + 1 for each in self.files), default=0)
        return last if self.unknown or self.committed is None else self.committed

    def uncovered(self, contents: Mapping[str, FileContent]) -> list[tuple[int, int]]:
        """Return the offsets that no dense file has, as ranges from the first to before the second,
        below ``end``.
        """
        begin = min((each.first for each in self.files), default=self.end)
        begin = min(begin, self.input.first) if self.input is not None else begin
        dense = [
            contents[each.name]
            for each in self.files
            if each.name in contents and contents[each.name].dense
        ]
        edges = sorted((each.first, each.last + 1) for each in dense)
        starts = [begin, *accumulate((until for _, until in edges), max)]
        stops = [*(first for first, _ in edges), self.end]
        clipped = ((max(a, begin), min(b, self.end)) for a, b in zip(starts, stops, strict=True))
        return [(a, b) for a, b in clipped if a < b]

    def unprovable(self, contents: Mapping[str, FileContent]) -> int:
        first = self.input.first if self.input is not None else self.end
        return sum(max(0, min(b, first) - a) for a, b in self.uncovered(contents))


@dataclass(frozen=True)
class ArchiveAudit:
    """The observations of an audit. ``contents`` has no file that could not be read; ``missing``
    are the records that inputs have and no file has.

    ``orphans`` are the number and the bytes of files of an archive that the manifest does not name.
    """

    cluster_id: str
    directory: str
    manifest: str
    group: str
    partitions: tuple[ArchivePartition, ...]
    sizes: Mapping[str, int]
    contents: Mapping[str, FileContent]
    missing: Mapping[TopicPartition, MissingRecords] = field(default_factory=dict)
    orphans: tuple[int, int] = (0, 0)

    @property
    def files(self) -> tuple[ArchivedFile, ...]:
        return tuple(file for each in self.partitions for file in each.files)


def archive_partitions(
    files: Collection[ArchivedFile], extents: Extents, before: GroupPositions, after: GroupPositions
) -> tuple[ArchivePartition, ...]:
    """Return the partitions of the archive and of its inputs. Offsets of a topic that is gone, or
    that was deleted and created again, are unknown.
    """
    topic_partitions = {
        *(TopicPartition(t, p) for t, found in extents.items() for p in found),
        *(each.topic_partition for each in files),
    }
    found = []
    for partition in sorted(topic_partitions):
        extent = extents.get(partition.topic, {}).get(partition.partition)
        of_partition = tuple(each for each in files if each.topic_partition == partition)
        committed, later = before.offsets.get(partition), after.offsets.get(partition)
        why = before.unknown.get(partition) or after.unknown.get(partition)
        if extent is None:
            why = "the topic no longer exists"
        elif committed is not None and committed > extent.end:
            why = (
                f"its committed offset {committed} is beyond its end {extent.end}: it was "
                "deleted and created again"
            )
        elif committed is not None and committed > extent.stable:
            why = (
                why
                or f"its committed offset {committed} is beyond the last stable offset "
                f"{extent.stable}"
            )
        found.append(ArchivePartition(partition, of_partition, extent, committed, later, why))
    return tuple(found)


def to_read(
    partitions: Iterable[ArchivePartition], contents: Mapping[str, FileContent]
) -> Iterator[PartitionRange]:
    """Yield the ranges of the inputs to read, of those that the inputs still have."""
    for each in partitions:
        if each.input is None:
            continue
        extent = each.input
        for begin, end in each.uncovered(contents):
            start, until = max(begin, extent.first), min(end, extent.stable)
            if start < until:
                yield PartitionRange(*each.topic_partition, start, until, extent.stable, extent.end)


def overlaps(files: Collection[ArchivedFile]) -> list[tuple[ArchivedFile, ArchivedFile]]:
    """Files of a partition that have offsets in common by the manifest; ``files`` are in order."""
    return [
        (a, b)
        for a, b in pairwise(files)
        if a.topic_partition == b.topic_partition and b.first <= a.last
    ]

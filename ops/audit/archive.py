"""What an audit of a Parquet archive compares: its manifest, what is in its files, its group's
committed offsets, and the inputs. Pure.

A file that has each offset from its first to its last proves itself. Where offsets are missing, in
a file or between two, the input says whether a committed record was there: offsets are also taken
by transaction markers and aborted records.
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
    """What a file has: rows, different offsets, the least and the greatest one; and whether all is
    of its partition.
    """

    rows: int
    offsets: int
    first: int
    last: int
    own: bool

    @property
    def dense(self) -> bool:
        """Whether it has every offset from its first to its last."""
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
    """A partition: its ``files`` by the manifest; ``input`` is None where there is no such topic
    any more.

    ``committed`` is what the group had committed before the manifest was read, ``later`` after;
    None for nothing, and where ``unknown`` says why that is unknown.
    """

    place: TopicPartition
    files: tuple[ArchivedFile, ...] = ()
    input: OffsetRange | None = None
    committed: int | None = None
    later: int | None = None
    unknown: str | None = None

    @property
    def end(self) -> int:
        """Up to where it has to be in the archive: the committed offset, without one the end of its
        last file.
        """
        last = max((each.last + 1 for each in self.files), default=0)
        return last if self.unknown or self.committed is None else self.committed

    def uncovered(self, contents: Mapping[str, FileContent]) -> list[tuple[int, int]]:
        """The offsets that no dense file has, as ranges from the first to before the second, below
        ``end``.
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
    """What was seen. ``contents`` has no file that could not be read; ``missing`` is what the
    inputs have and no file has.

    ``orphans`` are the numbers and bytes of files of an archive that the manifest does not name.
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
    """The partitions of the archive and of its inputs. Offsets of a topic that is gone, or that was
    deleted and created again, are unknown.
    """
    places = {
        *(TopicPartition(t, p) for t, found in extents.items() for p in found),
        *(each.place for each in files),
    }
    found = []
    for place in sorted(places):
        there = extents.get(place.topic, {}).get(place.partition)
        own = tuple(each for each in files if each.place == place)
        committed, later = before.offsets.get(place), after.offsets.get(place)
        why = before.unknown.get(place) or after.unknown.get(place)
        if there is None:
            why = "the topic no longer exists"
        elif committed is not None and committed > there.end:
            why = (
                f"its committed offset {committed} is beyond its end {there.end}: it was "
                "deleted and created again"
            )
        elif committed is not None and committed > there.stable:
            why = (
                why
                or f"its committed offset {committed} is beyond the last stable offset "
                f"{there.stable}"
            )
        found.append(ArchivePartition(place, own, there, committed, later, why))
    return tuple(found)


def to_read(
    partitions: Iterable[ArchivePartition], contents: Mapping[str, FileContent]
) -> Iterator[PartitionRange]:
    """What of the inputs has to be read, as far as they still have it."""
    for each in partitions:
        if each.input is None:
            continue
        there = each.input
        for begin, end in each.uncovered(contents):
            start, until = max(begin, there.first), min(end, there.stable)
            if start < until:
                yield PartitionRange(*each.place, start, until, there.stable, there.end)


def overlaps(files: Collection[ArchivedFile]) -> list[tuple[ArchivedFile, ArchivedFile]]:
    """Files of a partition that have offsets in common by the manifest; ``files`` are in order."""
    return [(a, b) for a, b in pairwise(files) if a.place == b.place and b.first <= a.last]

"""Topics of Kafka: their layout, and the offsets at which their partitions begin and end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The beginning and the end of a partition. Readers with read_committed read up to ``stable``,
    which is at most ``end``, the high watermark.
    """

    first: int
    stable: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A topic's id, None of brokers before 2.8, and how many partitions it has."""

    id: str | None
    partitions: int


@dataclass(frozen=True, slots=True)
class KnownEnds:
    """The ends of a topic as they were read; a later end is never lower.

    ``id`` is the topic's, which distinguishes it from an earlier one of that name; None of brokers
    before 2.8. ``ends`` are by partition, 0 if unknown.
    """

    id: str | None = None
    ends: tuple[int, ...] = ()

    def further(self, other: KnownEnds) -> KnownEnds:
        """Return the higher ends of both. If ``other`` is another topic of the same name, it is the
        newer one.
        """
        if self.id != other.id and self.id is not None:
            return other
        return KnownEnds(other.id, tuple(map(max, zip_longest(self.ends, other.ends, fillvalue=0))))


def furthest(one: Mapping[str, KnownEnds], other: Mapping[str, KnownEnds]) -> dict[str, KnownEnds]:
    """Return the higher ends of topics by their names."""
    known = {
        which: one[which].further(reached) if which in one else reached
        for which, reached in other.items()
    }
    return {**one, **known}


@dataclass(frozen=True)
class TopicFacts:
    """The layout of a topic. ``replicas`` and ``in_sync`` are counts by partition; ``config`` has
    the requested properties, and is empty if this principal may not describe it.

    ``leaders`` are the brokers that lead the partitions, or None; ``out_of_sync`` are the brokers
    that have a replica which is not in sync.
    """

    name: str
    partitions: int
    replicas: Mapping[int, int]
    in_sync: Mapping[int, int]
    config: Mapping[str, str] = field(default_factory=dict)
    leaders: Mapping[int, int | None] = field(default_factory=dict)
    out_of_sync: frozenset[int] = frozenset()

"""Topics of Kafka: their layout, and the offsets at which their partitions begin and end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Where a partition begins and ends. Readers with read_committed get no further than
    ``stable``, which is at most ``end``, the high watermark.
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
    """How far a topic is known to reach, from what was read of it: no later end is below.

    ``id`` is the topic's, by which it can be told from another of that name; None of brokers before
    2.8. ``ends`` are by partition, 0 where nothing is known.
    """

    id: str | None = None
    ends: tuple[int, ...] = ()

    def further(self, other: KnownEnds) -> KnownEnds:
        """What both know. Of another topic of the same name, ``other`` is the newer."""
        if self.id != other.id and self.id is not None:
            return other
        return KnownEnds(other.id, tuple(map(max, zip_longest(self.ends, other.ends, fillvalue=0))))


def furthest(one: Mapping[str, KnownEnds], other: Mapping[str, KnownEnds]) -> dict[str, KnownEnds]:
    """What both know of topics, by what these are called there."""
    known = {
        which: one[which].further(reached) if which in one else reached
        for which, reached in other.items()
    }
    return {**one, **known}


@dataclass(frozen=True)
class TopicFacts:
    """How a topic is laid out. ``replicas`` and ``in_sync`` give counts by partition; ``config``
    what was asked for, empty where this principal may not describe it.

    ``leaders`` are the brokers that lead the partitions, None where none does.
    """

    name: str
    partitions: int
    replicas: Mapping[int, int]
    in_sync: Mapping[int, int]
    config: Mapping[str, str] = field(default_factory=dict)
    leaders: Mapping[int, int | None] = field(default_factory=dict)

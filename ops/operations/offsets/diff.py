"""What two places say differently of source offsets: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_keys import connect_json, owner_of
from connectctl.ops.kafka.records import Row, record_in
from connectctl.ops.kafka.spill import in_order

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import Record
    from connectctl.ops.operations.offsets.record_changes import OffsetsTopicState
    from connectctl.ops.operations.offsets.snapshot import OffsetsSnapshot, ReadTopic, SourceOffsets

Said = Mapping[tuple[str, str], str | None]
"""Live values by connector and raw key, as text."""


@dataclass(frozen=True)
class Difference:
    """One key that the two sides do not agree on; None where a side has no offset."""

    connector: str
    key: str
    left: str | None
    right: str | None

    def as_json(self) -> dict[str, Any]:
        """The difference as scripts get it."""
        return {"connector": self.connector, "key": self.key, "left": self.left, "right": self.right}


def differences(left: Said, right: Said) -> tuple[Difference, ...]:
    """Every key whose value is not the same on both sides, in order."""
    keys = sorted({*left, *right})
    return tuple(
        Difference(c, k, left.get((c, k)), right.get((c, k))) for c, k in keys if left.get((c, k)) != right.get((c, k))
    )


def without_what_is_same(
    here: OffsetsSnapshot, there: OffsetsSnapshot, wanted: Sequence[str] = ()
) -> tuple[OffsetsSnapshot, OffsetsSnapshot]:
    """Both without the keys of which they hold the same values in the same topics: what is effective of them is the same.

    So what is understood, spelled and kept in memory is what differs, and not a million offsets. Where a connector of
    ``wanted`` is known by its offsets only, the first of each connector are kept.
    """
    configured = here.configs.connectors if here.configs else {}
    known = all(name in configured and configured[name].looks_like != "sink" for name in wanted)
    kept: tuple[dict[str | None, list[Record]], dict[str | None, list[Record]]] = ({}, {})
    named: set[bytes] = set()
    for place, same in groupby(merge(_rows(here, 0), _rows(there, 1), key=_place), key=_place):
        some = list(same)
        if (known or place[0] in named) and _alike(some):
            continue
        named.add(place[0])
        for row, side, owner in some:
            kept[side].setdefault(owner, []).append(record_in(row))
    return _with(here, kept[0]), _with(there, kept[1])


_Placed = tuple[Row, int, str | None]
"""A row, on which side it is, and in which topic: None is the global one, and otherwise a connector's."""


def _place(placed: _Placed) -> tuple[bytes, bytes]:
    return placed[0][:2]


def _alike(some: list[_Placed]) -> bool:
    """Whether both sides say the same of a key, and it is clear what."""
    if len(some) == 2:
        (left, one, owner), (right, other, others) = some
        return one != other and owner == others and left[6] == right[6] and left[2] == right[2]
    here, there = ([(owner, row[2], row[6]) for row, side, owner in some if side == which] for which in (0, 1))
    # With two records of a key in a topic, the partition tells which one counts.
    return here == there and len({owner for owner, _, _ in here}) == len(here)


def _rows(snapshot: OffsetsSnapshot, side: int) -> Iterator[_Placed]:
    topics = [(None, snapshot.global_topic)] if snapshot.global_topic else []
    there = [*topics, *snapshot.dedicated.items()]
    streams = (zip(in_order(t.image.latest, owner_of), repeat(side), repeat(owner)) for owner, t in there)
    return merge(*streams, key=_place)


def _with(snapshot: OffsetsSnapshot, kept: Mapping[str | None, Sequence[Record]]) -> OffsetsSnapshot:
    def only(owner: str | None, topic: ReadTopic) -> ReadTopic:
        latest = tuple(kept.get(owner, ()))
        return replace(topic, image=replace(topic.image, latest=latest, superseded=(), in_order=False, made={}))

    dedicated = {name: only(name, topic) for name, topic in snapshot.dedicated.items()}
    topic = snapshot.global_topic
    return replace(snapshot, global_topic=topic and only(None, topic), dedicated=dedicated)


def said_by(connector: str, topic_state: OffsetsTopicState) -> dict[tuple[str, str], str | None]:
    """The live values of one connector in one topic."""
    found: dict[tuple[str, str], str | None] = {}
    for key in topic_state.records:
        value = topic_state.value(key)
        if value is not None:
            found[connector, key.decode(errors="backslashreplace")] = value.decode(errors="backslashreplace")
    return found


def effective_of(found: SourceOffsets) -> dict[tuple[str, str], str | None]:
    """The effective offsets of every connector."""
    return {
        (connector.name, entry.key.text): connect_json(entry.effective)
        for connector in found.connectors
        for entry in connector.offsets
        if entry.effective is not None
    }

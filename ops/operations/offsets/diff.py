"""What two places say differently of source offsets: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_keys import connect_json, owners_of
from connectctl.ops.kafka.aligned_blocks import Blocks, are_single, column, have_same, left_over
from connectctl.ops.kafka.records import GROUP, KEY, NO_KEY, VALUE, ConsumerRecord, Row, record_in
from connectctl.ops.kafka.spill import blocks_in_order

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.snapshot import OffsetsSnapshot, ReadTopic, SourceOffsets
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState

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
        return {"connector": self.connector, "key": self.key, "left": self.left, "right": self.right}


def differences(left: Said, right: Said) -> tuple[Difference, ...]:
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
    kept: tuple[dict[str | None, list[ConsumerRecord]], dict[str | None, list[ConsumerRecord]]] = ({}, {})
    named: set[bytes] = set()
    places = [(side, *place) for side, snapshot in enumerate((here, there)) for place in _places(snapshot)]

    def are_alike(blocks: Blocks) -> bool:
        is_named = known or all(named.issuperset(column(rows, GROUP)) for rows in blocks)
        return is_named and _alike({(side, owner): rows for (side, owner, _), rows in zip(places, blocks, strict=True)})

    for blocks in left_over([rows for _, _, rows in places], are_alike):
        for (side, owner, _), rows in zip(places, blocks, strict=True):
            named.update(column(rows, GROUP))
            kept[side].setdefault(owner, []).extend(map(record_in, rows))
    return _with(here, kept[0]), _with(there, kept[1])


Owner = str | None
"""Whose topic it is: None for the global one, and otherwise a connector."""


def _places(snapshot: OffsetsSnapshot) -> Iterator[tuple[Owner, Iterator[list[Row]]]]:
    topics: list[tuple[Owner, ReadTopic]] = [(None, snapshot.global_topic)] if snapshot.global_topic else []
    for owner, topic in [*topics, *snapshot.dedicated.items()]:
        yield owner, blocks_in_order(topic.image.latest, owners_of)


def _alike(there: Mapping[tuple[int, Owner], list[Row]]) -> bool:
    """Whether both sides say the same of all keys in the same topics, and it is clear what."""
    owners = {owner for (_, owner), rows in there.items() if rows}
    pairs = [(there.get((0, owner), []), there.get((1, owner), [])) for owner in owners]
    # With two records of a key in a topic, the partition tells which one counts.
    return all(have_same(left, right, KEY, VALUE, NO_KEY) and are_single(left) for left, right in pairs)


def _with(snapshot: OffsetsSnapshot, kept: Mapping[str | None, Sequence[ConsumerRecord]]) -> OffsetsSnapshot:
    def only(owner: str | None, topic: ReadTopic) -> ReadTopic:
        latest = tuple(kept.get(owner, ()))
        return replace(topic, image=replace(topic.image, latest=latest, superseded=(), in_order=False, made={}))

    dedicated = {name: only(name, topic) for name, topic in snapshot.dedicated.items()}
    topic = snapshot.global_topic
    return replace(snapshot, global_topic=topic and only(None, topic), dedicated=dedicated)


def said_by(connector: str, topic_state: OffsetsTopicState) -> dict[tuple[str, str], str | None]:
    found: dict[tuple[str, str], str | None] = {}
    for key in topic_state.records:
        value = topic_state.value(key)
        if value is not None:
            found[connector, key.decode(errors="backslashreplace")] = value.decode(errors="backslashreplace")
    return found


def effective_of(found: SourceOffsets) -> dict[tuple[str, str], str | None]:
    return {
        (connector.name, entry.key.text): connect_json(entry.effective)
        for connector in found.connectors
        for entry in connector.offsets
        if entry.effective is not None
    }

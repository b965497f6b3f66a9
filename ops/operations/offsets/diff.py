"""Differences between two sets of source offsets. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_keys import connect_json, owner_of
from connectctl.ops.kafka.records import ConsumerRecord

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.snapshot import OffsetsSnapshot, ReadTopic, SourceOffsets
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState

LiveValues = Mapping[tuple[str, str], str | None]
"""Live values by connector and raw key, as text."""


@dataclass(frozen=True)
class Difference:
    """A key with different offsets on the two sides; None where a side has no offset."""

    connector: str
    key: str
    left: str | None
    right: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "connector": self.connector,
            "key": self.key,
            "left": self.left,
            "right": self.right,
        }


def differences(left: LiveValues, right: LiveValues) -> tuple[Difference, ...]:
    keys = sorted({*left, *right})
    return tuple(
        Difference(c, k, left.get((c, k)), right.get((c, k)))
        for c, k in keys
        if left.get((c, k)) != right.get((c, k))
    )


def without_equal_values(
    first: OffsetsSnapshot, second: OffsetsSnapshot, names: Sequence[str] = ()
) -> tuple[OffsetsSnapshot, OffsetsSnapshot]:
    """Return both snapshots without the keys that have equal values in the same topics.

    Their effective offsets are equal, and need not be parsed. If a connector in ``names`` has no
    configuration, one key of each connector is kept.
    """
    configured = first.configs.connectors if first.configs else {}
    known = all(name in configured and configured[name].looks_like != "sink" for name in names)
    left_records, right_records = (_by_owner(snapshot) for snapshot in (first, second))
    keys = {(owner, key) for owner, by_key in left_records.items() for key in by_key}
    keys |= {(owner, key) for owner, by_key in right_records.items() for key in by_key}
    differ = {
        key
        for owner, key in keys
        if not _is_equal(
            left_records.get(owner, {}).get(key), right_records.get(owner, {}).get(key)
        )
    }
    if not known:  # the first key of each connector, by its name
        differ.update({owner_of(key): key for _, key in keys}.values())
    return _only(first, differ), _only(second, differ)


Owner = str | None
"""The connector of a dedicated topic, None for the global topic."""
ByKey = dict[bytes | None, list[ConsumerRecord]]


def _by_owner(snapshot: OffsetsSnapshot) -> dict[Owner, ByKey]:
    topics: list[tuple[Owner, ReadTopic]] = (
        [(None, snapshot.global_topic)] if snapshot.global_topic else []
    )
    found: dict[Owner, ByKey] = {}
    for owner, topic in [*topics, *snapshot.dedicated.items()]:
        by_key = found.setdefault(owner, {})
        for record in topic.image.latest:
            by_key.setdefault(record.key, []).append(record)
    return found


def _is_equal(left: list[ConsumerRecord] | None, right: list[ConsumerRecord] | None) -> bool:
    """Return whether each side has exactly one record of a key, with the same value."""
    return (
        left is not None
        and right is not None
        and len(left) == len(right) == 1
        and left[0].value == right[0].value
    )


def _only(snapshot: OffsetsSnapshot, keys: Collection[bytes | None]) -> OffsetsSnapshot:
    def only(topic: ReadTopic) -> ReadTopic:
        latest = tuple(record for record in topic.image.latest if record.key in keys)
        return replace(topic, image=replace(topic.image, latest=latest, superseded=(), made={}))

    dedicated = {name: only(topic) for name, topic in snapshot.dedicated.items()}
    return replace(
        snapshot,
        global_topic=snapshot.global_topic and only(snapshot.global_topic),
        dedicated=dedicated,
    )


def live_values(connector: str, state: OffsetsTopicState) -> dict[tuple[str, str], str | None]:
    found: dict[tuple[str, str], str | None] = {}
    for key in state.records:
        value = state.value(key)
        if value is not None:
            found[connector, key.decode(errors="backslashreplace")] = value.decode(
                errors="backslashreplace"
            )
    return found


def effective_values(found: SourceOffsets) -> dict[tuple[str, str], str | None]:
    return {
        (connector.name, entry.key.text): connect_json(entry.effective)
        for connector in found.connectors
        for entry in connector.offsets
        if entry.effective is not None
    }

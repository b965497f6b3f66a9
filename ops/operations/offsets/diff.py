"""What two places say differently of source offsets: pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_keys import connect_json, owner_of
from connectctl.ops.kafka.records import ConsumerRecord

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
    """Return both without the keys of which they hold the same values in the same topics: what is effective is the same.

    So what is understood, spelled and printed is what differs, and not a million offsets. Where a connector of ``wanted`` is
    known by its offsets only, one key of each connector is kept.
    """
    configured = here.configs.connectors if here.configs else {}
    known = all(name in configured and configured[name].looks_like != "sink" for name in wanted)
    left, right = (_by_owner(snapshot) for snapshot in (here, there))
    every = {(owner, key) for owner, by_key in left.items() for key in by_key}
    every |= {(owner, key) for owner, by_key in right.items() for key in by_key}
    differ = {key for owner, key in every if not _alike(left.get(owner, {}).get(key), right.get(owner, {}).get(key))}
    if not known:  # the first key of each connector, by its name
        differ.update({owner_of(key): key for _, key in every}.values())
    return _only(here, differ), _only(there, differ)


Owner = str | None
"""Whose topic it is: None for the global one, and otherwise a connector."""
ByKey = dict[bytes | None, list[ConsumerRecord]]


def _by_owner(snapshot: OffsetsSnapshot) -> dict[Owner, ByKey]:
    topics: list[tuple[Owner, ReadTopic]] = [(None, snapshot.global_topic)] if snapshot.global_topic else []
    found: dict[Owner, ByKey] = {}
    for owner, topic in [*topics, *snapshot.dedicated.items()]:
        by_key = found.setdefault(owner, {})
        for record in topic.image.latest:
            by_key.setdefault(record.key, []).append(record)
    return found


def _alike(left: list[ConsumerRecord] | None, right: list[ConsumerRecord] | None) -> bool:
    """Return ``True`` if each side has one record of a key, with the same value: of two records one counts, by partition."""
    return left is not None and right is not None and len(left) == len(right) == 1 and left[0].value == right[0].value


def _only(snapshot: OffsetsSnapshot, keys: Collection[bytes | None]) -> OffsetsSnapshot:
    def only(topic: ReadTopic) -> ReadTopic:
        latest = tuple(record for record in topic.image.latest if record.key in keys)
        return replace(topic, image=replace(topic.image, latest=latest, superseded=(), made={}))

    dedicated = {name: only(topic) for name, topic in snapshot.dedicated.items()}
    return replace(snapshot, global_topic=snapshot.global_topic and only(snapshot.global_topic), dedicated=dedicated)


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

"""What two places say differently of source offsets: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_keys import connect_json

if TYPE_CHECKING:
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

    So what is understood and spelled is what differs, and not a million offsets. Nothing is left out where a connector of
    ``wanted`` is known by its offsets only.
    """
    for name in wanted:
        configured = here.configs.connectors.get(name) if here.configs else None
        if configured is None or configured.looks_like == "sink":
            return here, there
    one, other = _values(here), _values(there)
    # With two records of a key in a topic, the partition tells which one counts.
    same = {
        key
        for key, values in one.items()
        if other.get(key) == values and (len(values) == 1 or len(values) == len(dict(values)))
    }
    return _without(here, same), _without(there, same)


def _values(snapshot: OffsetsSnapshot) -> dict[bytes | None, list[tuple[str | None, bytes | None]]]:
    """What is said of each key: by the global topic (None), and by the dedicated topic of each connector."""
    found: dict[bytes | None, list[tuple[str | None, bytes | None]]] = {}
    for owner, topic in _topics(snapshot):
        for record in topic.image.latest:
            if record.key in found:
                found[record.key].append((owner, record.value))
            else:
                found[record.key] = [(owner, record.value)]
    return found


def _topics(snapshot: OffsetsSnapshot) -> Iterator[tuple[str | None, ReadTopic]]:
    if snapshot.global_topic is not None:
        yield None, snapshot.global_topic
    yield from snapshot.dedicated.items()


def _without(snapshot: OffsetsSnapshot, keys: set[bytes | None]) -> OffsetsSnapshot:
    def rest(topic: ReadTopic) -> ReadTopic:
        kept = tuple(record for record in topic.image.latest if record.key not in keys)
        return replace(topic, image=replace(topic.image, latest=kept, superseded=(), made={}))

    dedicated = {name: rest(topic) for name, topic in snapshot.dedicated.items()}
    return replace(snapshot, global_topic=snapshot.global_topic and rest(snapshot.global_topic), dedicated=dedicated)


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

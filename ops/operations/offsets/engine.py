"""Who reads the offsets topics: this process, or Spark where a topic is too big for it. Both give the same answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from connectctl.ops.connect.source_keys import owner_of
from connectctl.ops.kafka.records import Record, SortedRecords, record_in
from connectctl.ops.operations.offsets.backup_file import read_backup
from connectctl.ops.operations.offsets.effective_offsets import topics_of
from connectctl.ops.operations.offsets.key_filter import filter_records
from connectctl.ops.operations.offsets.large_topics import is_big
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.record_changes import Saved, by_connector
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic, emptied
from connectctl.ops.operations.offsets.topic_state import topic_states

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.key_filter import Purpose
    from connectctl.ops.operations.offsets.record_changes import OffsetsTopicState


@dataclass(frozen=True)
class Asked:
    """What one connector is looked at for.

    ``dedicated_topic`` stands in for one that its configuration does not name; ``backup`` is the one that a restore reads.
    """

    purpose: Purpose
    dedicated_topic: str | None = None
    backup: Path | None = None


@dataclass(frozen=True)
class View:
    """Topics without what cannot matter to what was asked; by connector its places, and of its backup what matters."""

    snapshot: OffsetsSnapshot
    places: Mapping[str, list[OffsetsTopicState]]
    saved: Mapping[str, Saved] = field(default_factory=dict)


class Engine(Protocol):
    """Reads the topics of connectors. Raises what ``KafkaReads`` raises, and ``BadInput`` for a bad backup."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        """What matters to everything that is asked; each of another connector."""
        ...


class Local:
    """Reads everything in this process. Of topics too big for memory only what matters is kept, but for a restore."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        """See ``Engine``."""
        snapshot = observe(sources, OffsetsQuery(tuple(each.purpose.connector for each in asked)))
        backups = saved(asked)
        if backups or not is_big(snapshot):
            return View(snapshot, layout(sources, snapshot, asked), backups)
        places = layout(sources, emptied(snapshot), asked)
        return View(snapshot, {each.purpose.connector: _kept(snapshot, each.purpose, places) for each in asked})


def _kept(
    snapshot: OffsetsSnapshot, purpose: Purpose, places: Mapping[str, list[OffsetsTopicState]]
) -> list[OffsetsTopicState]:
    """The places of a connector with what matters of the topics that were read."""
    theirs = places[purpose.connector]
    topics = {(topic.bootstrap, topic.image.topic): topic for topic in topics_of(snapshot)}
    return filter_records(
        purpose, theirs, [_records(topics.get((at.bootstrap, at.topic)), at, purpose) for at in theirs]
    )


def _records(topic: ReadTopic | None, at: OffsetsTopicState, purpose: Purpose) -> Iterable[Record]:
    """What there is of a connector, and maybe of others, in the order of the keys."""
    owner = purpose.connector.encode(errors="surrogatepass")
    if topic is None:
        return (record for _, records in sorted(at.records.items()) for record in records)
    there = topic.image.latest
    if isinstance(there, SortedRecords):
        return (record_in(row) for rows in there.blocks(owner) for row in rows if row[0] == owner)
    return sorted((r for r in there if owner_of(r.key) == owner), key=lambda r: (r.key or b"", r.partition))


def layout(sources: Sources, snapshot: OffsetsSnapshot, asked: Sequence[Asked]) -> dict[str, list[OffsetsTopicState]]:
    """The places of each connector."""
    names = [(each.purpose.connector, each.dedicated_topic) for each in asked]
    known = by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) > 1 else None
    return {name: topic_states(sources, snapshot, name, topic, known) for name, topic in names}


def saved(asked: Sequence[Asked]) -> dict[str, Saved]:
    """The backups, read in this process."""
    return {each.purpose.connector: read_backup(each.backup) for each in asked if each.backup is not None}

"""Who reads the offsets topics: this process, or Spark where a topic is too big for it. Both give the same answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from connectctl.ops.connect.source_keys import owner_of
from connectctl.ops.kafka.records import Record, SortedRecords, record_in
from connectctl.ops.kafka.spill import in_order
from connectctl.ops.operations.offsets.backup_file import read_backup
from connectctl.ops.operations.offsets.effective_offsets import topics_of
from connectctl.ops.operations.offsets.key_filter import filter_records
from connectctl.ops.operations.offsets.large_topics import is_big
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.record_changes import Saved, by_connector
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, emptied
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
    """Reads everything in this process. Of topics and backups too big for memory only what matters is kept."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        """See ``Engine``."""
        snapshot = observe(sources, OffsetsQuery(tuple(each.purpose.connector for each in asked)))
        backups = {each.purpose.connector: read_backup(each.backup) for each in asked if each.backup is not None}
        on_disk = any(isinstance(records, SortedRecords) for saved in backups.values() for records in saved.values())
        if not on_disk and not is_big(snapshot):
            return View(snapshot, layout(sources, snapshot, asked), backups)
        places = layout(sources, emptied(snapshot), asked)
        kept = {
            name: _kept(snapshot, each.purpose, places[name], backups.get(name, {}))
            for each in asked
            if (name := each.purpose.connector)
        }
        return View(snapshot, {n: at for n, (at, _) in kept.items()}, {n: kept[n][1] for n in backups})


def _kept(
    snapshot: OffsetsSnapshot, purpose: Purpose, places: list[OffsetsTopicState], backup: Saved
) -> tuple[list[OffsetsTopicState], Saved]:
    """The places of a connector, and its backup, with what matters of the topics that were read."""
    topics = {(topic.bootstrap, topic.image.topic): topic.image.latest for topic in topics_of(snapshot)}
    own = [(record for _, its in sorted(at.records.items()) for record in its) for at in places]
    owner = purpose.connector.encode(errors="surrogatepass")

    def its(records: Collection[Record]) -> Iterator[Record]:
        return map(record_in, in_order(records, owner_of, owner))

    found = [topics.get((at.bootstrap, at.topic)) for at in places]
    records = [some if there is None else its(there) for there, some in zip(found, own, strict=True)]
    return filter_records(purpose, places, records, {where: its(some) for where, some in backup.items()})


def layout(sources: Sources, snapshot: OffsetsSnapshot, asked: Sequence[Asked]) -> dict[str, list[OffsetsTopicState]]:
    """The places of each connector."""
    names = [(each.purpose.connector, each.dedicated_topic) for each in asked]
    known = by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) > 1 else None
    return {name: topic_states(sources, snapshot, name, topic, known) for name, topic in names}

"""Who reads the offsets topics: this process, or Spark where a topic is too big for it. Both give the same answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.kafka.records import ConsumerRecord, Row, SortedRecords, record_in
from connectctl.ops.kafka.spill import blocks_in_order
from connectctl.ops.operations.offsets.backup_file import backup_lines, lines_of, read_backup
from connectctl.ops.operations.offsets.changes import OffsetRequest
from connectctl.ops.operations.offsets.effective_offsets import topics_of
from connectctl.ops.operations.offsets.key_filter import Purpose, Sorted, is_decided
from connectctl.ops.operations.offsets.large_topics import is_big
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, Saved, decide
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, emptied
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, by_connector, topic_states


@dataclass(frozen=True)
class Asked:
    """What one connector is looked at for.

    ``dedicated_topic`` stands in for one that its configuration does not name; ``backup`` is the one that a restore reads.
    ``streamed``: the records are gone through once, with ``View.lines``, and need not be held.
    """

    purpose: Purpose
    dedicated_topic: str | None = None
    backup: Path | None = None
    streamed: bool = False


@dataclass(frozen=True)
class View:
    """Topics without what cannot matter to what was asked; by connector its places, and of its backup what matters.

    ``decisions`` are those on topics too big for memory, ``records`` what was to be streamed of each place.
    """

    snapshot: OffsetsSnapshot
    places: dict[str, list[OffsetsTopicState]]
    saved: dict[str, Saved] = field(default_factory=dict)
    decisions: dict[str, OffsetChanges] = field(default_factory=dict)
    records: dict[str, Sequence[Iterable[list[Row]]]] = field(default_factory=dict)

    def decide(self, request: OffsetRequest) -> OffsetChanges:
        name = request.connector
        return self.decisions.get(name) or decide(request, self.places[name], self.saved.get(name))

    def config_of(self, connector: str) -> dict[str, str] | None:
        """Return the connector's configuration; None if it is not configured, or the config topic was not read."""
        configured = self.snapshot.configs.connectors.get(connector) if self.snapshot.configs else None
        return None if configured is None else configured.config

    def lines(self, connector: str) -> Iterator[str]:
        if connector not in self.records:
            return backup_lines(self.places[connector])
        pairs = zip(self.places[connector], self.records[connector], strict=True)
        return (line for at, its in pairs for line in _lines(at, its))


def _lines(at: OffsetsTopicState, blocks: Iterable[list[Row]]) -> Iterator[str]:
    return lines_of((record_in(row) for rows in blocks for row in rows), at.topic, at.bootstrap)


class Engine(Protocol):
    """Reads the topics of connectors. Raises what ``KafkaReads`` raises, and ``BadInput`` for a bad backup."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        """What matters to everything that is asked; each of another connector."""
        ...


class Local:
    """Reads everything in this process. Of topics and backups too big for memory only what matters is kept."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        snapshot = observe(sources, OffsetsQuery(tuple(each.purpose.connector for each in asked)))
        backups = {each.purpose.connector: read_backup(each.backup) for each in asked if each.backup is not None}
        return seen(sources, snapshot, asked, backups)


def seen(sources: Sources, snapshot: OffsetsSnapshot, asked: Sequence[Asked], backups: Mapping[str, Saved]) -> View:
    """What matters of what was read, by connector; of topics and backups on disk nothing else is held in memory."""
    on_disk = any(isinstance(records, SortedRecords) for saved in backups.values() for records in saved.values())
    if not on_disk and not is_big(snapshot):
        return View(snapshot, layout(sources, snapshot, asked), {**backups})
    found = layout(sources, emptied(snapshot), asked)
    view = View(snapshot, {}, {}, {}, {})
    for each in asked:
        name = each.purpose.connector
        there = _sorted(snapshot, each.purpose, found[name], backups.get(name, {}))
        if each.streamed:
            view.places[name], view.records[name] = found[name], there.records
        elif is_decided(each.purpose, found[name]):
            view.places[name], view.saved[name], view.decisions[name] = there.decided(each.purpose)
        else:
            view.places[name], view.saved[name] = there.filtered()
    return view


def _sorted(snapshot: OffsetsSnapshot, purpose: Purpose, places: list[OffsetsTopicState], backup: Saved) -> Sorted:
    """The records of a connector in its places, and in a backup, in the order of their keys."""
    topics = {(topic.bootstrap, topic.image.topic): topic.image.latest for topic in topics_of(snapshot)}
    owner = purpose.connector.encode(errors="surrogatepass")

    def its(records: Iterable[ConsumerRecord]) -> Iterator[list[Row]]:
        return blocks_in_order(records, owners_of, owner)

    def there(at: OffsetsTopicState) -> Iterator[list[Row]]:
        read = topics.get((at.bootstrap, at.topic))
        return its([record for own in at.records.values() for record in own] if read is None else read)

    return Sorted(purpose, places, list(map(there, places)), {where: its(some) for where, some in backup.items()})


def layout(sources: Sources, snapshot: OffsetsSnapshot, asked: Sequence[Asked]) -> dict[str, list[OffsetsTopicState]]:
    names = [(each.purpose.connector, each.dedicated_topic) for each in asked]
    known = by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) > 1 else None
    return {name: topic_states(sources, snapshot, name, topic, known) for name, topic in names}

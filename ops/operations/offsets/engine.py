"""Who reads the offsets topics: this process, or Spark for topics beyond memory. Both give the same answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Protocol

from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.backup_file import read_backup
from connectctl.ops.operations.offsets.changes import OffsetRequest
from connectctl.ops.operations.offsets.dump_lines import lines_of
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.purpose import Purpose
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, Saved, decide
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, by_connector, topic_states


@dataclass(frozen=True)
class Asked:
    """The purpose for which one connector is read.

    ``dedicated_topic`` stands in for one that its configuration does not name; ``backup`` is the one that a restore reads.
    ``streamed``: the records are gone through once, with ``View.lines``, and need not be held by key.
    """

    purpose: Purpose
    dedicated_topic: str | None = None
    backup: Path | None = None
    streamed: bool = False


@dataclass(frozen=True)
class View:
    """The topics that were read; by connector its places, and the records of its backup.

    Spark leaves out the keys that do not matter to what was asked. ``decisions`` are those that its tasks made, ``records``
    what was to be streamed of each place.
    """

    snapshot: OffsetsSnapshot
    places: dict[str, list[OffsetsTopicState]]
    saved: dict[str, Saved] = field(default_factory=dict)
    decisions: dict[str, OffsetChanges] = field(default_factory=dict)
    records: dict[str, Sequence[Collection[ConsumerRecord]]] = field(default_factory=dict)

    def decide(self, request: OffsetRequest) -> OffsetChanges:
        name = request.connector
        return self.decisions.get(name) or decide(request, self.places[name], self.saved.get(name))

    def config_of(self, connector: str) -> dict[str, str] | None:
        """Return the connector's configuration; None if it is not configured, or the config topic was not read."""
        configured = self.snapshot.configs.connectors.get(connector) if self.snapshot.configs else None
        return None if configured is None else configured.config

    def lines(self, connector: str) -> Iterator[str]:
        """Yield the lines of a backup of ``connector``."""
        places = self.places[connector]
        records = self.records.get(connector) or [list(chain(*at.records.values())) for at in places]
        for at, some in zip(places, records, strict=True):
            yield from lines_of(some, at.topic, at.bootstrap)


class Engine(Protocol):
    """Reads the topics of connectors. Raises what ``KafkaReads`` raises, and ``BadInput`` for a bad backup."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        """Return the topics of all connectors in ``asked``, each of which is there once."""
        ...


class Local:
    """Reads everything in this process: a dictionary of the newest record of each key."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        snapshot = observe(sources, OffsetsQuery(tuple(each.purpose.connector for each in asked)))
        backups = {
            (name := each.purpose.connector): read_backup(each.backup, name)
            for each in asked
            if each.backup is not None
        }
        return View(snapshot, layout(sources, snapshot, asked), backups)


def layout(sources: Sources, snapshot: OffsetsSnapshot, asked: Sequence[Asked]) -> dict[str, list[OffsetsTopicState]]:
    """Return the places of each connector, with its records."""
    names = [(each.purpose.connector, each.dedicated_topic) for each in asked]
    known = by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) > 1 else None
    return {name: topic_states(sources, snapshot, name, topic, known) for name, topic in names}

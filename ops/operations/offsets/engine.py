"""The engines that read offsets topics: this process, or Spark for topics beyond memory, with equal
results; and the purposes for which they read a connector's offsets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeGuard

from connectctl.ops.connect.last_commit import Side
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.changes import MergeOffsets, OffsetRequest, RestoreBackup
from connectctl.ops.operations.offsets.dump_lines import lines_of
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, Saved, decide
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot
from connectctl.ops.operations.offsets.topic_dump import read_backup
from connectctl.ops.operations.offsets.topic_state import (
    OffsetsTopicState,
    by_connector,
    last_commits,
    topic_states,
)


@dataclass(frozen=True)
class AllKeys:
    """All records of a connector: for a backup, and by default."""

    connector: str


@dataclass(frozen=True)
class DifferingKeys:
    """The keys with different values in the global and the dedicated topic."""

    connector: str


Purpose = AllKeys | DifferingKeys | MergeOffsets | RestoreBackup


def is_decided(
    purpose: Purpose, states: Sequence[OffsetsTopicState]
) -> TypeGuard[MergeOffsets | RestoreBackup]:
    """Return whether the changes for ``purpose`` can be decided on a part of the keys at a time."""
    return isinstance(purpose, RestoreBackup) or (
        isinstance(purpose, MergeOffsets) and len(states) == len(Side)
    )


def relevant(purpose: Purpose, states: Sequence[OffsetsTopicState], saved: Saved) -> set[bytes]:
    """Return the keys whose records are needed in addition to the decision for ``purpose``, or
    instead of it.
    """
    keys = {key for state in states for key in state.records}
    # It counts the offsets in topics that the backup does not include.
    if isinstance(purpose, RestoreBackup):
        return {
            key
            for state in states
            if (state.bootstrap, state.topic) not in saved
            for key in state.records
        }
    if isinstance(purpose, AllKeys) or len(states) < len(Side):
        return keys
    if isinstance(purpose, DifferingKeys):
        global_, dedicated = states
        return {key for key in keys if global_.value(key) != dedicated.value(key)}
    verdicts = last_commits(states, running=purpose.running)
    return {key for key, last in verdicts if last.stale or last.in_doubt}


@dataclass(frozen=True)
class ReadRequest:
    """The purpose for which one connector is read.

    ``dedicated_topic`` is read if the configuration does not name one; ``backup`` is the one that a
    restore reads. ``streamed``: the records are iterated once, with ``View.lines``, and need not be
    held by key.
    """

    purpose: Purpose
    dedicated_topic: str | None = None
    backup: Path | None = None
    streamed: bool = False


@dataclass(frozen=True)
class View:
    """The topics that were read; by connector its offsets topics, and the records of its backup.

    Spark omits the keys that are irrelevant to the requests. ``decisions`` are those of its tasks,
    ``records`` are the streamed records of each topic.
    """

    snapshot: OffsetsSnapshot
    topic_states: dict[str, list[OffsetsTopicState]]
    saved: dict[str, Saved] = field(default_factory=dict)
    decisions: dict[str, OffsetChanges] = field(default_factory=dict)
    records: dict[str, Sequence[Collection[ConsumerRecord]]] = field(default_factory=dict)

    def decide(self, request: OffsetRequest) -> OffsetChanges:
        name = request.connector
        return self.decisions.get(name) or decide(
            request, self.topic_states[name], self.saved.get(name)
        )

    def config_of(self, connector: str) -> dict[str, str] | None:
        """Return the connector's configuration; None if it is not configured, or the config topic
        was not read.
        """
        configured = (
            self.snapshot.configs.connectors.get(connector) if self.snapshot.configs else None
        )
        return None if configured is None else configured.config

    def lines(self, connector: str) -> Iterator[str]:
        """Yield the lines of a backup of ``connector``."""
        states = self.topic_states[connector]
        records = self.records.get(connector) or [
            list(chain(*state.records.values())) for state in states
        ]
        for state, topic_records in zip(states, records, strict=True):
            yield from lines_of(topic_records, state.topic, state.bootstrap)


class Engine(Protocol):
    """Reads the topics of connectors. Raises what ``KafkaReads`` raises, and ``BadInput`` for a bad
    backup.
    """

    def view(self, sources: Sources, requests: Sequence[ReadRequest]) -> View:
        """Return the topics of the connectors in ``requests``, which has each of them once."""
        ...


class Local:
    """Reads the topics in this process, into a dictionary of the newest record of each key."""

    def view(self, sources: Sources, requests: Sequence[ReadRequest]) -> View:
        snapshot = observe(
            sources, OffsetsQuery(tuple(request.purpose.connector for request in requests))
        )
        backups = {
            (name := request.purpose.connector): read_backup(request.backup, name)
            for request in requests
            if request.backup is not None
        }
        return View(snapshot, layout(sources, snapshot, requests), backups)


def layout(
    sources: Sources, snapshot: OffsetsSnapshot, requests: Sequence[ReadRequest]
) -> dict[str, list[OffsetsTopicState]]:
    """Return the offsets topics of each connector, with its records."""
    names = [(request.purpose.connector, request.dedicated_topic) for request in requests]
    known = (
        by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) > 1 else None
    )
    return {name: topic_states(sources, snapshot, name, topic, known) for name, topic in names}

"""Who reads the offsets topics: this process, or Spark where a topic is too big for it. Both give the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from connectctl.ops.offsets.decide import by_connector
from connectctl.ops.offsets.observe import Sources, observe
from connectctl.ops.offsets.places import places_of
from connectctl.ops.offsets.saved import Saved, read_backup
from connectctl.ops.offsets.snapshot import OffsetsSnapshot
from connectctl.ops.offsets.snapshot import Wish as Look

if TYPE_CHECKING:
    from connectctl.ops.offsets.decide import Place
    from connectctl.ops.offsets.sieve import Purpose


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
    places: Mapping[str, list[Place]]
    saved: Mapping[str, Saved] = field(default_factory=dict)


class Engine(Protocol):
    """Reads the topics of connectors. Raises what ``KafkaReads`` raises, and ``BadInput`` for a bad backup."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        """What matters to everything that is asked; each of another connector."""
        ...


class Local:
    """Reads everything in this process, and leaves nothing out."""

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        """See ``Engine``."""
        snapshot = observe(sources, Look(tuple(each.purpose.connector for each in asked)))
        return View(snapshot, layout(sources, snapshot, asked), saved(asked))


def layout(sources: Sources, snapshot: OffsetsSnapshot, asked: Sequence[Asked]) -> dict[str, list[Place]]:
    """The places of each connector."""
    names = [(each.purpose.connector, each.dedicated_topic) for each in asked]
    known = by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) > 1 else None
    return {name: places_of(sources, snapshot, name, topic, known) for name, topic in names}


def saved(asked: Sequence[Asked]) -> dict[str, Saved]:
    """The backups, read in this process."""
    return {each.purpose.connector: read_backup(each.backup) for each in asked if each.backup is not None}

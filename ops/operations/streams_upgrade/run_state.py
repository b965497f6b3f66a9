"""What a run writes down of the instances of a stream application, so that a killed run can go on, or be taken back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal

FILE = "application.json"
CHANGED, RESTARTED, BACK = "changed", "restarted", "back"


@dataclass(frozen=True)
class Entry:
    """How far an instance is in a roll. ``before`` are the members of the group just before its restart."""

    state: str
    before: tuple[str, ...] = ()


@dataclass
class Notes:
    """The notes of one run, by roll and instance (``2:app-1:7001``). ``was`` is each property before it was changed."""

    entries: dict[str, Entry] = field(default_factory=dict)
    was: dict[str, str | None] = field(default_factory=dict)

    def of(self, roll: int, instance: str) -> Entry | None:
        """How far an instance is."""
        return self.entries.get(f"{roll}:{instance}")

    def to_data(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Notes:
        """The inverse of ``to_data``."""
        entries = {key: Entry(value["state"], tuple(value["before"])) for key, value in data["entries"].items()}
        return cls(entries, dict(data["was"]))


def load(journal: Journal, run: str) -> Notes:
    """The notes of a run, empty ones where it has none yet."""
    path = journal.path(run, FILE)
    return Notes.from_data(read_json(path.read_bytes())) if path.exists() else Notes()


def save(journal: Journal, run: str, notes: Notes) -> None:
    """Write the notes of a run; they are on the disk when this returns."""
    journal.write(run, FILE, json.dumps(notes.to_data()).encode())

"""What a run writes down of the instances of a stream application, so that a killed run can be resumed, or be taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from connectctl.ops.operations.rolling.notes import RunNotes

CHANGED, RESTARTED, BACK = "changed", "restarted", "back"


@dataclass(frozen=True)
class InstanceProgress:
    """How far an instance is in a roll. ``before`` are the members of the group just before its restart."""

    state: str
    before: tuple[str, ...] = ()


@dataclass
class ApplicationNotes(RunNotes):
    """The notes of one run, by roll and instance (``2:app-1:7001``). ``was`` is each property before it was changed."""

    FILE: ClassVar[str] = "application.json"
    entries: dict[str, InstanceProgress] = field(default_factory=dict)
    was: dict[str, str | None] = field(default_factory=dict)

    def of(self, roll: int, instance: str) -> InstanceProgress | None:
        """How far an instance is."""
        return self.entries.get(f"{roll}:{instance}")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ApplicationNotes:
        """The inverse of ``to_data``."""
        entries = {
            key: InstanceProgress(value["state"], tuple(value["before"])) for key, value in data["entries"].items()
        }
        return cls(entries, dict(data["was"]))

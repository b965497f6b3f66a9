"""The progress of an application's instances, stored so that a killed run can be resumed or rolled
back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from connectctl.ops.operations.rolling.notes import RunNotes

CHANGED, RESTARTED, BACK = "changed", "restarted", "back"


@dataclass(frozen=True)
class InstanceProgress:
    """The progress of an instance in a roll. ``before`` are the group members just before its
    restart.
    """

    state: str
    before: tuple[str, ...] = ()


@dataclass
class ApplicationNotes(RunNotes):
    """The notes of one run, by roll and instance (``2:app-1:7001``). ``was``: each instance's
    property before the change.
    """

    FILE: ClassVar[str] = "application.json"
    entries: dict[str, InstanceProgress] = field(default_factory=dict)
    was: dict[str, str | None] = field(default_factory=dict)

    def of(self, roll: int, instance: str) -> InstanceProgress | None:
        """The progress of an instance, None before its first step."""
        return self.entries.get(f"{roll}:{instance}")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ApplicationNotes:
        """The inverse of ``to_data``."""
        entries = {
            key: InstanceProgress(value["state"], tuple(value["before"]))
            for key, value in data["entries"].items()
        }
        return cls(entries, dict(data["was"]))

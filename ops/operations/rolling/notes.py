"""The JSON file that a run writes in addition to its plan, so that a killed run can resume."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal


@dataclass
class RunNotes(ABC):
    """The notes of one run. Each subclass sets ``FILE``, its file name in the run's journal
    directory.
    """

    FILE: ClassVar[str]

    def to_data(self) -> dict[str, Any]:
        """Return the notes as JSON values."""
        return asdict(self)

    @classmethod
    @abstractmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of ``to_data``."""

    @classmethod
    def load(cls, journal: Journal, run: str) -> Self:
        """Return the notes of a run, empty if it has none yet."""
        if not journal.path(run, cls.FILE).exists():
            return cls()
        data = journal.read_json(run, cls.FILE)
        try:
            return cls.from_data(data)
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise BadInput(
                f"The notes {journal.path(run, cls.FILE)} cannot be read", why=str(e)
            ) from e

    def save(self, journal: Journal, run: str) -> None:
        """Write the notes of a run to disk before returning."""
        journal.write(run, self.FILE, json.dumps(self.to_data()).encode())

"""The JSON file that a run writes in addition to its plan, so that a killed run can resume."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Self

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.step import from_data, to_data

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal


@dataclass
class RunNotes:
    """The notes of one run. Each subclass sets ``FILE``, its file name in the run's journal
    directory.
    """

    FILE: ClassVar[str]

    @classmethod
    def load(cls, journal: Journal, run: str) -> Self:
        """Return the notes of a run, empty if it has none yet."""
        if not journal.path(run, cls.FILE).exists():
            return cls()
        data = journal.read_json(run, cls.FILE)
        try:
            if data.keys() != {each.name for each in fields(cls)}:
                raise ValueError("it has other members than notes have")
            found: Self = from_data(cls, data, {})
            return found
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise BadInput(
                f"The notes {journal.path(run, cls.FILE)} cannot be read", why=str(e)
            ) from e

    def save(self, journal: Journal, run: str) -> None:
        """Write the notes of a run to disk before returning."""
        journal.write(run, self.FILE, json.dumps(to_data(self)).encode())

"""How a run is taken back: from its backups, and from what it changed in connectors' configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.operations.offsets.changes import Restore, from_data
from connectctl.ops.operations.offsets.steps import Backup, Change, Configure, backup_file

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run


@dataclass(frozen=True)
class Back:
    """What takes one connector back: the restore, with the topic that it had or got meanwhile."""

    wish: Restore
    dedicated_topic: str | None


def taken_back(journal: Journal, run: Run, steps: Sequence[Any]) -> dict[str, Back]:
    """The wish that takes back ``run`` for each connector whose offsets it saved.

    A property that the run set goes back to what it was before.
    """
    found: dict[str, Back] = {}
    for number, step in enumerate(steps):
        if isinstance(step, Backup) and journal.path(run.id, backup_file(number)).exists():
            sets = [s for s in steps if isinstance(s, Configure) and s.subject == step.subject]
            reverted = tuple((s.name, s.was) for s in sets)
            wish = Restore(step.subject, backup_file(number), run.id, reverted)
            found[step.subject] = Back(wish, step.dedicated_topic)
    return found


def undone_by(steps: Sequence[Any]) -> frozenset[str]:
    """The runs that ``steps`` took back, now that all of them are done."""
    found = (from_data(step.wish) for step in steps if isinstance(step, Change))
    return frozenset(wish.run for wish in found if isinstance(wish, Restore) and wish.run is not None)

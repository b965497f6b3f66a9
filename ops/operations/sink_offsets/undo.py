"""Rollback of a run from its backups of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.operations.sink_offsets.changes import GroupTarget, restoring
from connectctl.ops.operations.sink_offsets.steps import BackupGroup, ChangeGroupOffsets, backup_file

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run


def group_rollbacks(journal: Journal, run: Run, steps: Sequence[Any]) -> list[GroupTarget]:
    """The rollback of ``run`` for each group whose offsets it backed up."""
    connectors = {step.subject for step in steps if isinstance(step, ChangeGroupOffsets) and step.connector}
    found = []
    for number, step in enumerate(steps):
        path = journal.path(run.id, backup_file(number))
        if isinstance(step, BackupGroup) and path.exists():
            change = restoring(read_json(path.read_bytes())["offsets"])
            found.append(GroupTarget(step.subject, change, step.subject in connectors))
    return found

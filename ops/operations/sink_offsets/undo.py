"""Rollback of a run from its backups of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.operations.sink_offsets.changes import GroupChange, restoring
from connectctl.ops.operations.sink_offsets.steps import BackupGroup, ChangeGroupOffsets, backup_file

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run


@dataclass(frozen=True)
class GroupRollback:
    """The rollback of one group. ``name`` is the connector's, the group's with ``connector`` False."""

    name: str
    connector: bool
    change: GroupChange


def group_rollbacks(journal: Journal, run: Run, steps: Sequence[Any]) -> list[GroupRollback]:
    """The rollback of ``run`` for each group whose offsets it backed up."""
    connectors = {step.subject for step in steps if isinstance(step, ChangeGroupOffsets) and step.connector}
    found = []
    for number, step in enumerate(steps):
        path = journal.path(run.id, backup_file(number))
        if isinstance(step, BackupGroup) and path.exists():
            change = restoring(read_json(path.read_bytes())["offsets"])
            found.append(GroupRollback(step.subject, step.subject in connectors, change))
    return found

"""The status of each migration for a cluster, and which were applied to it, by the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.migrations.registry import Migration, Status, migrations, named
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.operations.upgrade import run_state
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot


@dataclass(frozen=True)
class Listed:
    """A migration and a cluster. ``applied_at`` and ``run`` are of the last run that completed it.

    ``parameters``: the meaning of each parameter of ``--set``, by name.
    """

    id: str
    name: str
    title: str
    description: str
    status: Status
    why: str
    applied_at: str | None
    run: str | None
    parameters: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the migration as JSON."""
        return {
            "id": self.id,
            "name": self.name,
            "title": self.title,
            "status": self.status.value,
            "why": self.why,
            "appliedAt": self.applied_at,
            "run": self.run,
            "parameters": dict(self.parameters),
        }


def listed(journal: Journal, snapshot: RollingSnapshot) -> list[Listed]:
    """Return every migration, by number."""
    done = [
        (run, journal.plan(run.id))
        for run in run_state.runs_here(journal, snapshot.cluster_id, snapshot.group_id)
        if run.state is RunState.DONE
    ]
    return [_listed(migration, done, snapshot) for migration in migrations()]


def _listed(migration: Migration, done: list[tuple[Run, Any]], snapshot: RollingSnapshot) -> Listed:
    run = next((run for run, plan in done if applies(migration, plan)), None)
    status = migration.status_of(snapshot)
    return Listed(
        id=migration.id,
        name=migration.name,
        title=migration.title,
        description=migration.description,
        status=status.status,
        why=status.why,
        applied_at=run.ended_at if run else None,
        run=run.id if run else None,
        parameters=migration.parameters,
    )


def applies(migration: Migration, plan: Mapping[str, Any]) -> bool:
    """Whether a completed run of ``plan`` applied the migration. The rollback of another run does
    not.
    """
    request = plan.get("request", {})
    applied = named(request["migration"]) if request.get("migration") else None
    reached = applied.leads_to if applied else request.get("to")
    return not plan.get("undoes") and (applied is migration or reached in migration.satisfies)

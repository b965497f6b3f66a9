"""What runs of this machine wrote to connectors: when, and from which file. One pass over the journal for many of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.operations.connectors.config_steps import ChangeConnector, CreateConnector, DeleteConnector

FROM_FILES = ("connectors apply", "connectors create")
WRITES = (CreateConnector.__name__, ChangeConnector.__name__)


@dataclass(frozen=True)
class Write:
    """A configuration that the run ``run`` wrote at ``at``, in ms since the epoch, by its digest; from ``file``, if any."""

    digest: str
    at: int
    run: str
    file: str | None = None


@dataclass
class ConfigOrigin:
    """The writes of runs to a connector, the oldest first, without what came before a run deleted it."""

    writes: list[Write] = field(default_factory=list)

    @property
    def applied(self) -> Write | None:
        """The newest that came from a file."""
        return next((each for each in reversed(self.writes) if each.file is not None), None)


def origins(journal: Journal, cluster_id: str, group_id: str, names: Collection[str]) -> Mapping[str, ConfigOrigin]:
    """What is known of the connectors ``names`` of this Connect cluster. Runs that were undone count for nothing."""
    found: dict[str, ConfigOrigin] = {}
    wanted = frozenset(names)
    for run in reversed(journal.runs()):
        here = (run.cluster_id, run.group_id) == (cluster_id, group_id) and run.operation.startswith("connectors ")
        if not here or run.state is RunState.UNDONE or not run.changed or wanted.isdisjoint(run.subjects):
            continue
        for step, at in _done(journal, run):
            name, kind = step.get("subject"), step.get("step")
            if name not in wanted:
                continue
            if kind == DeleteConnector.__name__:
                found.pop(name, None)
            elif kind in WRITES:
                file = step.get("file") if run.operation in FROM_FILES else None
                found.setdefault(name, ConfigOrigin()).writes.append(Write(step["after"], at, run.id, file))
    return found


def _done(journal: Journal, run: Run) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The steps that ``run`` did, as its plan has them, each with its time. What it found done is not its own."""
    try:
        steps = journal.plan(run.id)["steps"]
    except (BadInput, KeyError):
        return  # a run of another kind, or one whose directory was removed
    for number, step in enumerate(steps):
        mark = next((m for m in run.marks if m.step == number and m.what in ("done", "already")), None)
        if mark is not None and run.did(number):
            yield step, int(datetime.fromisoformat(mark.at).timestamp() * 1000)

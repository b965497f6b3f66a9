"""Runs of a roll in the journal: begin, load, resume, roll back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import State
from connectctl.ops.core.errors import CONTRADICTED, BadInput, Refused
from connectctl.ops.core.journal import RunState
from connectctl.ops.core.saved_plan import check_same_cluster
from connectctl.ops.core.step import step_to_data
from connectctl.ops.kafka.streams_eos import model_of_value
from connectctl.ops.operations.connectors.steps import SetTargetState, steps_back
from connectctl.ops.operations.offsets.planning import first_to_do
from connectctl.ops.operations.offsets.steps import Change
from connectctl.ops.operations.streams_upgrade.planning import ApplicationRequest
from connectctl.ops.operations.streams_upgrade.steps import ApplicationGate, InstanceStep
from connectctl.ops.operations.tasks_max.remedies import Reconfigure
from connectctl.ops.operations.upgrade import run_state
from connectctl.ops.operations.upgrade.context import GateSettings
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import UpgradeRequest
from connectctl.ops.operations.upgrade.snapshot import Baseline
from connectctl.ops.operations.upgrade.steps import (
    CheckModes,
    FirstGate,
    Gate,
    IncludedStep,
    WorkerStep,
    with_taken_workers,
)
from connectctl.ops.registry import steps_from_data

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run
    from connectctl.ops.core.step import Step
    from connectctl.ops.operations.offsets.planning import ConnectorState
    from connectctl.ops.operations.upgrade.planning import PlannedUpgrade
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

RESUME = "connectctl upgrade resume"


@dataclass(frozen=True)
class LoadedRun:
    """A run loaded from the journal."""

    run: Run
    steps: tuple[Step[Any], ...]
    baseline: Baseline
    request: UpgradeRequest
    patience: GateSettings
    notes: run_state.UpgradeNotes = field(default_factory=run_state.UpgradeNotes)

    def taken(self, number: int) -> Any:
        """Return a step, with the workers chosen for it if that is decided."""
        return with_taken_workers(self.steps[number], self.notes.turns)

    @property
    def first_undone(self) -> int:
        """The step to resume at: the first that is not done; for a worker that has not rejoined, the first for that worker.

        Its steps that still hold are not repeated; a worker that did not rejoin in its mode is restarted again.
        """
        undone = next((n for n in range(len(self.steps)) if not self.run.done(n)), len(self.steps))
        step = self.steps[undone] if undone < len(self.steps) else None
        if isinstance(step, IncludedStep):
            return first_to_do(self.run, [s.inner if isinstance(s, IncludedStep) else s for s in self.steps])
        return next((n for n, s in enumerate(self.steps[:undone]) if self._is_under_way(s)), undone)

    def _is_under_way(self, step: Any) -> bool:
        """Whether a worker of the step's turn was changed in it and has not rejoined in its mode."""
        if not isinstance(step, WorkerStep):
            return False
        entries = [self.notes.workers.get(worker) for worker in self.notes.turns.get(step.turn, ())]
        return any(e is not None and e.value == step.value and e.state != run_state.JOINED for e in entries)

    @property
    def opening(self) -> tuple[int, ...]:
        """The steps to execute again when the run is resumed: the gate that it began with, if the next step is no gate."""
        following = self.steps[self.first_undone] if self.first_undone < len(self.steps) else None
        if isinstance(following, WorkerStep | CheckModes) and not isinstance(following, Gate):
            return (0,) if isinstance(self.steps[0], FirstGate) else ()
        return (0,) if isinstance(following, InstanceStep) and isinstance(self.steps[0], ApplicationGate) else ()


def subjects(request: UpgradeRequest) -> tuple[str, ...]:
    """Return the purpose of a run, for lists of runs."""
    if request.aborts:
        return (f"back from {request.aborts}",)
    return (request.name or f"to {request.to}",)


def begin(journal: Journal, plan: PlannedUpgrade, patience: GateSettings) -> Run:
    """Begin a run of ``plan`` in the journal."""
    snapshot = plan.snapshot
    data = {
        "operation": run_state.OPERATION,
        "steps": [step_to_data(step) for step in plan.steps],
        "baseline": snapshot.to_baseline().to_data(),
        "request": asdict(plan.request),
        "patience": asdict(patience),
        "plan": plan.as_json(),
    }
    return journal.begin(run_state.OPERATION, snapshot.cluster_id, snapshot.group_id, subjects(plan.request), data)


def restored(journal: Journal, run: Run) -> LoadedRun:
    """Load a run with its steps. Raises ``BadInput`` if another version wrote it."""
    data, notes = journal.plan(run.id), run_state.UpgradeNotes.load(journal, run.id)
    try:
        return LoadedRun(
            run,
            steps_from_data(data["steps"]),
            Baseline.from_data(data["baseline"]),
            request_from_data(data["request"]),
            GateSettings(**data["patience"]),
            notes,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise BadInput(f"The plan of the run {run.id} cannot be read", why=str(e)) from e


def request_from_data(data: Mapping[str, Any]) -> UpgradeRequest:
    """Return the request for JSON values."""
    values = dict(data)
    values["to"] = None if values["to"] is None else SourceSupport(values["to"])
    values["targets"] = {worker: SourceSupport(value) for worker, value in values["targets"].items()}
    values["order"] = tuple(values["order"])
    values["without"] = tuple(values["without"])
    values["only"] = None if values["only"] is None else tuple(values["only"])
    return UpgradeRequest(**values)


def contradictions(loaded: LoadedRun, snapshot: RollingSnapshot) -> list[str]:
    """Return reasons not to resume: workers that this run has changed and that now have another mode."""
    now = {worker.address: worker for worker in snapshot.workers}
    done = {
        worker
        for number, step in enumerate(loaded.steps)
        if isinstance(step, WorkerStep) and step.kind == "rejoin" and loaded.run.done(number)
        for worker in loaded.notes.turns.get(step.turn, ())
    }
    found = []
    for worker in sorted(done):
        entry, worker_now = loaded.notes.workers.get(worker), now.get(worker)
        if entry is None or entry.state != run_state.JOINED or worker_now is None or worker_now.broken:
            continue
        if worker_now.value is not SourceSupport.UNKNOWN and not worker_now.mode.fits(entry.value):
            found.append(f"{worker} was made {entry.value} by this run and is {worker_now.mode}")
    return found


def check_resumable(loaded: LoadedRun, snapshot: RollingSnapshot) -> None:
    """Raise ``Refused`` if workers that this run changed have been changed since."""
    if found := contradictions(loaded, snapshot):
        raise Refused(
            f"The run {loaded.run.id} cannot be resumed: its workers have been changed meanwhile",
            why="; ".join(found),
            next_step="Roll it back: connectctl upgrade abort; or end it as it is: connectctl upgrade abort --leave.",
            code=CONTRADICTED,
        )


def rollback_run(journal: Journal, run: Run) -> Run | None:
    """Return the unfinished run that rolls ``run`` back, which may be ``run`` itself; None if there is none."""
    for known in run_state.unfinished(journal, run.cluster_id, run.group_id):
        aborts = restored(journal, known).request.aborts
        if aborts is not None and run.id in (known.id, aborts):
            return known
    return None


def rollback_request(loaded: LoadedRun, notes: run_state.UpgradeNotes) -> UpgradeRequest:
    """Return the request that rolls a run back: every worker to its former mode, the last one changed first.

    A worker whose former mode is unknown becomes ``preparing``, one roll away from any mode.
    """
    targets: dict[str, SourceSupport] = {}
    for worker in notes.workers:
        was = loaded.baseline.modes.get(worker, SourceSupport.UNKNOWN)
        targets[worker] = SourceSupport.PREPARING if was == SourceSupport.UNKNOWN else SourceSupport(was)
    common = set(targets.values())
    to = common.pop() if len(common) == 1 else _lowest(common)
    exceptions = {worker: value for worker, value in targets.items() if value is not to}
    touched = tuple(notes.workers)
    return UpgradeRequest(to, targets=exceptions, only=touched, order=tuple(reversed(touched)), aborts=loaded.run.id)


def _lowest(values: set[SourceSupport]) -> SourceSupport:
    order = (SourceSupport.DISABLED, SourceSupport.PREPARING, SourceSupport.ENABLED)
    return next((value for value in order if value in values), SourceSupport.DISABLED)


def has_own_rollback(loaded: LoadedRun) -> bool:
    """Whether the run changed no worker, but offsets, connectors or a stream application."""
    own = any(isinstance(step, IncludedStep | Reconfigure | InstanceStep) for step in loaded.steps)
    return own and not any(isinstance(step, WorkerStep) for step in loaded.steps)


def changes_offsets(loaded: LoadedRun) -> bool:
    """Whether the run changed source offsets and no worker, so that ``offsets undo`` takes it back."""
    own = (step.inner for step in loaded.steps if isinstance(step, IncludedStep))
    return any(isinstance(step, Change) for step in own) and has_own_rollback(loaded)


def restart_steps(loaded: LoadedRun, subjects: Sequence[ConnectorState]) -> list[Any]:
    """Return the steps that resume connectors that the run stopped and has not resumed."""
    found: list[Any] = []
    for subject in subjects:
        was = next((s.now for s in loaded.steps if _stops(s, subject.name)), None)
        if was is None or subject.state is not State.STOPPED:
            continue
        found += [IncludedStep(step, "as it was before") for step in steps_back(subject.name, was)]
    return found


def _stops(step: Any, connector: str) -> bool:
    inner = step.inner if isinstance(step, IncludedStep) else None
    return isinstance(inner, SetTargetState) and inner.verb == "stop" and inner.subject == connector


def reconfigure_rollback(loaded: LoadedRun) -> tuple[Any, ...]:
    """Return the steps that restore the settings of reconfigured connectors, the last one first."""
    begun = {mark.step for mark in loaded.run.marks if mark.what in ("begun", "done")}
    done = [step for number, step in enumerate(loaded.steps) if number in begun and isinstance(step, Reconfigure)]
    return tuple(
        Reconfigure(step.subject, step.was, step.values, step.patch, f"as it was before {loaded.run.id}")
        for step in reversed(done)
    )


def application_rollback(loaded: LoadedRun, was: Mapping[str, str | None]) -> ApplicationRequest:
    """Return the request to restore ``was``, ``processing.guarantee`` by instance, the last one changed first.

    Raises ``Refused`` if a value is unknown, or the values differ.
    """
    values = {value for value in was.values() if value}
    to = model_of_value(next(iter(values))) if len(values) == 1 and None not in was.values() else None
    if to is None:
        raise Refused(
            "The run cannot be rolled back: the former values of the instances are unknown",
            why=", ".join(f"{instance}: {value or 'unknown'}" for instance, value in sorted(was.items())),
            next_step="Plan the other migration instead, or end the run: connectctl upgrade abort --leave.",
            code="unknown-before",
        )
    members = next((step.members for step in loaded.steps if hasattr(step, "members")), None)
    return ApplicationRequest(to, values.pop(), members=members, only=tuple(reversed([*was])))


def refuse_unfinished(journal: Journal, where: tuple[str, str]) -> None:
    """Raise ``Refused`` if an earlier run has not ended: resume it or roll it back first."""
    for run in run_state.unfinished(journal, *where)[:1]:
        raise Refused(
            f"The run {run.id} ({', '.join(run.subjects)}) has not ended",
            next_step=f"Resume it: {RESUME}; or roll it back: connectctl upgrade abort.",
            code="unfinished",
        )


def pick(journal: Journal, where: tuple[str, str], name: str | None) -> LoadedRun:
    """Load the run ``name``, or the newest that has not ended. Raises ``Refused`` if there is none."""
    if name is None:
        unfinished = run_state.unfinished(journal, *where)
        if not unfinished:
            last = next(iter(run_state.runs_here(journal, *where)), None)
            undo = last is not None and last.state is RunState.DONE and changes_offsets(restored(journal, last))
            hint = f"To take the last run back: connectctl offsets undo {last.id} --stop" if undo and last else None
            hint = hint or "See connectctl upgrade status."
            raise Refused("This cluster has no unfinished upgrade", next_step=hint, code="nothing-to-resume")
        run = unfinished[0]
    else:
        run = journal.get(name)
    check_same_cluster(run, *where)
    if run.operation != run_state.OPERATION:
        raise BadInput(f"The run {run.id} is not an upgrade", next_step=f"connectctl runs resume {run.id}")
    loaded = restored(journal, run)
    if run.state in (RunState.DONE, RunState.UNDONE, RunState.REFUSED):
        undo = run.state is RunState.DONE and changes_offsets(loaded)
        hint = f"Take its change of offsets back: connectctl offsets undo {run.id} --stop" if undo else None
        raise Refused(f"The run {run.id} is {run.state}; there is nothing to resume or to abort", next_step=hint)
    return loaded


def pick_resumable(journal: Journal, where: tuple[str, str], name: str | None) -> LoadedRun:
    """Load a run as ``pick`` does. Raises ``Refused`` if another run is rolling it back."""
    found = pick(journal, where, name)
    back = rollback_run(journal, found.run)
    if back is not None and back.id != found.run.id:
        raise Refused(
            f"The run {found.run.id} is being rolled back by the run {back.id}",
            next_step=f"{RESUME} {back.id}; or end both without a rollback: connectctl upgrade abort --leave.",
            code="being-aborted",
        )
    return found

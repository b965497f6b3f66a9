"""Runs of a roll in the journal: which is resumed, and how it is rolled back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connectctl.ops.connect.connector import State
from connectctl.ops.core.errors import CONTRADICTED, Refused
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.saved_plan import check_same_cluster
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.streams_eos import model_of_value
from connectctl.ops.operations.connectors.steps import SetTargetState, steps_back
from connectctl.ops.operations.offsets.planning import ConnectorState, first_to_do
from connectctl.ops.operations.streams_upgrade.planning import ApplicationRequest
from connectctl.ops.operations.streams_upgrade.steps import ApplicationGate, InstanceStep
from connectctl.ops.operations.tasks_max.remedies import Reconfigure
from connectctl.ops.operations.upgrade import run_state
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import RollRequest
from connectctl.ops.operations.upgrade.request import conditions_in
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot
from connectctl.ops.operations.upgrade.steps import (
    CheckModes,
    FirstGate,
    Gate,
    IncludedStep,
    Rejoin,
    WorkerStep,
    with_taken_workers,
)

RESUME = "connectctl upgrade resume"


@dataclass(frozen=True)
class LoadedRun:
    """A run with its plan and its notes."""

    run: Run
    plan: Plan
    notes: run_state.UpgradeNotes = field(default_factory=run_state.UpgradeNotes)

    @classmethod
    def load(cls, journal: Journal, run: Run, plan: Plan) -> LoadedRun:
        """Return a run with the notes in the journal."""
        return cls(run, plan, run_state.UpgradeNotes.load(journal, run.id))

    @property
    def steps(self) -> tuple[Step[Any], ...]:
        """The steps of the plan."""
        return self.plan.steps

    def decided(self) -> Plan:
        """Return the plan with the workers chosen for its steps, and without warnings of what was
        observed before.
        """
        steps = tuple(with_taken_workers(step, self.notes.turns) for step in self.steps)
        return replace(self.plan, steps=steps, warnings=())

    @property
    def first_undone(self) -> int:
        """The step to resume at: the first that is not done; for a worker that has not rejoined,
        the first for that worker.

        Its steps that still hold are not repeated; a worker that did not rejoin in its mode is
        restarted again.
        """
        undone = next((n for n in range(len(self.steps)) if not self.run.done(n)), len(self.steps))
        step = self.steps[undone] if undone < len(self.steps) else None
        if isinstance(step, IncludedStep):
            return first_to_do(
                self.run, [s.inner if isinstance(s, IncludedStep) else s for s in self.steps]
            )
        return next((n for n, s in enumerate(self.steps[:undone]) if self._is_under_way(s)), undone)

    def _is_under_way(self, step: Any) -> bool:
        """Whether a worker of the step's turn was changed in it and has not rejoined in its
        mode.
        """
        if not isinstance(step, WorkerStep):
            return False
        entries = [self.notes.workers.get(worker) for worker in self.notes.turns.get(step.turn, ())]
        return any(
            e is not None and e.value == step.value and e.state != run_state.JOINED for e in entries
        )

    @property
    def opening(self) -> tuple[int, ...]:
        """The steps to execute again when the run is resumed: the gate that it began with, if the
        next step is not a gate.
        """
        following = self.steps[self.first_undone] if self.first_undone < len(self.steps) else None
        if isinstance(following, WorkerStep | CheckModes) and not isinstance(following, Gate):
            return (0,) if isinstance(self.steps[0], FirstGate) else ()
        return (
            (0,)
            if isinstance(following, InstanceStep) and isinstance(self.steps[0], ApplicationGate)
            else ()
        )


def contradictions(loaded: LoadedRun, snapshot: RollingSnapshot) -> list[str]:
    """Return reasons not to resume: workers that this run has changed and that now have another
    mode.
    """
    now = {worker.address: worker for worker in snapshot.workers}
    done = {
        worker
        for number, step in enumerate(loaded.steps)
        if isinstance(step, Rejoin) and loaded.run.done(number)
        for worker in loaded.notes.turns.get(step.turn, ())
    }
    found = []
    for worker in sorted(done):
        entry, worker_now = loaded.notes.workers.get(worker), now.get(worker)
        if (
            entry is None
            or entry.state != run_state.JOINED
            or worker_now is None
            or worker_now.broken
        ):
            continue
        if worker_now.value is not SourceSupport.UNKNOWN and not worker_now.mode.fits(entry.value):
            found.append(f"{worker} was made {entry.value} by this run and is {worker_now.mode}")
    return found


def check_unchanged(
    loaded: LoadedRun, snapshot: RollingSnapshot, wanted: str, next_step: str
) -> None:
    """Raise ``Refused`` if workers that a run changed have been changed since; ``wanted`` is what
    is done with the run.
    """
    if found := contradictions(loaded, snapshot):
        raise Refused(
            f"The run {loaded.run.id} cannot be {wanted}: its workers have been changed meanwhile",
            why="; ".join(found),
            next_step=next_step,
            code=CONTRADICTED,
        )


def rollback_run(journal: Journal, run: Run) -> Run | None:
    """Return the unfinished run that rolls ``run`` back, which may be ``run`` itself; None if there
    is none.
    """
    for known in run_state.unfinished(journal, run.cluster_id, run.group_id):
        undoes = journal.plan(known.id).get("undoes")
        if undoes is not None and run.id in (known.id, undoes):
            return known
    return None


def refuse_rolled_back(journal: Journal, run: Run) -> None:
    """Raise ``Refused`` if another run is rolling ``run`` back."""
    back = rollback_run(journal, run)
    if back is not None and back.id != run.id:
        raise Refused(
            f"The run {run.id} is being rolled back by the run {back.id}",
            next_step=f"{RESUME} {back.id}; or end both without a rollback: connectctl upgrade "
            "abort --leave.",
            code="being-aborted",
        )


def rollback_request(loaded: LoadedRun) -> RollRequest:
    """Return the request that rolls a run back: every worker to its former mode, the last one
    changed first.

    A worker whose former mode is unknown becomes ``preparing``, one roll away from any mode.
    """
    targets: dict[str, SourceSupport] = {}
    before = conditions_in(loaded.plan).baseline.workers
    touched = tuple(loaded.notes.workers)
    for worker in touched:
        was = before[worker].mode if worker in before else SourceSupport.UNKNOWN
        targets[worker] = (
            SourceSupport.PREPARING if was == SourceSupport.UNKNOWN else SourceSupport(was)
        )
    common = set(targets.values())
    to = common.pop() if len(common) == 1 else _lowest(common)
    exceptions = {worker: value for worker, value in targets.items() if value is not to}
    return RollRequest(
        to, targets=exceptions, only=touched, order=tuple(reversed(touched)), back=True
    )


def _lowest(values: set[SourceSupport]) -> SourceSupport:
    order = (SourceSupport.DISABLED, SourceSupport.PREPARING, SourceSupport.ENABLED)
    return next((value for value in order if value in values), SourceSupport.DISABLED)


def has_own_rollback(loaded: LoadedRun) -> bool:
    """Whether the run changed no worker, but offsets, connectors or a stream application."""
    own = any(isinstance(step, IncludedStep | Reconfigure | InstanceStep) for step in loaded.steps)
    return own and not any(isinstance(step, WorkerStep) for step in loaded.steps)


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
    done = [
        step
        for number, step in enumerate(loaded.steps)
        if number in begun and isinstance(step, Reconfigure)
    ]
    return tuple(
        Reconfigure(
            step.subject, step.was, step.values, step.patch, f"as it was before {loaded.run.id}"
        )
        for step in reversed(done)
    )


def application_rollback(loaded: LoadedRun, was: Mapping[str, str | None]) -> ApplicationRequest:
    """Return the request to restore ``was``, ``processing.guarantee`` by instance, the last one
    changed first.

    Raises ``Refused`` if a value is unknown, or the values differ.
    """
    values = {value for value in was.values() if value}
    to = (
        model_of_value(next(iter(values)))
        if len(values) == 1 and None not in was.values()
        else None
    )
    if to is None:
        raise Refused(
            "The run cannot be rolled back: the former values of the instances are unknown",
            why=", ".join(
                f"{instance}: {value or 'unknown'}" for instance, value in sorted(was.items())
            ),
            next_step="Plan the other migration instead, or end the run: connectctl upgrade abort "
            "--leave.",
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


def pick(journal: Journal, where: tuple[str, str], name: str | None) -> Run:
    """Return the run ``name``, or the newest that has not ended. Raises ``Refused`` if there is
    none.
    """
    if name is None:
        unfinished = run_state.unfinished(journal, *where)
        if not unfinished:
            last = next(iter(run_state.runs_here(journal, *where)), None)
            undo = last is not None and last.state is RunState.DONE
            hint = (
                f"To take the last run back: connectctl runs undo {last.id}"
                if undo and last
                else None
            )
            hint = hint or "See connectctl upgrade status."
            raise Refused(
                "This cluster has no unfinished upgrade", next_step=hint, code="nothing-to-resume"
            )
        return unfinished[0]
    run = journal.get(name)
    check_same_cluster(run, *where)
    return run

"""Runs of a roll in the journal: begun, taken up where they stopped, and taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.all_steps import steps_from_data
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import RunState
from connectctl.ops.core.step import step_to_data
from connectctl.ops.operations.upgrade import run_state
from connectctl.ops.operations.upgrade.context import Patience
from connectctl.ops.operations.upgrade.mode import Value
from connectctl.ops.operations.upgrade.planning import Wish
from connectctl.ops.operations.upgrade.snapshot import Ground
from connectctl.ops.operations.upgrade.steps import Borrowed, Gate, Turn, as_taken

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run
    from connectctl.ops.core.step import Step
    from connectctl.ops.operations.upgrade.planning import RollingPlan
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot


@dataclass(frozen=True)
class Restored:
    """A run as it was written down."""

    run: Run
    steps: tuple[Step, ...]
    ground: Ground
    wish: Wish
    patience: Patience
    turns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def taken(self, number: int) -> Any:
        """A step with the workers that were taken at its turn, where that is decided."""
        return as_taken(self.steps[number], self.turns)

    @property
    def first_undone(self) -> int:
        """Where it goes on: at the first step that is not done, and with a worker that is not back where its turn began.

        The steps before are not done again where they hold; a worker that did not come back in its time is restarted
        once more.
        """
        from connectctl.ops.operations.offsets.planning import first_to_do

        undone = next((n for n in range(len(self.steps)) if not self.run.done(n)), len(self.steps))
        step = self.steps[undone] if undone < len(self.steps) else None
        if isinstance(step, Borrowed):
            return first_to_do(self.run, [s.inner if isinstance(s, Borrowed) else s for s in self.steps])
        if isinstance(step, Turn) and not isinstance(step, Gate):
            turn = (step.phase, step.slot)
            return next(n for n, s in enumerate(self.steps) if isinstance(s, Turn) and (s.phase, s.slot) == turn)
        return undone


def subjects(wish: Wish) -> tuple[str, ...]:
    """What a run is about, for lists of runs."""
    if wish.aborts:
        return (f"back from {wish.aborts}",)
    return (wish.name or f"to {wish.to}",)


def begin(journal: Journal, plan: RollingPlan, patience: Patience) -> Run:
    """A run of ``plan`` in the journal."""
    snapshot = plan.snapshot
    data = {
        "operation": plan.operation,
        "steps": [step_to_data(step) for step in plan.steps],
        "ground": snapshot.ground().to_data(),
        "wish": asdict(plan.wish),
        "patience": asdict(patience),
        "plan": plan.as_json(),
    }
    return journal.begin(plan.operation, snapshot.cluster_id, snapshot.group_id, subjects(plan.wish), data)


def restored(journal: Journal, run: Run) -> Restored:
    """A run with its steps. Raises ``BadInput`` where another version wrote it."""
    data = journal.plan(run.id)
    return Restored(
        run,
        steps_from_data(data["steps"]),
        Ground.from_data(data["ground"]),
        wish_from_data(data["wish"]),
        Patience(**data["patience"]),
        run_state.load(journal, run.id).turns,
    )


def wish_from_data(data: Mapping[str, Any]) -> Wish:
    """A wish from plain JSON values."""
    values = dict(data)
    values["to"] = None if values["to"] is None else Value(values["to"])
    values["targets"] = {worker: Value(value) for worker, value in values["targets"].items()}
    values["order"] = tuple(values["order"])
    values["without"] = tuple(values.get("without", ()))
    values["only"] = None if values["only"] is None else tuple(values["only"])
    return Wish(**values)


def contradictions(taken_up: Restored, notes: run_state.Notes, snapshot: RollingSnapshot) -> list[str]:
    """What speaks against going on: workers that this run has changed and that are proven to be otherwise now."""
    now = {worker.address: worker for worker in snapshot.workers}
    done = {
        worker
        for number, step in enumerate(taken_up.steps)
        if isinstance(step, Turn) and step.kind == "rejoin" and taken_up.run.done(number)
        for worker in notes.turns.get(f"{step.phase}.{step.slot}", ())
    }
    found = []
    for worker in sorted(done):
        entry, seen = notes.workers.get(worker), now.get(worker)
        if entry is None or entry.state != run_state.JOINED or seen is None or seen.broken:
            continue
        wanted, value = entry.value, seen.value
        unproven = value is Value.UNKNOWN or (value is Value.NOT_SUPPORTED and wanted == Value.DISABLED)
        if value != wanted and not unproven:
            found.append(f"{worker} was made {wanted} by this run and is {seen.mode}")
    return found


def check_going_on(taken_up: Restored, notes: run_state.Notes, snapshot: RollingSnapshot) -> None:
    """Raises ``Refused`` where somebody has changed meanwhile what this run had done."""
    if found := contradictions(taken_up, notes, snapshot):
        raise Refused(
            f"The run {taken_up.run.id} cannot be resumed: its workers have been changed meanwhile",
            why="; ".join(found),
            next_step="Roll it back: connectctl upgrade abort; or end it as it is: connectctl upgrade abort --leave.",
            code="contradicted",
        )


def taking_back(journal: Journal, run: Run) -> Run | None:
    """The run that takes ``run`` back and has not ended, which may be ``run`` itself; None where there is none."""
    for known in run_state.unfinished(journal, run.cluster_id, run.group_id):
        aborts = restored(journal, known).wish.aborts
        if aborts is not None and run.id in (known.id, aborts):
            return known
    return None


def way_back(taken_up: Restored, notes: run_state.Notes) -> Wish:
    """The wish that takes a run back from where it stands: every worker to what it was, the last one changed first.

    What is not known to have been anything goes to ``preparing``, from which nothing is far.
    """
    targets: dict[str, Value] = {}
    for worker in notes.workers:
        was = taken_up.ground.modes.get(worker, Value.UNKNOWN)
        targets[worker] = Value.PREPARING if was == Value.UNKNOWN else Value(was)
    common = set(targets.values())
    to = common.pop() if len(common) == 1 else _lowest(common)
    exceptions = {worker: value for worker, value in targets.items() if value is not to}
    touched = tuple(notes.workers)
    return Wish(to, targets=exceptions, only=touched, order=tuple(reversed(touched)), aborts=taken_up.run.id)


def _lowest(values: set[Value]) -> Value:
    order = (Value.DISABLED, Value.PREPARING, Value.ENABLED)
    return next((value for value in order if value in values), Value.DISABLED)


def finish(journal: Journal, wish: Wish) -> None:
    """What is true once a run has come to its end: the run that it takes back is undone."""
    if wish.aborts:
        journal.end(wish.aborts, RunState.UNDONE)

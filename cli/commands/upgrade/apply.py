"""Begin, resume or roll back the run of a roll; print its progress and how to continue."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli import apply
from connectctl.cli.commands.upgrade.plan import confirm, show
from connectctl.cli.commands.upgrade.scene import Scene, observe_cluster, tell
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.views import upgrade
from connectctl.migrations.planning import rollback_plan, saved_plan
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.executor import execute
from connectctl.ops.core.journal import RunState
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.operations.offsets import sources
from connectctl.ops.operations.upgrade import runs
from connectctl.ops.operations.upgrade.context import GateSettings, UpgradeContext
from connectctl.ops.operations.upgrade.planning import by_hand
from connectctl.ops.operations.upgrade.steps import IncludedStep, planned_turns

if TYPE_CHECKING:
    from connectctl.cli.commands.upgrade.options import GateOptions
    from connectctl.cli.session import Session
    from connectctl.ops.core.plan import Result
    from connectctl.ops.operations.upgrade.planning import PlannedUpgrade
    from connectctl.ops.operations.upgrade.runs import LoadedRun


def context_of(scene: Scene, restored: LoadedRun, patience: GateSettings) -> UpgradeContext:
    """Return the context of the steps."""
    context = UpgradeContext(
        scene.reader.calls,
        scene.session.timeout,
        journal=scene.journal,
        reader=scene.reader,
        driver=scene.driver,
        baseline=restored.baseline,
        planned=planned_turns(restored.steps),
        patience=patience,
        tell=tell,
        progress=progress,
    )
    if any(isinstance(step, IncludedStep) for step in restored.steps):
        observed = replace(sources.observe_connectors(scene.session, [])[0], calls=scene.reader.calls)
        context.offsets = sources.context_of(scene.session, observed, scene.journal)
        context.facts = context.offsets.facts
    if restored.request.parameters.get("application"):
        context.application = scene.application(restored.request.parameters["application"].strip())[0]
    return context


def progress(line: str) -> None:
    """Print what is awaited."""
    terminal.note(f"       {line}", style="dim")


def apply_saved(session: Session, data: Mapping[str, Any], path: Path, options: GateOptions) -> None:
    """Execute the plan that was saved at ``path`` as ``data``. Raises ``Refused`` if it is stale."""
    scene = observe_cluster(session, workers=False)
    if aborts := data.get("aborts"):
        restored = runs.pick_resumable(scene.journal, scene.where, str(aborts))
        _roll_back(scene, restored, saved_plan(scene, data, path, lambda: rollback_plan(scene, restored)), options)
        return
    runs.refuse_unfinished(scene.journal, scene.where)
    apply_plan(scene, saved_plan(scene, data, path), options)


def apply_plan(scene: Scene, made: PlannedUpgrade, options: GateOptions) -> None:
    """Print the plan, or ask and execute it."""
    if options.output.for_people:
        terminal.findings(made.findings)
    if not made.steps:
        _emit(scene, upgrade.nothing_to_do(made).strip(), options.output)
        return
    check_pause(options.pause_after, len(made.steps))
    if options.dry_run:
        show(made, options.output)
        return
    start(scene, made, options, GateSettings())


def start(scene: Scene, plan: PlannedUpgrade, options: GateOptions, patience: GateSettings) -> None:
    """Ask, begin a run of the plan and execute it."""
    require_terminal(plan.steps, options)
    confirm(scene, plan, options.output, yes=options.yes)
    patience = options.over(patience)
    run = runs.begin(scene.journal, plan, patience)
    carry_out(scene, runs.restored(scene.journal, run), patience, options)


def carry_out(
    scene: Scene, restored: LoadedRun, patience: GateSettings, options: GateOptions, *, resumed: bool = False
) -> None:
    """Execute the remaining steps of a run, printing each result; print how to continue if it pauses."""
    context = context_of(scene, restored, patience)
    context.resumed = resumed
    total = len(restored.steps)

    def report(step: Any) -> None:
        terminal.note(f"[{context.step + 1}/{total}] {step.describe()} …", style="dim")

    def done(result: Result) -> None:
        if options.output.for_people:
            terminal.say(apply.line_of(result))
            sys.stdout.flush()

    results = execute(
        restored.steps,
        context,
        scene.journal,
        restored.run,
        lock=scene.session.cluster_lock,
        on_step=report,
        on_result=done,
        start=restored.first_undone,
        again=restored.opening if resumed else (),
        until=options.pause_after,
        resume_hint=runs.RESUME,
        undoes=filter(None, [restored.request.aborts]),
    )
    paused = options.pause_after is not None and options.pause_after < total
    next_step = f"{runs.RESUME} {restored.run.id}" if paused else None
    line = (
        f"Paused. Resume with: {next_step}"
        if paused
        else f"Done, run {restored.run.id}. See connectctl upgrade status."
    )
    _emit(scene, line, options.output, restored.run.id, results, next_step)


def check_pause(pause_after: int | None, count: int) -> None:
    """Raise ``BadInput`` for a step that the plan does not have."""
    if pause_after is not None and not 1 <= pause_after <= count:
        raise BadInput(f"Invalid --pause-after {pause_after}: the plan has steps 1 to {count}")


def require_terminal(steps: Sequence[Any], options: GateOptions) -> None:
    """Raise ``BadInput`` if workers must be restarted by hand and standard input is not a terminal."""
    workers = by_hand(steps)
    if workers and options.by_hand is None and not apply.somebody_is_there():
        raise BadInput(
            f"{', '.join(workers)} must be restarted by hand, but standard input is not a terminal; nothing was done",
            next_step="Configure workers: in the context, run the command on a terminal, or give --by-hand-timeout "
            "SECONDS.",
            code="by-hand",
        )


def _emit(
    scene: Scene,
    line: str,
    output: Output,
    run: str | None = None,
    results: Sequence[Result] = (),
    next_step: str | None = None,
) -> None:
    data = {
        "operation": "upgrade",
        "clusterId": scene.snapshot.cluster_id,
        "groupId": scene.snapshot.group_id,
        "run": run,
        "paused": next_step is not None,
        "results": [result.as_json() for result in results],
        "nextStep": next_step,
    }
    terminal.emit("UpgradeResult", data, output, lambda wide: terminal.say(line))


def take_up(session: Session, name: str | None, options: GateOptions) -> None:
    """Resume a run. Raises ``Refused`` if its workers were changed since, or another run is rolling it back."""
    scene = observe_cluster(session, workers=False)
    _resume(scene, runs.pick_resumable(scene.journal, scene.where, name), options)


def _resume(scene: Scene, restored: LoadedRun, options: GateOptions) -> None:
    session = scene.session
    runs.check_resumable(restored, scene.snapshot)
    check_pause(options.pause_after, len(restored.steps))
    numbers = [*restored.opening, *range(restored.first_undone, len(restored.steps))]
    steps = tuple(map(restored.taken, numbers))
    left = Plan("resume upgrade", scene.snapshot.cluster_id, steps, group_id=scene.snapshot.group_id)
    if options.dry_run:
        apply.show(left, options.output)
        return
    require_terminal(steps, options)
    apply.confirm(session, left, options.output.for_people, yes=options.yes)
    carry_out(scene, restored, options.over(restored.patience), options, resumed=True)


def abort_run(session: Session, name: str | None, options: GateOptions, *, leave: bool) -> None:
    """Roll a run back, or end it without a rollback (``leave``). An interrupted rollback is resumed."""
    scene = observe_cluster(session, workers=False)
    restored = runs.pick(scene.journal, scene.where, name)
    back = runs.rollback_run(scene.journal, restored.run)
    if leave:
        _leave(scene, runs.restored(scene.journal, back) if back else restored, options)
        return
    if back is not None:
        rollback = runs.restored(scene.journal, back)
        terminal.note(f"The run {back.id} is already rolling back {rollback.request.aborts}; it is resumed.")
        _resume(scene, rollback, options)
        return
    _roll_back(scene, restored, rollback_plan(scene, restored), options)


def _roll_back(scene: Scene, restored: LoadedRun, plan: PlannedUpgrade, options: GateOptions) -> None:
    """Print the plan that rolls ``restored`` back, or ask and execute it."""
    if options.dry_run:
        show(plan, options.output)
        return
    if not plan.steps:
        scene.journal.end(restored.run.id, RunState.UNDONE)
        _emit(scene, upgrade.nothing_to_do(plan).strip(), options.output)
        return
    check_pause(options.pause_after, len(plan.steps))
    start(scene, plan, options, restored.patience)


def _leave(scene: Scene, restored: LoadedRun, options: GateOptions) -> None:
    """End a run without a rollback; for a rollback, also the run that it rolls back."""
    ended = [restored.run.id, *filter(None, [restored.request.aborts])]
    named = f"the run {ended[0]}" if len(ended) == 1 else f"the runs {' and '.join(ended)}"
    where = scene.snapshot.cluster_id
    if options.dry_run:
        ends = tuple(Noop(run, "it is ended without a rollback; no worker is changed") for run in ended)
        data = Plan("upgrade abort", where, (), ends, scene.snapshot.group_id).as_json()
        line = f"This would end {named}, and change no worker."
        terminal.emit("Plan", data, options.output, lambda wide: terminal.say(line))
        return
    apply.confirm(scene.session, Plan(f"end {named} as it is now", where, ()), yes=options.yes)
    for run in ended:
        scene.journal.end(run, RunState.UNDONE)
    _emit(scene, f"Ended {named}. No worker was changed.", options.output)

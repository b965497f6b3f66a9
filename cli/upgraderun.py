"""A roll as a run: begun, taken up where it stopped, or taken back; told of as it goes, and how to go on."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connectctl.cli import apply, render, upgradelook
from connectctl.cli.render import Output
from connectctl.cli.upgradeplan import Scene, confirm, look, show, tell
from connectctl.ops.errors import BadInput, Refused

if TYPE_CHECKING:
    from connectctl.cli.context import Session
    from connectctl.cli.offsetrun import Looked
    from connectctl.ops.journal import Run
    from connectctl.ops.plan import Result
    from connectctl.ops.rolling.hands import Patience, RollingHands
    from connectctl.ops.rolling.planning import RollingPlan
    from connectctl.ops.rolling.runs import Restored

GO_ON = "connectctl upgrade resume"


def refuse_unfinished(scene: Scene) -> None:
    """Raises ``Refused`` where an earlier run has not ended: it is taken up, or taken back, first."""
    from connectctl.ops.rolling import ledger

    for run in ledger.unfinished(scene.journal, *scene.where)[:1]:
        raise Refused(
            f"The run {run.id} ({', '.join(run.subjects)}) has not ended",
            next_step=f"Go on with it: {GO_ON}; or take it back: connectctl upgrade abort.",
            code="unfinished",
        )


def pick(scene: Scene, name: str | None) -> Restored:
    """The run called ``name``, or the newest that has not ended. Raises ``Refused`` where there is none."""
    from connectctl.cli.runs import check_same_cluster
    from connectctl.ops.journal import State
    from connectctl.ops.rolling import ledger, runs

    if name is None:
        open_ = ledger.unfinished(scene.journal, *scene.where)
        if not open_:
            hint = "See connectctl upgrade status."
            raise Refused("No upgrade of this cluster is unfinished", next_step=hint, code="nothing-to-resume")
        run = open_[0]
    else:
        run = scene.journal.get(name)
    check_same_cluster(run, *scene.where)
    if run.operation != ledger.OPERATION:
        raise BadInput(f"The run {run.id} is no upgrade", next_step=f"connectctl runs resume {run.id}")
    if run.state in (State.DONE, State.UNDONE, State.REFUSED):
        raise Refused(f"The run {run.id} is {run.state}; there is nothing to resume")
    return runs.restored(scene.journal, run)


def hands_of(scene: Scene, restored: Restored, patience: Patience) -> RollingHands:
    """What the steps work with."""
    from connectctl.ops.rolling.hands import RollingHands
    from connectctl.ops.rolling.steps import Borrowed, planned_turns

    hands = RollingHands(
        scene.eyes.calls,
        scene.session.timeout,
        group_id=scene.eyes.group_id,
        journal=scene.journal,
        eyes=scene.eyes,
        driver=scene.driver,
        ground=restored.ground,
        planned=planned_turns(restored.steps),
        patience=patience,
        tell=tell,
        progress=progress,
    )
    if any(isinstance(step, Borrowed) for step in restored.steps):
        looked = _offsets(scene.session)
        hands.sources, hands.engine = looked.sources, looked.engine
    if restored.wish.given.get("application"):
        hands.application = upgradelook.eyes_for(scene, restored.wish.given)[0]
    return hands


def _offsets(session: Session) -> Looked:
    from connectctl.cli.offsetrun import look_at

    return look_at(session, [])[0]


def progress(line: str) -> None:
    """What is waited for, on a terminal."""
    if not render.plain(sys.stderr):
        render.note(f"       {line}", style="dim")


def start(scene: Scene, plan: RollingPlan, patience: Patience, pause_after: int | None, output: Output) -> None:
    """Begin a run of the plan and carry it out."""
    from connectctl.ops.rolling import runs

    run = runs.begin(scene.journal, plan, patience)
    carry_out(scene, runs.restored(scene.journal, run), patience, pause_after, output)


def carry_out(
    scene: Scene,
    restored: Restored,
    patience: Patience,
    pause_after: int | None,
    output: Output,
    *,
    resumed: bool = False,
) -> None:
    """Do what is left of a run, telling of each step as it is done; says how to go on where it pauses."""
    from connectctl.ops.execute import execute
    from connectctl.ops.rolling import runs

    hands = hands_of(scene, restored, patience)
    hands.resumed = resumed
    for_people = output in (Output.TABLE, Output.WIDE)
    total = len(restored.steps)

    def told(step: Any) -> None:
        if not render.plain(sys.stderr):
            render.note(f"[{restored.steps.index(step) + 1}/{total}] {step.says()} …", style="dim")

    def done(result: Result) -> None:
        if for_people:
            render.say(apply.line_of(result))
            sys.stdout.flush()

    results = execute(
        restored.steps,
        hands,
        scene.journal,
        restored.run,
        told=told,
        done=done,
        start=restored.first_undone,
        until=pause_after,
        go_on=GO_ON,
    )
    paused = pause_after is not None and pause_after < total
    if not paused:
        runs.finish(scene.journal, restored.wish)
    _report(scene, restored.run, results, paused, output)


def _report(scene: Scene, run: Run, results: list[Result], paused: bool, output: Output) -> None:
    next_step = f"{GO_ON} {run.id}" if paused else None
    data = {
        "operation": "upgrade",
        "clusterId": scene.snapshot.cluster_id,
        "groupId": scene.snapshot.group_id,
        "run": run.id,
        "paused": paused,
        "results": [result.as_json() for result in results],
        "nextStep": next_step,
    }

    def table(wide: bool) -> None:
        render.say(f"Paused. Go on: {next_step}" if paused else f"Done, run {run.id}. See connectctl upgrade status.")

    render.emit("UpgradeResult", data, output, table)


def check_pause(pause_after: int | None, count: int) -> None:
    """Raises ``BadInput`` for a step that the plan does not have."""
    if pause_after is not None and not 1 <= pause_after <= count:
        raise BadInput(f"The plan has steps 1 to {count}, and no step {pause_after}")


def with_patience(patience: Patience, looks: int | None, timeout: float | None, failures: int | None) -> Patience:
    """``patience`` with what was given on the command line."""
    return replace(
        patience,
        looks=patience.looks if looks is None else looks,
        timeout=patience.timeout if timeout is None else timeout,
        max_failures=patience.max_failures if failures is None else failures,
    )


def nothing_to_do(scene: Scene, output: Output) -> None:
    """Say that the cluster is as wished."""
    data = {"operation": "upgrade", "clusterId": scene.snapshot.cluster_id, "groupId": scene.snapshot.group_id}
    data |= {"run": None, "paused": False, "results": [], "nextStep": None}  # type: ignore[dict-item]
    render.emit("UpgradeResult", data, output, lambda wide: render.say("Nothing to do: every worker is as wished."))


Given = tuple[int | None, float | None, int | None]
"""``--gate-looks``, ``--gate-timeout`` and ``--max-failures`` as they were given."""


def take_up(
    session: Session,
    name: str | None,
    given: Given,
    *,
    pause_after: int | None,
    dry_run: bool,
    yes: bool,
    output: Output,
) -> None:
    """Go on with a run. Raises ``Refused`` where somebody has changed what it had done."""
    from connectctl.ops.plan import Plan
    from connectctl.ops.rolling import ledger, runs

    scene = look(session)
    restored = pick(scene, name)
    runs.check_going_on(restored, ledger.load(scene.journal, restored.run.id), scene.snapshot)
    check_pause(pause_after, len(restored.steps))
    left = Plan("resume upgrade", scene.snapshot.cluster_id, restored.steps[restored.first_undone :])
    if dry_run:
        apply.show(left, output)
        return
    apply.confirm(session, left, output in (Output.TABLE, Output.WIDE), yes=yes)
    patience = with_patience(restored.patience, *given)
    carry_out(scene, restored, patience, pause_after, output, resumed=True)


def take_back(
    session: Session, name: str | None, given: Given, *, leave: bool, dry_run: bool, yes: bool, output: Output
) -> None:
    """Take a run back, or leave it where it is and end it."""
    from connectctl.ops.journal import State
    from connectctl.ops.plan import Plan
    from connectctl.ops.rolling import ledger, planning, runs

    scene = look(session)
    restored = pick(scene, name)
    if leave and not dry_run:
        apply.confirm(
            session, Plan(f"end the run {restored.run.id} where it is", scene.snapshot.cluster_id, ()), yes=yes
        )
        plan = None
    elif leave:
        render.note(f"The run {restored.run.id} would be ended where it is.")
        return
    elif upgradelook.has_own_way_back(restored):
        plan = upgradelook.way_back(scene, restored)
    else:
        notes = ledger.load(scene.journal, restored.run.id)
        plan = planning.plan(scene.snapshot, runs.way_back(restored, notes))
    if dry_run and plan is not None:
        show(plan, output)
        return
    if plan is None or not plan.steps:
        scene.journal.end(restored.run.id, State.UNDONE)
        nothing_to_do(scene, output)
        return
    confirm(scene, plan, output, yes=yes)
    start(scene, plan, with_patience(restored.patience, *given), None, output)

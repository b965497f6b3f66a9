"""The one flow of changes: observe, plan, show, confirm, execute, report; applied, resumed and
undone alike.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli import apply
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.output import terminal
from connectctl.cli.views.view import View, view_of
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.plan import Outcome, Plan, Result
from connectctl.ops.core.saved_plan import check_same_cluster, check_where, stale
from connectctl.ops.operations.operation import (
    NOTHING_LEFT,
    WHOLE,
    A,
    Operation,
    Planned,
    R,
    Remaining,
    Undone,
)

if TYPE_CHECKING:
    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.output.terminal import Output
    from connectctl.cli.session import Session
    from connectctl.ops.core.journal import Journal, Run

RESUMED = "resume "
"""What the operation of a plan begins with that is the rest of a run."""
PRINTED = {
    RESUMED: "Resume the run itself: connectctl runs resume RUN.",
    "upgrade abort": "End the run: connectctl upgrade abort --leave.",
}
"""What to do instead of applying a plan that ``runs apply`` does not know, by the beginning of its
operation's name.
"""


def read_plan(path: Path) -> dict[str, Any]:
    """Read the JSON of the plan in ``path``, ``-`` for standard input. Raises ``BadInput``."""
    try:
        data = read_json(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
        if isinstance(data, dict):
            if data.get("kind", "Plan") != "Plan":
                raise ValueError(
                    f"it is of the kind {data['kind']}; --dry-run -o json prints the plan"
                )
            return dict(data)
        why: str | None = "it is not a JSON object"
    except (OSError, ValueError) as e:
        why = (e.strerror if isinstance(e, OSError) else None) or str(e)
    raise BadInput(
        f"{path} is not a plan", why=why, next_step="Save one: --dry-run -o json > FILE."
    )


def check_fresh(saved: Plan, now: Plan, printed_by: str) -> None:
    """Raise ``Refused`` if ``now``, the plan for the same request now, differs from the saved plan.

    ``printed_by`` is the command that prints it.
    """
    if now.digest == saved.digest:
        return
    was, now_is = (list(map(str.strip, apply.summary(plan)[1:])) for plan in (saved, now))
    why = next(
        (f"now it would be: {line}" for line in now_is if line not in was),
        "its inputs have changed",
    )
    raise stale(why, f"Make a new plan: {printed_by}.")


def perform(
    session: Session, operation: Operation[R, A], request: R, options: ApplyOptions
) -> Planned:
    """Plan ``request``, and print the plan, or execute it after confirmation. Exits with the code
    of the results.

    Returns what was planned.
    """
    operation = operation.only_planned() if options.dry_run else operation
    with without_collection():
        access = operation.access(session, request)
        planned = operation.plan(access, request)
    carry_out(session, operation, access, planned, options)
    return planned


def apply_plan(
    session: Session, operation: Operation[R, A], saved: Plan, options: ApplyOptions
) -> None:
    """Execute a saved plan as it is written. Raises ``Refused`` if it is stale or of another
    cluster.
    """
    operation = operation.only_planned() if options.dry_run else operation
    access = operation.access_for(session, saved)
    if access is None:
        session.settings.get("group_id")  # an unknown context is an error, whatever the plan
        apply.report(saved, apply.unchanged(saved, options.output), options.output)
        return
    check_where((saved.cluster_id, saved.group_id), (access.cluster_id(), access.group_id))
    with without_collection():
        planned = operation.plan_again(access, saved)
    check_fresh(saved, planned.plan, operation.printed_by(saved))
    plan = replace(saved, conditions=planned.plan.conditions)
    carry_out(session, operation, access, replace(planned, plan=plan), options)


def resume(
    session: Session,
    operation: Operation[R, A],
    journal: Journal,
    run: Run,
    plan: Plan,
    options: ApplyOptions,
) -> None:
    """Print, or execute, the steps that are left of ``run``. Raises ``Refused`` if the cluster is
    another one.
    """
    access = operation.access_for(session, plan)
    assert access is not None, "a run has steps"
    check_same_cluster(run, access.cluster_id(), access.group_id)
    try:
        remaining = operation.remaining(access, run, plan)
    except Refused as e:
        if e.code == NOTHING_LEFT and not options.dry_run:
            from connectctl.ops.core.journal import RunState

            journal.end(run.id, RunState.FAILED)
        raise
    plan = remaining.of(plan)
    decided = operation.decided(journal, run, plan)
    steps = tuple(decided.steps[number] for number in remaining.numbers(run, plan))
    left = replace(decided, operation=f"{RESUMED}{plan.operation}", steps=steps, noops=())
    if options.dry_run:
        apply.show(left, options.output)
        return
    operation.check_start(plan, steps, attended=apply.somebody_is_there())
    apply.confirm(session, left, options.output.for_people, yes=options.yes)
    planned = Planned(plan)
    context = context_of(operation, access, planned)
    context.resumed = True
    view = view_of(operation).of_resumed_run()
    results = _execute(
        session, operation, journal, run, planned, context, view, options.output, remaining
    )
    view.report(planned, context, results, options.output)


def _execute(
    session: Session,
    operation: Operation[R, A],
    journal: Journal,
    run: Run,
    planned: Planned,
    context: RunContext,
    view: View,
    output: Output,
    remaining: Remaining = WHOLE,
) -> list[Result]:
    context.run = run
    with view.execution(planned, context, output) as on_result:
        return apply.carry_out(
            session,
            planned.plan,
            context,
            journal,
            run,
            on_result=on_result,
            on_step=view.on_step(planned, context, output),
            remaining=remaining,
            until=operation.pause_after,
            resume_hint=operation.resume_command,
        )


def undo(
    session: Session, operation: Operation[R, A], undone: Undone, options: ApplyOptions
) -> None:
    """Restore what a run changed. Raises ``Refused`` if the cluster is another one, or others
    changed it since.
    """
    from connectctl.migrations.operations import OPERATIONS

    access = operation.access_for(session, undone.plan) if undone.run.changed else None
    if access is None:
        raise Refused(f"The run {undone.run.id} is {undone.run.state}; there is nothing to undo")
    check_same_cluster(undone.run, access.cluster_id(), access.group_id)
    with without_collection():
        planned = operation.undo(access, undone)
    performed = (OPERATIONS | {operation.name: operation})[planned.plan.operation]
    carry_out(session, performed, access, planned, options)


def carry_out(
    session: Session, operation: Operation[R, A], access: A, planned: Planned, options: ApplyOptions
) -> None:
    """Print the plan, or execute it as a run after confirmation. Exits with the code for the
    results.
    """
    plan, output, view = planned.plan, options.output, view_of(operation)
    changes = any(not step.read_only for step in plan.steps)
    for note in planned.notes:
        terminal.note(f"warning: {note}", style="yellow")
    if options.dry_run:
        view.show(planned, output)
        planned.check(dry_run=True)
        return
    if plan.steps:
        operation.check_start(plan, plan.steps, attended=apply.somebody_is_there())
    view.before(planned, output, asked=changes and not options.yes)
    planned.check(dry_run=False)
    if not plan.steps:
        if plan.undoes:
            from connectctl.ops.core.journal import RunState

            session.journal().end(plan.undoes, RunState.UNDONE)
        view.report(planned, None, apply.unchanged(plan, output), output)
        return
    if operation.needs_group and not plan.group_id:
        terminal.note(
            "warning: the cluster is not locked (its brokers are not given); make sure that "
            "nobody else changes it",
            style="yellow",
        )
    journal = session.journal()
    apply.report_unfinished(journal, plan)
    if changes:
        apply.confirm(session, plan, output.for_people, yes=options.yes, typed=planned.typed)
        if not options.yes:
            operation.check_confirmed(access, planned)
    planned.store(journal)
    results = apply.unchanged(plan, output)
    run, context = (
        journal.begin_plan(plan, planned.subjects),
        context_of(operation, access, planned),
    )
    results += _execute(session, operation, journal, run, planned, context, view, output)
    done = any(result.outcome is Outcome.DONE for result in results)
    if operation.can_be_undone and operation.offers_undo and output.for_people and changes and done:
        terminal.print_line(operation.undo_hint(run))
    view.report(planned, context, results, output)


def context_of(operation: Operation[R, A], access: A, planned: Planned) -> RunContext:
    """Return the context of the steps."""
    return operation.context(access, planned)

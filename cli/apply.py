"""Print a plan, request confirmation, execute it and report the results: shared by all commands that change something."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.plan import Noop, Outcome, Plan, Result

if TYPE_CHECKING:
    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.session import Session
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.core.journal import Journal, Run
    from connectctl.ops.operations.connectors.observe import ConnectorHealth

MOST_SHOWN = 5
MOST_NOOPS = 20
"""Resources with nothing to do for the same reason that have a line each."""


def apply(
    session: Session, plan: Plan, context: Any, options: ApplyOptions, begin: Callable[[Journal], None] | None = None
) -> None:
    """Print the plan, or execute it as a run after confirmation. Exits with the code for the results.

    ``begin`` is called after confirmation; it stores the plan's inputs in the journal.
    """
    if options.dry_run:
        show(plan, options.output)
        return
    for_people = options.output.for_people
    journal = open_journal() if plan.steps else None
    changes = any(not step.read_only for step in plan.steps)
    if journal is not None:
        if changes:
            confirm(session, plan, for_people, yes=options.yes)
        if begin is not None:
            begin(journal)
    results = [
        Result(noop.subject, f"{plan.operation} {noop.subject}", Outcome.ALREADY, noop.why) for noop in plan.noops
    ]
    for subject, why in _grouped_by_reason(plan.noops) if for_people else ():
        print_result(Result(subject, f"{plan.operation} {subject}", Outcome.ALREADY, why))
    if journal is not None:
        on_result = print_result if for_people else None
        run = journal.begin_plan(plan)
        results += carry_out(session, plan, context, journal, run, on_result=on_result)
        done = any(result.outcome is Outcome.DONE for result in results)
        if begin is not None and for_people and changes and done:
            terminal.say(f"Undo it with: connectctl runs undo {run.id}")
    elif plan.undoes:
        from connectctl.ops.core.journal import RunState

        open_journal().end(plan.undoes, RunState.UNDONE)
    report(plan, results, options.output)


def open_journal(*, read_only: bool = False) -> Journal:
    """Open the user's journal. Raises ``ConnectctlError`` if it is damaged, or unless ``read_only`` cannot be written."""
    from connectctl.ops.clients.secrets import reveal
    from connectctl.ops.config import paths
    from connectctl.ops.core.journal import Journal

    journal = Journal(paths.journal_directory(), read_only=read_only)
    journal.reveal = reveal
    return journal


def carry_out(
    session: Session,
    plan: Plan,
    context: Any,
    journal: Journal,
    run: Run,
    *,
    on_result: Callable[[Result], None] | None,
    start: int = 0,
    again: Collection[int] = (),
) -> list[Result]:
    """Execute the plan as ``run`` from step ``start`` on, and ``again`` what is done, with the cluster's lock.

    ``on_result`` prints results.
    """
    from connectctl.ops.core.executor import execute

    def on_step(step: Any) -> None:
        if on_result is not None and step.describe().startswith("wait"):
            announce(step)

    return execute(
        plan.steps,
        context,
        journal,
        run,
        lock=session.lock_of(plan.group_id),
        on_step=on_step,
        on_result=on_result or (lambda result: None),
        independent=plan.independent,
        start=start,
        again=again,
        undoes=filter(None, [plan.undoes]),
    )


def report(plan: Plan, results: Sequence[Result], output: Output) -> None:
    """Print the results for scripts, and exit with the code for them."""
    if not output.for_people:
        data = [result.as_json() for result in results]
        about = {"operation": plan.operation, "clusterId": plan.cluster_id, "results": data}
        terminal.emit("Result", about, output, lambda wide: None)
    if code := exit_code(results):
        raise typer.Exit(code)


def announce(step: Any) -> None:
    """Print the step in progress; without a terminal only waits."""
    if not terminal.plain(sys.stderr) or step.describe().startswith("wait"):
        terminal.note(f"{step.describe()} …", style="dim")


def show(plan: Plan, output: Output) -> None:
    """Print the plan, for ``--dry-run``."""
    terminal.emit("Plan", plan.as_json(), output, lambda wide: print_plan(plan))


def confirm(session: Session, plan: Plan, for_people: bool = True, *, yes: bool = False) -> None:
    """Show the plan on standard error and request confirmation, unless ``yes`` is given.

    A protected context requires its name: typed, or given with ``--confirm`` without a terminal. Raises ``Refused`` if
    the user declines, ``BadInput`` without a terminal.
    """
    protected = str(session.settings.context) if session.settings.get("protected") else None
    if session.confirmed is not None and session.confirmed == protected:
        yes, protected = True, None
    if yes and protected is None:
        for warning in plan.warnings:
            terminal.note(f"warning: {warning}", style="yellow")
        return
    lines = list(summary(plan))
    if for_people or somebody_is_there():
        for line in lines:
            terminal.note(line)
    if not somebody_is_there():
        hint = f"Give --confirm {protected}" if protected else "Give --yes"
        raise BadInput(
            f"Confirmation required{' (protected context)' if protected else ''}, but standard input is not a terminal; "
            "nothing was done",
            why=None if for_people else "; ".join(line.strip() for line in lines),
            next_step=f"{hint} to perform the plan, or --dry-run to print it.",
            code="not-confirmed",
        )
    if protected:
        answer = typer.prompt(f"The context {protected} is protected. Type its name to continue", err=True)
        agreed = answer.strip() == protected
    else:
        agreed = typer.confirm("Perform this plan?", err=True)
    if not agreed:
        raise Refused("Not confirmed; nothing was done", code="not-confirmed")


def somebody_is_there() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin.isatty()


def summary(plan: Plan) -> Sequence[str]:
    """Return the lines of the plan for users."""
    lines = [f"{plan.operation}, on the Kafka cluster {plan.cluster_id}:"]
    lines += [
        f"  {n}. {step.describe()}" + (f" (now {step.now})" if step.now else "") for n, step in enumerate(plan.steps, 1)
    ]
    lines += [f"  -  {subject}: {why}" for subject, why in _grouped_by_reason(plan.noops)]
    return lines + [f"  warning: {warning}" for warning in plan.warnings]


def _grouped_by_reason(noops: Iterable[Noop]) -> list[tuple[str, str]]:
    """Return resources with the reason why there is nothing to do; more than ``MOST_NOOPS`` with one reason in one line."""
    by_reason: dict[str, list[str]] = {}
    for noop in noops:
        by_reason.setdefault(noop.why, []).append(noop.subject)
    found: list[tuple[str, str]] = []
    for why, names in by_reason.items():
        shown = names if len(names) <= MOST_NOOPS else [f"{', '.join(names[:2])} and {len(names) - 2} more"]
        found += [(name, why) for name in shown]
    return found


def print_plan(plan: Plan) -> None:
    for line in summary(plan):
        terminal.say(line)
    if not plan.steps:
        terminal.say("  Nothing to do.")


def print_result(result: Result) -> None:
    terminal.say(line_of(result))
    if result.error is not None:
        terminal.note(f"error: {result.error}", style="red")
    sys.stdout.flush()


def line_of(result: Result) -> str:
    """Return the result of a step in one line."""
    if result.error is not None:
        return f"{result.outcome.value:<10} {result.description}"
    if result.outcome is Outcome.ALREADY:
        return f"{result.outcome.value:<10} {result.subject}: {result.detail}"
    return f"{result.outcome.value:<10} {result.description}" + (f": {result.detail}" if result.detail else "")


def exit_unless_healthy(connectors: Sequence[ConnectorHealth], findings: Sequence[Finding]) -> None:
    """Exit with 1, and print why in one line, if something is unhealthy or could not be read."""
    from connectctl.ops.operations.cluster.health import complaints

    if found := list(complaints(connectors, findings)):
        more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
        terminal.note(f"not healthy: {'; '.join(found[:MOST_SHOWN])}{more}", style="red")
        raise typer.Exit(1)


def exit_code(results: Sequence[Result]) -> int:
    """Return 0 if nothing failed; the error's documented code if all failures are of one kind; else 1."""
    from connectctl.cli import main

    codes = {main.exit_code(result.error) for result in results if result.error is not None}
    return 0 if not codes else codes.pop() if len(codes) == 1 else 1

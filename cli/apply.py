"""Print a plan, request confirmation, execute it and report the results: shared by all commands
that change something.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.output.waiting import quiet, waiting
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import Finding, some_of
from connectctl.ops.core.plan import Noop, Outcome, Plan, Result
from connectctl.ops.operations.operation import WHOLE, Operation, Remaining

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.core.journal import Journal, Run
    from connectctl.ops.operations.connectors.observe import ConnectorHealth

MOST_SHOWN = 5
MOST_NAMED = 3
"""Resources with nothing to do for the same reason that are named."""


def unchanged(plan: Plan, output: Output) -> list[Result]:
    """Return the results for resources that need no change; print them for people."""

    def result(subject: str, why: str) -> Result:
        return Result(subject, f"{plan.operation} {subject}", Outcome.ALREADY, why)

    if output.for_people:
        for subject, why in _grouped_by_reason(plan.noops, output is Output.WIDE):
            print_result(result(subject, why))
    return [result(noop.subject, noop.why) for noop in plan.noops]


def report_unfinished(journal: Journal, plan: Plan) -> None:
    """Print a warning for each earlier run on the same Connect cluster that did not end, with the
    commands that end it.

    A run with independent steps that failed has ended: its failures were its results. A run of a
    job file, which may be alive, is continued by its file, unless it has a connector to hand back
    to workers.
    """
    if not plan.group_id:
        return
    from connectctl.migrations.operations import OPERATIONS

    others = (
        run
        for run in journal.unfinished_runs(plan.cluster_id, plan.group_id)
        if run.id != plan.undoes
    )
    known = [(run, OPERATIONS.get(run.operation)) for run in others]
    found = [
        (run, operation)
        for run, operation in known
        if operation is None or operation.is_unfinished(journal, run)
    ]
    for run, operation in found[:MOST_SHOWN]:
        what = f"warning: the run {run.id} ({run.operation} {', '.join(run.subjects)}) did not end."
        resume = operation.resume_command if operation else Operation.resume_command
        undo = operation.undo_hint(run) if operation and operation.can_be_undone else ""
        terminal.note(
            f"{what} Continue it with: {resume} {run.id}. {undo}".rstrip(), style="yellow"
        )
    if len(found) > MOST_SHOWN:
        terminal.note(
            f"warning: {len(found) - MOST_SHOWN} more runs did not end: connectctl runs list",
            style="yellow",
        )


def carry_out(
    session: Session,
    plan: Plan,
    context: Any,
    journal: Journal,
    run: Run,
    *,
    on_result: Callable[[Result], None] | None,
    on_step: Callable[[Any], None] = lambda step: None,
    remaining: Remaining = WHOLE,
    until: int | None = None,
    resume_hint: str = Operation.resume_command,
) -> list[Result]:
    """Execute the steps of ``remaining`` as ``run``, with the cluster's lock; the run pauses before
    step ``until``.

    ``on_step`` announces steps, ``on_result`` prints results. ``resume_hint`` is the command that
    resumes a run.
    """
    from connectctl.ops.core.executor import execute

    with waiting(plan.operation) as wait:

        def begin(step: Any) -> None:
            wait.begin(step.describe())
            on_step(step)

        return execute(
            plan.steps,
            context,
            journal,
            run,
            lock=session.lock_of(plan.group_id),
            on_step=begin,
            on_result=on_result or (lambda result: None),
            independent=plan.independent,
            start=remaining.start,
            again=remaining.again,
            until=until,
            resume_hint=resume_hint,
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
    """Print a wait that begins, without a terminal: on one, every step is named while it lasts."""
    if terminal.plain(sys.stderr) and step.describe().startswith("wait"):
        terminal.note(f"{step.describe()} …", style="dim")


def show(plan: Plan, output: Output, findings: Sequence[Finding] = ()) -> None:
    """Print the plan, for ``--dry-run``."""
    terminal.emit("Plan", plan_data(plan, findings), output, lambda wide: print_plan(plan, wide))


def plan_data(plan: Plan, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the JSON of a plan, with ``findings`` if there are any."""
    return plan.as_json() | (
        {"findings": [finding.as_json() for finding in findings]} if findings else {}
    )


def confirm(
    session: Session,
    plan: Plan,
    for_people: bool = True,
    *,
    yes: bool = False,
    typed: tuple[str, str] | None = None,
) -> None:
    """Show the plan on standard error and request confirmation, unless ``yes`` is given.

    ``typed`` is what is deleted as a whole, and the name that the user must type. A protected
    context requires its name: typed, or given with ``--confirm`` without a terminal. Raises
    ``Refused`` if the user declines, ``BadInput`` without a terminal.
    """
    if typed is not None and not yes and somebody_is_there():
        answer = _prompt(f"All {typed[0]} will be deleted. Type its name to continue")
        if answer.strip() != typed[1]:
            raise Refused("Not confirmed; nothing was done", code="not-confirmed")
        yes = True
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
            f"Confirmation required{' (protected context)' if protected else ''}, but standard "
            "input is not a terminal; nothing was done",
            why=None if for_people else "; ".join(line.strip() for line in lines),
            next_step=f"{hint} to perform the plan, or --dry-run to print it.",
            code="not-confirmed",
        )
    if protected:
        answer = _prompt(f"The context {protected} is protected. Type its name to continue")
        agreed = answer.strip() == protected
    else:
        agreed = agrees("Perform this plan?")
    if not agreed:
        raise Refused("Not confirmed; nothing was done", code="not-confirmed")


def agrees(question: str) -> bool:
    """Ask the user for a yes or no."""
    with quiet():
        return typer.confirm(question, err=True)


def _prompt(text: str) -> str:
    with quiet():
        return str(typer.prompt(text, err=True))


def somebody_is_there() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin.isatty()


def summary(plan: Plan, wide: bool = False) -> Sequence[str]:
    """Return the lines of the plan for users; ``wide``: with the reasons of steps."""
    lines = [f"{plan.operation}, on the Kafka cluster {plan.cluster_id}:"]
    for number, step in enumerate(plan.steps, 1):
        reason = getattr(step, "reason", "") if wide else ""
        more = [f"(now {step.now})" if step.now else "", f" [{reason}]" if reason else ""]
        lines.append(" ".join(filter(None, [f"  {number}. {step.describe()}", *more])))
    lines += [f"  -  {subject}: {why}" for subject, why in _grouped_by_reason(plan.noops, wide)]
    return lines + [f"  warning: {warning}" for warning in plan.warnings]


def _grouped_by_reason(noops: Iterable[Noop], wide: bool) -> list[tuple[str, str]]:
    """Return resources with the reason why there is nothing to do: those with one reason together,
    many by their number; or each if ``wide``.
    """
    by_reason: dict[str, list[str]] = {}
    for noop in noops:
        by_reason.setdefault(noop.why, []).append(noop.subject)
    found: list[tuple[str, str]] = []
    for why, names in by_reason.items():
        together = some_of(names, len(names) if len(names) <= MOST_NAMED else 1)
        found += [(name, why) for name in (names if wide else [together])]
    return found


def print_plan(plan: Plan, wide: bool = False) -> None:
    for line in summary(plan, wide):
        terminal.print_wrapped(line)
    if not plan.steps:
        terminal.print_line("  Nothing to do.")


def print_result(result: Result) -> None:
    terminal.print_wrapped(line_of(result))
    if result.error is not None:
        terminal.note(f"error: {result.error}", style="red")
    sys.stdout.flush()


def line_of(result: Result) -> str:
    """Return the result of a step in one line."""
    if result.error is not None:
        return f"{result.outcome.value:<10} {result.description}"
    if result.outcome is Outcome.ALREADY:
        return f"{result.outcome.value:<10} {result.subject}: {result.detail}"
    return f"{result.outcome.value:<10} {result.description}" + (
        f": {result.detail}" if result.detail else ""
    )


def exit_unless_healthy(connectors: Sequence[ConnectorHealth], findings: Sequence[Finding]) -> None:
    """Exit with 1, and print why in one line, if something is unhealthy or could not be read."""
    from connectctl.ops.operations.cluster.health import health_problems

    if found := list(health_problems(connectors, findings)):
        more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
        terminal.note(f"not healthy: {'; '.join(found[:MOST_SHOWN])}{more}", style="red")
        raise typer.Exit(1)


def exit_code(results: Sequence[Result]) -> int:
    """Return 0 if nothing failed; the error's documented code if all failures are of one kind; else
    1.
    """
    from connectctl.cli import main

    codes = {main.exit_code(result.error) for result in results if result.error is not None}
    return 0 if not codes else codes.pop() if len(codes) == 1 else 1

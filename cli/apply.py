"""From a plan to its performance: print it, ask once, do it, tell what came of it. The same for every changing command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli import render
from connectctl.cli.render import Output
from connectctl.ops.errors import BadInput, Refused
from connectctl.ops.plan import Outcome, Plan, Result, perform

if TYPE_CHECKING:
    from connectctl.cli.context import Session
    from connectctl.ops.connectors import Judged
    from connectctl.ops.model.finding import Finding

MOST_TOLD = 5
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan, and do nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Perform the plan without asking.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, wide, json or yaml.")]


def apply(session: Session, plan: Plan, edges: Any, *, dry_run: bool, yes: bool, output: Output) -> None:
    """Print the plan, or ask and perform it. Exits with the code that the results amount to."""
    if dry_run:
        show(plan, output)
        return
    for_people = output in (Output.TABLE, Output.WIDE)
    if plan.steps:
        confirm(session, plan, for_people, yes=yes)
    results = []
    for result in _results(plan, edges, for_people):
        results.append(result)
        if for_people:
            _print_result(result)
    if not for_people:
        data = {"operation": plan.operation, "clusterId": plan.cluster_id}
        data["results"] = [result.as_json() for result in results]  # type: ignore[assignment]
        render.emit("Result", data, output, lambda wide: None)
    if code := exit_code(results):
        raise typer.Exit(code)


def show(plan: Plan, output: Output) -> None:
    """Print the plan: this is the dry run."""
    render.emit("Plan", plan.as_json(), output, lambda wide: _print_plan(plan))


def _results(plan: Plan, edges: Any, for_people: bool) -> Any:
    for needless in plan.needless:
        yield Result(needless.subject, f"{plan.operation} {needless.subject}", Outcome.ALREADY, needless.why)

    def told(step: Any) -> None:
        if for_people and not render.plain(sys.stderr) and step.says().startswith("wait"):
            render.note(f"{step.says()} …", style="dim")

    yield from perform(plan.steps, edges, told)


def confirm(session: Session, plan: Plan, for_people: bool = True, *, yes: bool = False) -> None:
    """Show the plan on standard error and ask, unless ``yes`` says that there is no need to.

    A protected context wants its name: typed, or given with ``--confirm`` where nobody can type. Raises ``Refused`` for
    a no, ``BadInput`` where there is nobody to ask.
    """
    protected = str(session.settings.context) if session.settings.get("protected") else None
    if session.confirmed is not None and session.confirmed == protected:
        yes, protected = True, None
    if yes and protected is None:
        return
    lines = list(summary(plan))
    if for_people or somebody_is_there():
        for line in lines:
            render.note(line)
    if not somebody_is_there():
        hint = f"Give --confirm {protected}" if protected else "Give --yes"
        raise BadInput(
            f"{'The context is protected and there' if protected else 'There'} is no terminal to ask for confirmation; "
            "nothing was done",
            why=None if for_people else "; ".join(line.strip() for line in lines),
            next_step=f"{hint} to perform the plan, or --dry-run to print it.",
            code="not-confirmed",
        )
    if protected:
        answer = typer.prompt(f"The context {protected} is protected. Type its name to go on", err=True)
        agreed = answer.strip() == protected
    else:
        agreed = typer.confirm("Perform this plan?", err=True)
    if not agreed:
        raise Refused("Not confirmed; nothing was done", code="not-confirmed")


def somebody_is_there() -> bool:
    """Whether there is a terminal to ask on."""
    return sys.stdin.isatty()


def summary(plan: Plan) -> Sequence[str]:
    """The plan in lines for people."""
    lines = [f"{plan.operation}, on the Kafka cluster {plan.cluster_id}:"]
    lines += [
        f"  {n}. {step.says()}" + (f" (now {step.now})" if step.now else "") for n, step in enumerate(plan.steps, 1)
    ]
    return lines + [f"  -  {needless.subject}: {needless.why}" for needless in plan.needless]


def _print_plan(plan: Plan) -> None:
    for line in summary(plan):
        render.say(line)
    if not plan.steps:
        render.say("  Nothing to do.")


def _print_result(result: Result) -> None:
    render.say(line_of(result))
    if result.error is not None:
        render.note(f"error: {result.error}", style="red")
    sys.stdout.flush()


def line_of(result: Result) -> str:
    """What came of a step, in one line."""
    if result.error is not None:
        return f"{result.outcome.value:<10} {result.says}"
    if result.outcome is Outcome.ALREADY:
        return f"{result.outcome.value:<10} {result.subject}: {result.detail}"
    return f"{result.outcome.value:<10} {result.says}" + (f": {result.detail}" if result.detail else "")


def exit_unless_healthy(connectors: Sequence[Judged], findings: Sequence[Finding]) -> None:
    """Exit with 1, and say why in one line, where what was seen is not healthy, or not everything was seen."""
    from connectctl.ops.health import complaints

    if found := list(complaints(connectors, findings)):
        more = f"; and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
        render.note(f"not healthy: {'; '.join(found[:MOST_TOLD])}{more}", style="red")
        raise typer.Exit(1)


def exit_code(results: Sequence[Result]) -> int:
    """0 if nothing failed; the documented code of the error if all failures are of one kind; else 1."""
    from connectctl.cli import main

    codes = {main.exit_code(result.error) for result in results if result.error is not None}
    return 0 if not codes else codes.pop() if len(codes) == 1 else 1

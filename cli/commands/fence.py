"""``connectctl fence``: fence zombie producers by connector, id, prefix or file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import apply, completed_names
from connectctl.cli.apply import DryRunOption, OutputOption, YesOption
from connectctl.cli.garbage_collection import collect_seldom
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.transaction_sources import Workers, sources_of
from connectctl.cli.views import fence as fence_view
from connectctl.ops.core.errors import BadInput, Refused

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.core.plan import Plan, Result
    from connectctl.ops.operations.fencing.snapshot import FencePlan, Wish
    from connectctl.ops.operations.fencing.steps import FenceContext

app = typer.Typer(rich_markup_mode=None, add_completion=False, help="Fence zombie producers.")
STALE = 2.0
"""Seconds after which a plan is looked at again before it is performed."""


@app.command()
def fence(
    ctx: typer.Context,
    connectors: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONNECTOR]...",
            help="Connectors, all ids of their tasks.",
            autocompletion=completed_names.connectors,
        ),
    ] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--transactional-id", metavar="ID", help="A transactional id; may be repeated.")
    ] = None,
    prefixes: Annotated[
        list[str] | None, typer.Option("--prefix", metavar="P", help="Every known id that begins with P, no leader's.")
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option("--from-file", "-f", metavar="FILE", help="Ids from a file, lines or JSON; - for stdin."),
    ] = None,
    leader: Annotated[bool, typer.Option("--leader", help="The leader's id, connect-cluster-<group.id>.")] = False,
    create: Annotated[bool, typer.Option("--create", help="Create ids that no coordinator knows.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Fence running tasks too; they will fail.")] = False,
    restart_failed: Annotated[
        bool, typer.Option("--restart-failed", help="Afterwards restart the failed tasks of the connectors.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Fence transactional ids: their older producers can commit nothing more, and their open transactions are aborted.

    \b
    Examples:
      connectctl fence orders --dry-run                    the ids of a connector, and what holds them now
      connectctl fence orders --yes -o json
      connectctl fence orders --force --restart-failed     running tasks too; they fail, and are restarted
      connectctl fence --prefix connect-prod-old- --yes    all that is left of a connector
      connectctl transactions list -o json | connectctl fence -f - --yes
      connectctl fence --leader                            the leader's producer for the config topic

    A connector's ids reach as far as its last round of fencing, its task configs or what the coordinators know. Ids that
    no coordinator knows are reported and left alone. Afterwards the fence is proven: the coordinator has for each id what
    this fencing returned, and no older transaction is open on the partitions it held. --timeout bounds it all.
    Exit code 1: an id is not fenced or may not be seen, the rest is; 4: running tasks would fail, or may, because their
    group is not seen; 130: interrupted, done ids are printed.
    """
    from connectctl.ops.operations.fencing.snapshot import Wish

    named = [*(ids or []), *(_read_ids(from_file) if from_file else ())]
    wish = Wish(tuple(dict.fromkeys(connectors or ())), tuple(named), tuple(prefixes or ()), leader, create, force)
    _fence(ctx.obj, wish, restart_failed, dry_run, yes, output)


def _fence(session: Session, wish: Wish, restart_failed: bool, dry_run: bool, yes: bool, output: Output) -> None:
    from connectctl.ops.operations.fencing.observe import observe
    from connectctl.ops.operations.fencing.planning import check, check_wish, plan_fence
    from connectctl.ops.operations.fencing.steps import plan_of

    collect_seldom()
    group_id = str(session.settings.get("group_id") or "") or None
    check_wish(wish, group_id)
    sources = sources_of(session, wish)
    plan = plan_fence(observe(sources, wish), wish)
    restart = _restarted(plan, group_id) if restart_failed else ()
    steps = plan_of(plan, restart=restart, group_id=group_id, connectors=wish.connectors, force=wish.force)
    if dry_run:
        fence_view.show_plan(plan, steps, output)
        check(plan, wish)
        return

    def check_again() -> None:
        # Where the person took a while, what was agreed to must still be what will be done.
        if time.time() - plan.taken_at > STALE and plan_fence(observe(sources, wish), wish).essence != plan.essence:
            raise Refused("The cluster changed while you were asked; nothing was fenced", next_step="Look again.")

    agree_and_fence(
        session, sources.calls, plan, steps, partial(check, plan, wish), check_again, yes=yes, output=output
    )


def agree_and_fence(
    session: Session,
    calls: TransactionCalls,
    plan: FencePlan,
    steps: Plan,
    check: Callable[[], None],
    check_again: Callable[[], object],
    *,
    yes: bool,
    output: Output,
) -> None:
    """Show the plan, ask, and carry it out. ``check`` raises where it must not be, ``check_again`` once it was agreed to."""
    journal = apply.open_journal() if steps.steps else None
    for_people = output in (Output.TABLE, Output.WIDE)
    if plan.to_fence and not yes and (for_people or sys.stdin.isatty()):
        fence_view.show_rows(plan)
    terminal.findings(plan.findings)
    check()
    if plan.to_fence:
        apply.confirm(session, steps, for_people, yes=yes)
        if not yes:
            check_again()
    _perform(session, calls, plan, steps, journal, output)


def _perform(
    session: Session, calls: TransactionCalls, plan: FencePlan, steps: Plan, journal: Journal | None, output: Output
) -> None:
    from connectctl.ops.operations.fencing.steps import FenceContext, FenceIds

    began = time.monotonic()
    done = iter(range(1, len(plan.rows) + 1))
    with ExitStack() as stack:
        advance = stack.enter_context(terminal.progress(f"Fencing {len(plan.to_fence):,} ids"))
        context = FenceContext(
            Workers(session),
            session.timeout,
            transactions=calls,
            journal=journal,
            fencing=session.timeout,
            on_id=lambda result: advance(next(done), len(plan.to_fence)),
        )

        def show() -> None:
            stack.close()
            fence_view.show_results(plan, context, time.monotonic() - began, output)

        def on_result(result: Result) -> None:
            if result.error is None and isinstance(steps.steps[context.step], FenceIds):
                show()
            elif context.error is None:
                terminal.note(
                    f"{result.outcome.value}: {result.says}" if result.error is None else f"error: {result.error}"
                )

        context.on_interrupt = show
        results: list[Result] = []
        if journal is None:
            show()
        else:
            run = journal.begin_plan(steps)
            results = apply.carry_out(session, steps, context, journal, run, on_result=on_result)
    if context.error is not None:
        raise context.error
    _offer(plan, context, restarted=len(steps.steps) > 1)
    failed = any(result.error is not None for result in results)
    if failed or fence_view.any_failed(plan, context) or plan.unlisted:
        raise typer.Exit(1)


def _offer(plan: FencePlan, context: FenceContext, *, restarted: bool) -> None:
    """After running tasks were fenced: how to bring them back."""
    connectors = dict.fromkeys(owner.connector for row in plan.to_fence for owner in row.running)
    if connectors and not restarted:
        names = " ".join(connectors)
        terminal.note(
            f"The fenced tasks fail when they next write. Then: connectctl connectors restart {names} --only-failed"
        )


def _restarted(plan: FencePlan, group_id: str | None) -> tuple[str, ...]:
    owners = [owner for row in plan.to_fence for owner in row.owners if owner.group == group_id]
    return tuple(dict.fromkeys(owner.connector for owner in owners))


def _read_ids(file: Path) -> tuple[str, ...]:
    from connectctl.ops.operations.fencing.id_file import parse_ids

    source = "standard input" if str(file) == "-" else str(file)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "it is not UTF-8 text"
        raise BadInput(f"The file {file} cannot be read", why=why) from e
    return parse_ids(text, source)

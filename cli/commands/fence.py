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
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.options import ApplyOptions, with_options
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.transaction_sources import LazyWorkers, sources_of
from connectctl.cli.views import fence as fence_view
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.operations.fencing.snapshot import FenceOutcome, FenceRequest, FenceSelection

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.core.plan import Plan, Result
    from connectctl.ops.operations.fencing.observe import FencingSources
    from connectctl.ops.operations.fencing.steps import FenceContext

app = typer.Typer(rich_markup_mode=None, add_completion=False, help="Fence zombie producers.")
STALE = 2.0
"""Seconds after which a confirmed plan is computed again, to check that it is unchanged."""


@app.command()
@with_options
def fence(
    ctx: typer.Context,
    connectors: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONNECTOR]...",
            help="Connectors: the ids of all their tasks.",
            autocompletion=completed_names.connectors,
        ),
    ] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--transactional-id", metavar="ID", help="Transactional id (repeatable).")
    ] = None,
    prefixes: Annotated[
        list[str] | None,
        typer.Option("--prefix", metavar="P", help="All known ids that begin with P, except leaders' ids."),
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option("--from-file", "-f", metavar="FILE", help="File of ids, one per line or JSON; - for stdin."),
    ] = None,
    leader: Annotated[bool, typer.Option("--leader", help="The id of the leader, connect-cluster-<group.id>.")] = False,
    create: Annotated[bool, typer.Option("--create", help="Create ids unknown to the coordinators.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also fence running tasks; they will fail.")] = False,
    restart_failed: Annotated[
        bool, typer.Option("--restart-failed", help="Restart the failed tasks of the connectors afterwards.")
    ] = False,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """Fence transactional ids: older producers can no longer commit, and open transactions are aborted.

    \b
    Examples:
      connectctl fence orders --dry-run                    the ids of a connector and their current state
      connectctl fence orders --yes -o json
      connectctl fence orders --force --restart-failed     also running tasks; they fail and are restarted
      connectctl fence --prefix connect-prod-old- --yes    all remaining ids of a connector
      connectctl transactions list -o json | connectctl fence -f - --yes
      connectctl fence --leader                            the leader's producer for the config topic

    The ids of a connector are those of its task count record, its task configs and the coordinators. Unknown ids are
    reported and left alone. Afterwards the fence is verified: the coordinator has the returned producer and epoch for each
    id, and no older transaction is open on its partitions. --timeout applies to all of it.
    Exit code 1: some ids are not fenced or not visible to this principal; 4: running tasks would fail, or may, because
    their group could not be described; 5: this principal may fence none of them; 130: interrupted, finished ids are printed.
    """
    named = [*(ids or []), *(_read_ids(from_file) if from_file else ())]
    request = FenceRequest(
        tuple(dict.fromkeys(connectors or ())), tuple(named), tuple(prefixes or ()), leader, create, force
    )
    with without_collection():
        _fence(ctx.obj, request, restart_failed, options)


def _fence(session: Session, request: FenceRequest, restart_failed: bool, options: ApplyOptions) -> None:
    from connectctl.ops.operations.fencing.observe import observe
    from connectctl.ops.operations.fencing.planning import check, check_request, refuse_denied, select
    from connectctl.ops.operations.fencing.steps import plan_fence

    group_id = str(session.settings.get("group_id") or "") or None
    check_request(request, group_id)
    sources = sources_of(session, request)
    selection = select(observe(sources, request), request)
    restart = selection.connectors_of(group_id) if restart_failed else ()
    plan = plan_fence(selection, restart=restart, group_id=group_id, connectors=request.connectors, force=request.force)
    if options.dry_run:
        fence_view.show_plan(selection, plan, options.output)
        check(selection, request)
        refuse_denied(selection.rows)
        return

    def check_again() -> None:
        # After a long prompt, the confirmed plan must still be current.
        is_old = time.time() - selection.taken_at > STALE
        if is_old and select(observe(sources, request), request).essence != selection.essence:
            raise Refused(
                "The cluster changed during confirmation; nothing was fenced", next_step="Run the command again."
            )

    agree_and_fence(session, sources, selection, plan, partial(check, selection, request), check_again, options)


def agree_and_fence(
    session: Session,
    sources: FencingSources,
    selection: FenceSelection,
    plan: Plan,
    check: Callable[[], None],
    check_again: Callable[[], object],
    options: ApplyOptions,
) -> None:
    """Show the plan, confirm, and execute it. ``check`` raises if it is refused, ``check_again`` after confirmation."""
    journal = apply.open_journal() if plan.steps else None
    if selection.to_fence and not options.yes and (options.output.for_people or sys.stdin.isatty()):
        fence_view.show_rows(selection)
    terminal.findings(selection.findings)
    check()
    if selection.to_fence:
        apply.confirm(session, plan, options.output.for_people, yes=options.yes)
        if not options.yes:
            check_again()
    _perform(session, sources, selection, plan, journal, options.output)


def _perform(
    session: Session,
    sources: FencingSources,
    selection: FenceSelection,
    plan: Plan,
    journal: Journal | None,
    output: Output,
) -> None:
    from connectctl.ops.operations.fencing.observe import refuse_running
    from connectctl.ops.operations.fencing.planning import refuse_denied
    from connectctl.ops.operations.fencing.steps import FenceContext, FenceIds, results_of

    began = time.monotonic()
    done = iter(range(1, len(selection.rows) + 1))
    with ExitStack() as stack:
        advance = stack.enter_context(terminal.progress(f"Fencing {len(selection.to_fence):,} ids"))
        context = FenceContext(
            LazyWorkers(session),
            session.timeout,
            transactions=sources.calls,
            journal=journal,
            check=partial(refuse_running, sources),
            fencing=session.timeout,
            on_id=lambda result: advance(next(done), len(selection.to_fence)),
        )

        def show() -> None:
            stack.close()
            fence_view.show_results(selection, context, time.monotonic() - began, output)

        def on_result(result: Result) -> None:
            if result.error is None and isinstance(plan.steps[context.step], FenceIds):
                show()
            elif context.error is None:
                terminal.note(
                    f"{result.outcome.value}: {result.description}"
                    if result.error is None
                    else f"error: {result.error}"
                )

        context.on_interrupt = show
        results: list[Result] = []
        if journal is None:
            show()
        else:
            run = journal.begin_plan(plan)
            results = apply.carry_out(session, plan, context, journal, run, on_result=on_result)
    if context.error is not None:
        raise context.error
    _note_restart(selection, context, restarted=len(plan.steps) > 1)
    refuse_denied(results_of(selection, context))
    failed = any(result.error is not None for result in results)
    failed = failed or any(each.outcome is FenceOutcome.FAILED for each in results_of(selection, context))
    if failed or selection.unlisted:
        raise typer.Exit(1)


def _note_restart(selection: FenceSelection, context: FenceContext, *, restarted: bool) -> None:
    """Print how to restart running tasks that were fenced."""
    connectors = dict.fromkeys(owner.connector for row in selection.to_fence for owner in row.running)
    if connectors and not restarted:
        names = " ".join(connectors)
        terminal.note(
            f"Fenced tasks fail at their next write. Then restart them: connectctl connectors restart {names} --only-failed"
        )


def _read_ids(file: Path) -> tuple[str, ...]:
    from connectctl.ops.operations.fencing.id_file import parse_ids

    source = "standard input" if str(file) == "-" else str(file)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "invalid UTF-8"
        raise BadInput(f"Could not read {file}", why=why) from e
    return parse_ids(text, source)

"""Executes changes of source offsets: observe, plan, confirm, run with the journal, and print how to undo it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import typer
from connectctl.cli import apply
from connectctl.cli.commands.offsets.sources import PATIENCE, sources_of
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.options import OffsetOptions
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.plan_file import check_fresh
from connectctl.cli.session import Session
from connectctl.ops.clients.spark import session as spark_session
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.executor import execute
from connectctl.ops.core.journal import Journal, Run
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.offsets.changes import CopyOffsets
from connectctl.ops.operations.offsets.context import OffsetContext
from connectctl.ops.operations.offsets.engine import Engine, Local
from connectctl.ops.operations.offsets.engine_choice import Choice, wants_spark
from connectctl.ops.operations.offsets.incomplete import check_places
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.planned_writes import write_as_json
from connectctl.ops.operations.offsets.planning import Changes, ConnectorState, plan_changes
from connectctl.ops.operations.offsets.prepare import OffsetAccess, check_workers, observe_targets, refuse_without_write
from connectctl.ops.operations.offsets.record_changes import RecordChange, effective_entries
from connectctl.ops.operations.offsets.target import OffsetTarget
from connectctl.ops.operations.offsets.undo import undone_by
from connectctl.ops.operations.sink_offsets.planning import GroupChanges

SHOWN = 20
"""The most records or offsets shown of a plan; all are in ``-o json``."""


def look_at(session: Session, targets: Sequence[OffsetTarget]) -> tuple[OffsetAccess, list[ConnectorState]]:
    """Return the current state of the connectors. Raises ``BadInput`` for unknown ones."""
    sources, group, _ = sources_of(session, PATIENCE)
    access = OffsetAccess(sources, session.connect_to(group), group, session.named_topics, engine_of(session, sources))
    if not targets:
        return access, []
    with without_collection():
        return observe_targets(access, targets)


def engine_of(session: Session, sources: Sources) -> Engine:
    """Return the engine given with ``--engine``, or chosen by the size of the global offsets topic."""
    choice = Choice(session.engine)
    if choice is Choice.LOCAL or not wants_spark(
        choice, sources.kafka, sources.offsets_topic, installed=spark_session.installed()
    ):
        return Local()
    spark_session.require()
    return session.spark


def change(
    session: Session,
    operation: str,
    targets: Sequence[OffsetTarget],
    options: OffsetOptions,
    *,
    typed: str | None = None,
    check: Callable[[OffsetAccess], None] = lambda access: None,
    saved: Plan | None = None,
) -> bool:
    """Plan the change, confirm and execute it; returns whether the offsets are as requested.

    ``typed`` is a name that the user must type; ``check`` may raise after the cluster has been observed. ``saved`` is an
    earlier plan for the same request, executed unchanged. Raises ``Refused`` if it is stale.
    """
    access, subjects = look_at(session, targets)
    access.sources.check_proven()
    check(access)
    pairs = [
        (subject, target.request(subject)) for subject, target in zip(subjects, targets, strict=True) if target.request
    ]
    cluster_id = access.sources.kafka.cluster_id()
    via = targets[0].via if targets else "kafka"
    changes = plan_changes(
        operation, cluster_id, pairs, stop=options.stop, group_id=access.group_id, view=access.view, via=via
    )
    if saved is not None:
        check_fresh(saved, changes.plan)
        changes = replace(changes, plan=saved)
    if options.dry_run:
        in_full = options.output in (Output.JSON, Output.YAML)
        data = changes.as_json(partial(_writes, output=options.output)) if in_full else {}
        terminal.emit("OffsetsPlan", data, options.output, lambda wide: show(changes))
        return False
    if via == "kafka" and changes.plan.steps:
        refuse_without_write(changes, lambda: session.own_rights)
    warn(changes.warnings)
    records = partial(show_records, changes, to_stderr=True)
    perform(session, access, changes, [s.name for s, _ in pairs], options, records, typed, f"source offsets of {typed}")
    return True


def warn(warnings: Sequence[str]) -> None:
    """Print what the user is to know before the plan is confirmed."""
    for warning in warnings:
        terminal.note(f"warning: {addresses_masked(warning)}", style="yellow")


def _writes(writes: Collection[RecordChange], output: Output) -> list[Any]:
    """Return the records of a plan for scripts."""
    return terminal.each(writes, write_as_json, output)


def perform(
    session: Session,
    access: OffsetAccess,
    changes: Changes | GroupChanges,
    names: Sequence[str],
    options: OffsetOptions,
    records: Callable[[], None],
    typed: str | None,
    deleted: str,
) -> None:
    """Show ``records``, confirm and execute the plan; ``deleted`` names what is deleted if the user must type ``typed``."""
    plan, output = changes.plan, options.output
    data: dict[str, Any] = {"operation": plan.operation, "clusterId": plan.cluster_id}
    data |= {"run": None, "recordsPlanned": len(changes.writes), "results": []}
    if not plan.steps:
        terminal.emit("OffsetsResult", data, output, lambda wide: terminal.say("Nothing to do."))
        return
    check_workers(plan, access)
    journal = apply.open_journal()
    report_interrupted(journal, plan.cluster_id, access.group_id)
    ask(session, plan, output, records, yes=options.yes, typed=deleted, name=typed)
    run = journal.begin_plan(plan, names)
    results = carry_out(context_of(session, access, journal), plan.steps, run, journal)

    def table(wide: bool) -> None:
        for result in results:
            terminal.say(apply.line_of(result))
        terminal.say(f"Undo it with: connectctl offsets undo {run.id} --stop")

    data |= {"run": run.id, "results": [result.as_json() for result in results]}
    terminal.emit("OffsetsResult", data, output, table)


def context_of(session: Session, access: OffsetAccess, journal: Journal) -> OffsetContext:
    return OffsetContext(
        access.calls,
        session.timeout,
        sources=access.sources,
        group_id=access.group_id,
        journal=journal,
        engine=access.engine,
        facts=lambda: access.sources.facts(access.group_id),
        origin=partial(entries_now, session),
        groups=lambda: session.group_offsets,
        lock=session.cluster_lock,
    )


def entries_now(session: Session, request: CopyOffsets) -> tuple[tuple[str, str], ...]:
    """Return the effective offsets of the connector that a copy is of, as they are now."""
    there = session if request.context is None else session.in_context(request.context)
    _, (origin,) = look_at(there, [OffsetTarget(request.source, None, new=True)])
    check_places(origin.places)
    return effective_entries(origin.places, running=origin.running)


def carry_out(context: OffsetContext, steps: Sequence[Any], run: Run, journal: Journal, *, start: int = 0) -> list[Any]:
    """Execute the steps from ``start`` on, and announce each on a terminal."""
    undoes = undone_by(steps)
    return execute(steps, context, journal, run, lock=context.lock, on_step=apply.announce, start=start, undoes=undoes)


def report_interrupted(journal: Journal, cluster_id: str, group_id: str) -> None:
    """Print a warning for each earlier run that has not ended successfully."""
    for run in journal.unfinished_runs(cluster_id, group_id):
        if not run.operation.startswith(("offsets ", "upgrade")):
            continue
        upgrade = run.operation == "upgrade"
        back = f"connectctl upgrade abort {run.id}" if upgrade else f"connectctl offsets undo {run.id} --stop"
        terminal.note(
            f"warning: the run {run.id} ({run.operation} {', '.join(run.subjects)}) did not end. "
            f"To continue: connectctl runs resume {run.id}, or {back}",
            style="yellow",
        )


def ask(
    session: Session,
    plan: Plan,
    output: Output,
    records: Callable[[], None],
    *,
    yes: bool,
    typed: str,
    name: str | None,
) -> None:
    """Request confirmation of ``plan``, after showing its ``records``. Raises ``Refused``.

    If all offsets named by ``typed`` are to be deleted, the user must type ``name``.
    """
    if not yes and apply.somebody_is_there():
        records()
    if name is not None and not yes and apply.somebody_is_there():
        answer = typer.prompt(f"All {typed} will be deleted. Type its name to continue", err=True)
        if answer.strip() != name:
            raise Refused("Not confirmed; nothing was done", code="not-confirmed")
        yes = True
    apply.confirm(session, plan, output.for_people, yes=yes)


def show(changes: Changes) -> None:
    """Print a plan: its steps, the records to write, conflicts of the policies, and warnings."""
    apply.print_plan(changes.plan)
    show_records(changes)
    for warning in changes.warnings:
        terminal.say(f"  warning: {addresses_masked(warning)}")


def show_records(changes: Changes, *, to_stderr: bool = False) -> None:
    """Print the records to write with their former values, and the conflicts."""
    say = terminal.note if to_stderr else terminal.say
    for write in map(write_as_json, islice(changes.writes, SHOWN)):
        before, after = write["before"] or "nothing", write["after"] or "a tombstone"
        say(addresses_masked(f"  {write['topic']}  {write['key']}: {before} -> {after}"))
    if len(changes.writes) > SHOWN:
        say(f"  … and {len(changes.writes) - SHOWN:,} more records; --dry-run -o json has them all.")
    for conflict in changes.conflicts[:SHOWN]:
        sides = f"global {conflict.global_ or 'a tombstone'}, dedicated {conflict.dedicated or 'a tombstone'}"
        say(addresses_masked(f"  {conflict.key}: {sides}; taken: {conflict.taken}, because {conflict.why}"))

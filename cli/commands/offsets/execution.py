"""From requests about source offsets to a run: look, plan, ask once, carry out with the journal, say how to undo it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer
from connectctl.cli import apply
from connectctl.cli.commands.offsets.sources import PATIENCE, sources_of
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.output import terminal
from connectctl.cli.output.json_lines import EncodedItems, Flow
from connectctl.cli.output.terminal import Output
from connectctl.cli.saved_plan import check_fresh
from connectctl.ops.clients.spark import session as spark_session
from connectctl.ops.config import paths
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.connect.connector import State
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Refused
from connectctl.ops.core.executor import execute
from connectctl.ops.core.journal import Journal
from connectctl.ops.operations.connectors.observe import see, with_health
from connectctl.ops.operations.offsets.changes import RestoreOffsets
from connectctl.ops.operations.offsets.context import OffsetContext
from connectctl.ops.operations.offsets.engine import Asked, Local
from connectctl.ops.operations.offsets.engine_choice import Choice, wants_spark
from connectctl.ops.operations.offsets.key_filter import AllKeys
from connectctl.ops.operations.offsets.large_topics import check_names
from connectctl.ops.operations.offsets.planned_writes import write_as_json, write_texts
from connectctl.ops.operations.offsets.planning import ConnectorState, plan_changes
from connectctl.ops.operations.offsets.snapshot import Workers
from connectctl.ops.operations.offsets.steps import asked_by
from connectctl.ops.operations.offsets.task_producers import producers_of
from connectctl.ops.operations.offsets.undo import undone_by
from connectctl.ops.operations.offsets.write_access import refuse_without_write

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.connect.config_topic import ConfiguredConnector
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.core.journal import Run
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.operations.offsets.changes import OffsetRequest
    from connectctl.ops.operations.offsets.engine import Engine, View
    from connectctl.ops.operations.offsets.key_filter import Purpose
    from connectctl.ops.operations.offsets.observe import Sources
    from connectctl.ops.operations.offsets.planning import Changes
    from connectctl.ops.operations.offsets.record_changes import RecordChange
    from connectctl.ops.operations.sink_offsets.planning import GroupChanges

SHOWN = 20
"""Records of a plan that are shown; all are in ``-o json``."""


@dataclass(frozen=True)
class Target:
    """A connector, the change requested for it, and the dedicated topic that it is to get.

    ``new``: it may not exist yet. ``via`` is how to write: ``kafka`` or ``rest``. ``purpose`` tells an engine what it may
    leave out; everything is looked at for none.
    """

    name: str
    request: Callable[[ConnectorState], OffsetRequest] | None
    topic: str | None = None
    new: bool = False
    via: str = "kafka"
    purpose: Purpose | None = None


@dataclass(frozen=True)
class Looked:
    """The edges of a change, opened."""

    sources: Sources
    calls: ConnectCalls
    group_id: str
    engine: Engine
    view: View | None = None


def look_at(session: Session, targets: Sequence[Target]) -> tuple[Looked, list[ConnectorState]]:
    """The connectors as they are now. Raises ``BadInput`` for unknown ones."""
    sources, group, _ = sources_of(session, PATIENCE)
    calls = session.connect_to(group)
    looked = Looked(sources, calls, group.id, engine_of(session, sources))
    if not targets:
        return looked, []
    read = partial(sources.facts, group.id)
    seen = see(calls, sources.kafka, group, session.named_topics, read) if group.members else None
    states = {j.name: j.verdict.state for j in (seen.connectors if seen else with_health([], group))}
    workers = sources.workers() if any(target.via == "rest" for target in targets) else Workers()
    subjects = []
    with without_collection():
        view = looked.engine.view(sources, [_asked(target) for target in targets])
        snapshot = view.snapshot
        configs = snapshot.configs.connectors if snapshot.configs else {}
        for target in targets:
            found = tuple(view.places[target.name])
            configured = configs.get(target.name)
            is_sink = configured is not None and configured.looks_like == "sink"
            if is_sink or not (target.new or configured or any(at.records for at in found)):
                check_names(target.name, snapshot)
            config = configured.config if configured else {}
            state = settled(states.get(target.name), configured)
            producers, _ = producers_of(sources, group.id, target.name)
            holders, unseen = runs_of(sources, group.id, target.name)
            up = bool(group.members)
            subjects.append(ConnectorState(target.name, found, state, up, config, workers, producers, holders, unseen))
    return replace(looked, view=view), subjects


def runs_of(sources: Sources, group_id: str, connector: str) -> tuple[tuple[Holder, ...], str | None]:
    """The runs of connectctl that have the connector, and why there may be more."""
    try:
        return sources.kafka.holders(group_id, connector), None
    except NotAuthorized as e:
        return (), str(e)


def _asked(target: Target) -> Asked:
    if isinstance(target.purpose, RestoreOffsets):
        return asked_by(target.purpose, Journal(paths.journal_directory()), target.topic)
    return Asked(target.purpose or AllKeys(target.name), target.topic)


def engine_of(session: Session, sources: Sources) -> Engine:
    """The engine that the person chose with ``--engine``, or that the size of the global offsets topic asks for."""
    choice = Choice(session.engine)
    if choice is Choice.LOCAL or not wants_spark(
        choice, sources.kafka, sources.offsets_topic, installed=spark_session.installed()
    ):
        return Local()
    spark_session.require()
    return session.spark


def check_whole(subjects: Sequence[ConnectorState]) -> None:
    """Raises ``ConnectctlError`` where not all offsets of the connectors can be seen: nothing may be made of the rest."""
    if problems := [at.problem for subject in subjects for at in subject.places if at.problem]:
        raise ConnectctlError("Could not read all offsets", why="; ".join(dict.fromkeys(problems)), code="hidden")


def settled(state: State | None, configured: ConfiguredConnector | None) -> State | None:
    """The verdict on a connector for a plan: one that is to be stopped and has no tasks is at rest, whatever statuses say.

    The steps see for themselves that the last of its tasks has ended.
    """
    stopped = configured is not None and configured.target_state == "STOPPED" and configured.task_count == 0
    return State.STOPPED if stopped else state


@dataclass(frozen=True)
class Options:
    """What every command that changes offsets takes."""

    stop: bool
    dry_run: bool
    yes: bool
    output: Output


def change(
    session: Session,
    operation: str,
    targets: Sequence[Target],
    options: Options,
    *,
    typed: str | None = None,
    check: Callable[[Looked], None] = lambda looked: None,
    saved: Plan | None = None,
) -> bool:
    """Plan the change, ask once, execute it; says whether the offsets are as requested now.

    ``typed`` is a name that the person must type; ``check`` may raise once it is known which cluster this is. ``saved`` is a
    plan that was made earlier for the same: it is executed as it is. Raises ``Refused`` where it is stale.
    """
    looked, subjects = look_at(session, targets)
    looked.sources.check_proven()
    check(looked)
    pairs = [
        (subject, target.request(subject)) for subject, target in zip(subjects, targets, strict=True) if target.request
    ]
    cluster_id = looked.sources.kafka.cluster_id()
    via = targets[0].via if targets else "kafka"
    changes = plan_changes(
        operation, cluster_id, pairs, stop=options.stop, group_id=looked.group_id, view=looked.view, via=via
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
    records = partial(show_records, changes, to_stderr=True)
    perform(session, looked, changes, [s.name for s, _ in pairs], options, records, typed, f"source offsets of {typed}")
    return True


def _writes(writes: Collection[RecordChange], output: Output) -> list[Any]:
    """The records of a plan as scripts get them: of many, as JSON, some thousands at a time."""
    if output is Output.JSON and len(writes) > 1:
        return Flow(map(EncodedItems, write_texts(writes)))
    return list(map(write_as_json, writes))


def perform(
    session: Session,
    looked: Looked,
    changes: Changes | GroupChanges,
    names: Sequence[str],
    options: Options,
    records: Callable[[], None],
    typed: str | None,
    deleted: str,
) -> None:
    """Show ``records``, ask, and execute the plan; ``deleted`` says what goes where the person types ``typed``."""
    plan, output = changes.plan, options.output
    data: dict[str, Any] = {"operation": plan.operation, "clusterId": plan.cluster_id}
    data |= {"run": None, "recordsPlanned": len(changes.writes), "results": []}
    if not plan.steps:
        terminal.emit("OffsetsResult", data, output, lambda wide: terminal.say("Nothing to do."))
        return
    journal = Journal(paths.journal_directory())
    report_interrupted(journal, plan.cluster_id, looked.group_id)
    ask(session, plan, output, records, yes=options.yes, typed=deleted, name=typed)
    run = journal.begin_plan(plan, names)
    results = carry_out(context_of(session, looked, journal), plan.steps, run, journal)

    def table(wide: bool) -> None:
        for result in results:
            terminal.say(apply.line_of(result))
        terminal.say(f"Undo it with: connectctl offsets undo {run.id}")

    data |= {"run": run.id, "results": [result.as_json() for result in results]}
    terminal.emit("OffsetsResult", data, output, table)


def context_of(session: Session, looked: Looked, journal: Journal) -> OffsetContext:
    """What the steps work with."""
    return OffsetContext(
        looked.calls,
        session.timeout,
        sources=looked.sources,
        group_id=looked.group_id,
        journal=journal,
        engine=looked.engine,
        facts=lambda: looked.sources.facts(looked.group_id),
        groups=lambda: session.group_offsets,
        lock=session.cluster_lock,
    )


def carry_out(context: OffsetContext, steps: Sequence[Any], run: Run, journal: Journal, *, start: int = 0) -> list[Any]:
    """Do the steps from ``start`` on, telling of each on a terminal."""
    undoes = undone_by(steps)
    return execute(steps, context, journal, run, lock=context.lock, on_step=apply.announce, start=start, undoes=undoes)


def report_interrupted(journal: Journal, cluster_id: str, group_id: str) -> None:
    """Say on standard error that earlier runs did not end well."""
    for run in journal.unfinished_runs(cluster_id, group_id):
        if not run.operation.startswith(("offsets ", "upgrade")):
            continue
        back = "connectctl upgrade abort" if run.operation == "upgrade" else "connectctl offsets undo"
        terminal.note(
            f"warning: the run {run.id} ({run.operation} {', '.join(run.subjects)}) did not end. "
            f"To continue: connectctl runs resume {run.id}, or {back} {run.id}",
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
    """Ask whether to carry out ``plan``, after showing its ``records``. Raises ``Refused``.

    Where all of what ``typed`` says are to be deleted, the person types ``name``.
    """
    if not yes and apply.somebody_is_there():
        records()
    if name is not None and not yes and apply.somebody_is_there():
        answer = typer.prompt(f"All {typed} will be deleted. Type its name to continue", err=True)
        if answer.strip() != name:
            raise Refused("Not confirmed; nothing was done", code="not-confirmed")
        yes = True
    apply.confirm(session, plan, output in (Output.TABLE, Output.WIDE), yes=yes)


def show(changes: Changes) -> None:
    """A plan for people: its steps, what would be written, where the policies disagree."""
    for line in apply.summary(changes.plan):
        terminal.say(line)
    if not changes.plan.steps:
        terminal.say("  Nothing to do.")
    show_records(changes)


def show_records(changes: Changes, *, to_stderr: bool = False) -> None:
    """What would be written over what, and the conflicts."""
    say = terminal.note if to_stderr else terminal.say
    for write in map(write_as_json, islice(changes.writes, SHOWN)):
        before, after = write["before"] or "nothing", write["after"] or "a tombstone"
        say(addresses_masked(f"  {write['topic']}  {write['key']}: {before} -> {after}"))
    if len(changes.writes) > SHOWN:
        say(f"  … and {len(changes.writes) - SHOWN:,} more records; --dry-run -o json has them all.")
    for conflict in changes.conflicts[:SHOWN]:
        sides = f"global {conflict.global_ or 'a tombstone'}, dedicated {conflict.dedicated or 'a tombstone'}"
        say(addresses_masked(f"  {conflict.key}: {sides}; taken: {conflict.taken}, because {conflict.why}"))

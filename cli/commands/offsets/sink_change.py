"""Changes of committed offsets of sinks' groups: look, plan, ask once, carry out with the journal, say how to undo it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from connectctl.cli import apply
from connectctl.cli.commands.offsets import execution
from connectctl.cli.commands.offsets.sources import PATIENCE, sources_of
from connectctl.cli.output import terminal
from connectctl.cli.saved_plan import check_fresh
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.operations.connectors.observe import see, with_health
from connectctl.ops.operations.offsets.engine import Local
from connectctl.ops.operations.sink_offsets.changes import GroupChange
from connectctl.ops.operations.sink_offsets.observe import offsets_of_connector, offsets_of_group, sinks_among
from connectctl.ops.operations.sink_offsets.planning import GroupChanges, GroupState, plan_groups

if TYPE_CHECKING:
    from connectctl.cli.commands.offsets.execution import Looked, Options
    from connectctl.cli.session import Session
    from connectctl.ops.core.plan import Plan

SHOWN = 20
"""Offsets of a plan that are shown; all are in ``-o json``."""


@dataclass(frozen=True)
class GroupTarget:
    """What is requested for one group: that of the connector ``name``, or the group ``name`` with ``connector`` False."""

    name: str
    change: GroupChange
    connector: bool = True


def look_at_groups(session: Session, targets: Sequence[GroupTarget]) -> tuple[Looked, list[GroupState]]:
    """The groups as they are now. Raises ``BadInput`` for what is not a sink connector."""
    sources, group, _ = sources_of(session, PATIENCE)
    calls = session.connect_to(group)
    looked = execution.Looked(sources, calls, group.id, Local())
    named = [target.name for target in targets if target.connector]
    if not named:
        return looked, [_group(session, target) for target in targets]
    facts = sources.facts(group.id)
    if facts.configured is None:
        raise ConnectctlError("The config topic could not be read to its end", why="an open transaction blocks it")
    configured = {connector.name: connector for connector in sinks_among(named, facts.configured)}
    seen = see(calls, sources.kafka, group, session.named_topics, lambda: facts) if group.members else None
    states = {j.name: j.verdict.state for j in (seen.connectors if seen else with_health([], group))}
    version, up = sources.workers().version, bool(group.members)
    found = []
    for target in targets:
        if not target.connector:
            found.append(_group(session, target))
            continue
        connector = configured[target.name]
        topics = target.change.topics
        offsets = offsets_of_connector(session.group_offsets, session.kafka, connector, topics, stable=True)
        holders, _ = execution.runs_of(sources, group.id, target.name)
        state = execution.settled(states.get(target.name), connector)
        found.append(GroupState(offsets, state, up, version, holders))
    return looked, found


def _group(session: Session, target: GroupTarget) -> GroupState:
    topics = target.change.topics
    return GroupState(offsets_of_group(session.group_offsets, session.kafka, target.name, topics, stable=True))


def change_groups(
    session: Session,
    operation: str,
    targets: Sequence[GroupTarget],
    options: Options,
    *,
    via: str | None = None,
    typed: str | None = None,
    undoes: str | None = None,
    check: Callable[[Looked], None] = lambda looked: None,
    saved: Plan | None = None,
) -> bool:
    """As ``execution.change``, for groups; ``undoes`` is the run that is taken back."""
    if options.stop and saved is None and not all(target.connector for target in targets):
        raise BadInput("--stop requires a connector, not a group", next_step="Stop the members of the group yourself.")
    looked, states = look_at_groups(session, targets)
    check(looked)
    pairs = [(state, target.change) for state, target in zip(states, targets, strict=True)]
    cluster_id = looked.sources.kafka.cluster_id()
    changes = plan_groups(operation, cluster_id, looked.group_id, pairs, stop=options.stop, via=via, undoes=undoes)
    if saved is not None:
        check_fresh(saved, changes.plan)
    if options.dry_run:
        terminal.emit("SinkOffsetsPlan", changes.as_json(), options.output, lambda wide: show_plan(changes))
        return False
    for warning in changes.warnings if changes.plan.steps else ():
        terminal.note(f"warning: {warning}", style="yellow")
    records, names = partial(show_offsets, changes, terminal.note), [target.name for target in targets]
    execution.perform(session, looked, changes, names, options, records, typed, f"committed offsets of {typed}")
    return True


def show_plan(changes: GroupChanges) -> None:
    """A plan for people: its steps, and what would be committed over what."""
    for line in apply.summary(changes.plan):
        terminal.say(line)
    if not changes.plan.steps:
        terminal.say("  Nothing to do.")
    show_offsets(changes, terminal.say)
    for warning in changes.warnings:
        terminal.say(f"  warning: {warning}")


def show_offsets(changes: GroupChanges, say: Callable[[str], None]) -> None:
    """What would be committed over what."""
    for group, write in changes.writes[:SHOWN]:
        before, after = ("nothing" if offset is None else offset for offset in (write.before, write.after))
        say(f"  {group}  {write.place}: {before} -> {after}")
    if len(changes.writes) > SHOWN:
        say(f"  … and {len(changes.writes) - SHOWN:,} more offsets; --dry-run -o json has them all.")

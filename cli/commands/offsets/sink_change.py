"""Executes changes of sinks' committed offsets: observe, plan, confirm, run with the journal, print how to undo it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from connectctl.cli import apply
from connectctl.cli.commands.offsets import execution
from connectctl.cli.commands.offsets.sources import PATIENCE, sources_of
from connectctl.cli.options import OffsetOptions
from connectctl.cli.output import terminal
from connectctl.cli.plan_file import check_fresh
from connectctl.cli.session import Session
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.offsets.engine import Local
from connectctl.ops.operations.offsets.prepare import OffsetAccess
from connectctl.ops.operations.sink_offsets.changes import GroupTarget
from connectctl.ops.operations.sink_offsets.planning import GroupChanges, plan_groups
from connectctl.ops.operations.sink_offsets.prepare import observe_groups


def change_groups(
    session: Session,
    operation: str,
    targets: Sequence[GroupTarget],
    options: OffsetOptions,
    *,
    via: str | None = None,
    typed: str | None = None,
    undoes: str | None = None,
    check: Callable[[OffsetAccess], None] = lambda access: None,
    saved: Plan | None = None,
) -> bool:
    """Do the same as ``execution.change`` for groups; ``undoes`` is the run to undo."""
    if options.stop and saved is None and not all(target.connector for target in targets):
        raise BadInput("--stop requires a connector, not a group", next_step="Stop the members of the group yourself.")
    sources, group, _ = sources_of(session, PATIENCE)
    access = OffsetAccess(sources, session.connect_to(group), group, session.named_topics, Local())
    states = observe_groups(access, session.group_offsets, targets)
    check(access)
    pairs = [(state, target.change) for state, target in zip(states, targets, strict=True)]
    cluster_id = access.sources.kafka.cluster_id()
    changes = plan_groups(operation, cluster_id, access.group_id, pairs, stop=options.stop, via=via, undoes=undoes)
    if saved is not None:
        check_fresh(saved, changes.plan)
    if options.dry_run:
        terminal.emit("SinkOffsetsPlan", changes.as_json(), options.output, lambda wide: show_plan(changes))
        return False
    execution.warn(changes.warnings if changes.plan.steps else ())
    records, names = partial(show_offsets, changes, terminal.note), [target.name for target in targets]
    execution.perform(session, access, changes, names, options, records, typed, f"committed offsets of {typed}")
    return True


def show_plan(changes: GroupChanges) -> None:
    """Print a plan: its steps, and the offsets to commit with their former values."""
    apply.print_plan(changes.plan)
    show_offsets(changes, terminal.say)
    for warning in changes.warnings:
        terminal.say(f"  warning: {warning}")


def show_offsets(changes: GroupChanges, say: Callable[[str], None]) -> None:
    """Print the offsets to commit with their former values."""
    for group, write in changes.writes[: execution.SHOWN]:
        before, after = ("nothing" if offset is None else offset for offset in (write.before, write.after))
        say(f"  {group}  {write.place}: {before} -> {after}")
    if len(changes.writes) > execution.SHOWN:
        say(f"  … and {len(changes.writes) - execution.SHOWN:,} more offsets; --dry-run -o json has them all.")

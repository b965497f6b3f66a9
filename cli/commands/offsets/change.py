"""``connectctl offsets merge|copy|set|reset|restore|undo``: every change a plan that is backed up, verified, reversible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import completed_names
from connectctl.cli.options import (
    ConnectorArgument,
    DryRunOption,
    GroupOption,
    OptionalConnectorArgument,
    OutputOption,
    StopOption,
    YesOption,
)
from connectctl.cli.output.terminal import Output
from connectctl.ops.config import paths
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets import changes
from connectctl.ops.operations.offsets.engine_choice import THRESHOLD, Choice
from connectctl.ops.operations.sink_offsets.backup_file import saved_offsets
from connectctl.ops.operations.sink_offsets.changes import GroupChange, resetting, restoring, setting

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.operations.offsets.planning import ConnectorState


class Via(StrEnum):
    """How a change is written."""

    KAFKA = "kafka"
    REST = "rest"


Names = Annotated[list[str], typer.Argument(metavar="CONNECTOR...", autocompletion=completed_names.connectors)]
ViaOption = Annotated[
    Via | None,
    typer.Option(
        help="kafka: write the topics, commit for a sink's group; rest: ask the workers, which are 3.6 or newer. "
        "By default kafka for sources, and for sinks rest where workers can.",
        metavar="HOW",
    ),
]


def _remember(ctx: typer.Context, engine: Choice) -> Choice:
    ctx.obj.engine = engine.value
    return engine


EngineOption = Annotated[
    Choice,
    typer.Option(
        "--engine",
        callback=_remember,
        metavar="ENGINE",
        help=f"Who reads the topics: local, spark, or auto: spark from {THRESHOLD:,} records on, if it is installed.",
    ),
]


def merge(
    ctx: typer.Context,
    connectors: Names,
    into: Annotated[changes.Side, typer.Option(help="global or dedicated.", metavar="SIDE")],
    policy: Annotated[
        changes.Policy | None,
        typer.Option(
            help="Which side wins: effective (KIP-618, default), newest, global or dedicated.", metavar="POLICY"
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="With --into dedicated: the connector's own topic from now on.", metavar="TOPIC")
    ] = None,
    engine: EngineOption = Choice.AUTO,
    unset_topic: Annotated[
        bool, typer.Option("--unset-topic", help="With --into global: the connector has no own topic any more.")
    ] = False,
    stop: StopOption = False,
    via: ViaOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Bring a connector's offsets together in its dedicated topic, or in the global one.

    \b
    Examples:
      connectctl offsets merge orders --into dedicated --stop
      connectctl offsets merge orders --into dedicated --topic orders-offsets --stop
      connectctl offsets merge orders --into global --unset-topic --stop
      connectctl offsets merge orders --into global --dry-run

    Workers do not fall back to the global topic, so a connector that gets its own topic starts over unless that topic
    is seeded first: --into dedicated does it. A dedicated topic that looks stale stops the plan until --policy says
    which side is right.
    """
    from connectctl.cli.commands.offsets.execution import Target, change

    if topic and into is changes.Side.GLOBAL:
        raise BadInput("--topic goes with --into dedicated")
    if unset_topic and into is changes.Side.DEDICATED:
        raise BadInput("--unset-topic goes with --into global")
    if topic and len(connectors) > 1:
        raise BadInput("--topic names the topic of one connector", next_step="Merge one connector at a time.")
    session: Session = ctx.obj

    def hint(name: str) -> changes.MergeOffsets:
        return changes.MergeOffsets(name, into.value, (policy or changes.Policy.EFFECTIVE).value)

    def request(subject: ConnectorState) -> changes.OffsetRequest:
        own = topic or next((at.topic for at in subject.places if at.side is changes.Side.DEDICATED), None)
        if own is None:
            hint = "Name one: --topic NAME." if into is changes.Side.DEDICATED else "Its offsets are in the global one."
            raise BadInput(f"{subject.name} has no dedicated offsets topic", next_step=hint)
        moved = own if into is changes.Side.DEDICATED or unset_topic else None
        chosen = policy or changes.Policy.EFFECTIVE
        return changes.MergeOffsets(subject.name, into.value, chosen.value, policy is not None, moved)

    change(
        session,
        "offsets merge",
        [Target(n, request, topic, via=(via or Via.KAFKA).value, purpose=hint(n)) for n in connectors],
        stop,
        dry_run,
        yes,
        output,
    )


def copy(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", autocompletion=completed_names.connectors)],
    target: Annotated[str, typer.Argument(metavar="TO", autocompletion=completed_names.connectors)],
    from_context: Annotated[
        str | None, typer.Option(help="The context that FROM is in, if it is another cluster.", metavar="CONTEXT")
    ] = None,
    stop: StopOption = False,
    via: ViaOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give a connector the effective offsets of another: to rename or to move it.

    \b
    Examples:
      connectctl offsets copy orders orders-v2
      connectctl offsets copy orders orders --from-context old-cluster

    TO may not exist yet: its offsets wait for it. Source partitions that only TO has stay as they are.
    """
    from connectctl.cli.commands.offsets.execution import Target, change, check_whole, look_at
    from connectctl.ops.operations.offsets.record_changes import effective_entries

    session: Session = ctx.obj
    there = session if from_context is None else session.beside(from_context)
    if there is session and source == target:
        raise BadInput("FROM and TO are the same connector")
    _, (origin,) = look_at(there, [Target(source, None)])
    check_whole([origin])
    entries = effective_entries(origin.places)
    if not entries:
        raise BadInput(f"{source} has no source offsets to copy", next_step="See connectctl offsets show.")

    def request(subject: ConnectorState) -> changes.OffsetRequest:
        return changes.CopyOffsets(subject.name, source, entries)

    change(
        session,
        "offsets copy",
        [Target(target, request, new=True, via=(via or Via.KAFKA).value)],
        stop,
        dry_run,
        yes,
        output,
    )


def set_(
    ctx: typer.Context,
    file: Annotated[Path, typer.Option("--file", "-f", help="JSON or YAML; - for standard input.", metavar="FILE")],
    connector: OptionalConnectorArgument = None,
    group: GroupOption = None,
    stop: StopOption = False,
    via: ViaOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Set offsets from a file; partitions that it does not name stay as they are.

    \b
    Examples:
      echo '{"offsets": [{"partition": {"table": "t"}, "offset": {"lsn": 7}}]}' | connectctl offsets set orders -f -
      connectctl offsets show orders -o json | connectctl offsets set orders-v2 -f -
      connectctl offsets show archive -o json > archive.json && connectctl offsets set archive -f archive.json

    Takes what GET /connectors/…/offsets returns, and what offsets show -o json prints: of a source, the effective offsets.
    An offset of null deletes. A sink's partition is {"kafka_topic": …, "kafka_partition": …}, its offset
    {"kafka_offset": …}; its group must have no members.
    """
    from connectctl.ops.operations.offsets.input_file import read_entries

    name, is_group = _named(connector, group)
    entries = read_entries(file, name)

    def request(subject: ConnectorState) -> changes.OffsetRequest:
        return changes.SetOffsets(subject.name, entries)

    target = Either(name, is_group, request, lambda: setting(entries))
    _either(ctx.obj, "offsets set", target, stop, dry_run, yes, output, new=True, via=via)


def reset(
    ctx: typer.Context,
    connector: OptionalConnectorArgument = None,
    partition: Annotated[
        list[str] | None, typer.Option(help="A partition as JSON; all if none is given.", metavar="JSON")
    ] = None,
    group: GroupOption = None,
    stop: StopOption = False,
    via: ViaOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete offsets, so that a connector starts over. For all of them the connector's name is asked for.

    \b
    Examples:
      connectctl offsets reset orders --partition '{"table": "public.orders"}'
      connectctl offsets reset orders --stop
      connectctl offsets reset archive --partition '{"kafka_topic": "t", "kafka_partition": 0}'
      connectctl offsets reset --group connect-transform

    Also where the workers' own DELETE fails: exactly-once with a dedicated topic (Kafka 3.8 to 4.3). A sink then begins by
    its auto.offset.reset.
    """
    from connectctl.ops.operations.offsets.input_file import partition_text

    chosen = None if not partition else tuple(map(partition_text, partition))
    name, is_group = _named(connector, group)
    target = Either(name, is_group, lambda s: changes.ResetOffsets(s.name, chosen), lambda: resetting(chosen))
    _either(
        ctx.obj, "offsets reset", target, stop, dry_run, yes, output, typed=name if chosen is None else None, via=via
    )


def restore(
    ctx: typer.Context,
    connector: ConnectorArgument,
    file: Annotated[Path, typer.Option("--file", "-f", help="What offsets backup wrote.", metavar="FILE")],
    stop: StopOption = False,
    engine: EngineOption = Choice.AUTO,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a connector's offset records what they are in a backup, byte for byte; others become tombstones.

    \b
    Examples:
      connectctl offsets restore orders -f orders.jsonl --stop

    A sink's group gets exactly the offsets of the backup again.
    """
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.operations.offsets import topic_dump

    # What the plan was made from must be there when it is carried out, or taken up again. What is wrong is told of the
    # person's file, and not of the journal's copy.
    journal = Journal(paths.journal_directory())
    kept = journal.store_artifact(topic_dump.checked(file))
    request = changes.RestoreOffsets(connector, kept)
    lines = topic_dump.lines_of(journal.directory / kept)
    target = Either(
        connector,
        False,
        lambda s: request,
        lambda: restoring(saved_offsets(lines, connector, topic_dump.name_of(file))),
    )
    _either(ctx.obj, "offsets restore", target, stop, dry_run, yes, output, purpose=request)


@dataclass(frozen=True)
class Either:
    """A change of the offsets of a source, or of a sink's group: which of both ``name`` is comes out when it is read.

    ``is_group``: it is a group's name, and no connector's.
    """

    name: str
    is_group: bool
    request: Callable[[ConnectorState], changes.OffsetRequest]
    change: Callable[[], GroupChange]


def _named(connector: str | None, group: str | None) -> tuple[str, bool]:
    """The connector's name or the group's, and which it is. Raises ``BadInput`` for both and for none."""
    if (connector is None) is (group is None):
        raise BadInput("A connector or --group GROUP is needed, and not both", next_step="Give one of them.")
    return connector or group or "", connector is None


def _either(
    session: Session,
    operation: str,
    target: Either,
    stop: bool,
    dry_run: bool,
    yes: bool,
    output: Output,
    *,
    new: bool = False,
    typed: str | None = None,
    via: Via | None = None,
    purpose: changes.RestoreOffsets | None = None,
) -> None:
    from connectctl.cli.commands.offsets import execution, sink_change

    if not target.is_group:
        source = execution.Target(target.name, target.request, new=new, via=(via or Via.KAFKA).value, purpose=purpose)
        try:
            execution.change(session, operation, [source], stop, dry_run, yes, output, typed=typed)
            return
        except BadInput as e:
            if e.code != "sink":
                raise
    sink_change.change_groups(
        session,
        operation,
        [sink_change.GroupTarget(target.name, target.change(), not target.is_group)],
        stop=stop,
        via=via and via.value,
        dry_run=dry_run,
        yes=yes,
        output=output,
        typed=typed,
    )


def register(app: typer.Typer) -> None:
    """Add the commands to ``connectctl offsets``."""
    app.command("merge")(merge)
    app.command("copy")(copy)
    app.command("set")(set_)
    app.command("reset")(reset)
    app.command("restore")(restore)

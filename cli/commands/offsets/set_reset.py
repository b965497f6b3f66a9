"""``connectctl offsets set|reset|restore`` of a source, or of a sink's group, decided when the
connector is read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import flow
from connectctl.cli.commands.offsets.change import EngineOption, ViaOption
from connectctl.cli.options import (
    ConnectorArgument,
    ForcedOffsetOptions,
    GroupOption,
    OffsetOptions,
    OptionalConnectorArgument,
    with_options,
)
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets import changes
from connectctl.ops.operations.offsets.engine_choice import Choice
from connectctl.ops.operations.offsets.target import OffsetTarget
from connectctl.ops.operations.sink_offsets.changes import (
    GroupChange,
    GroupTarget,
    resetting,
    restoring,
    setting,
)

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.operations.offsets.operations import OffsetsOperation
    from connectctl.ops.operations.offsets.planning import ConnectorState


@with_options
def set_(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Option("--file", "-f", help="JSON or YAML; - for standard input.", metavar="FILE"),
    ],
    connector: OptionalConnectorArgument = None,
    group: GroupOption = None,
    via: ViaOption = None,
    options: ForcedOffsetOptions = ForcedOffsetOptions(),
) -> None:
    """Set offsets from a file; partitions that it does not name are not changed.

    \b
    Examples:
      echo '{"offsets": [{"partition": {"table": "t"}, "offset": {"lsn": 7}}]}' | connectctl offsets set orders -f -
      connectctl offsets show orders -o json | connectctl offsets set orders-v2 -f -
      connectctl offsets show archive -o json > archive.json && connectctl offsets set archive -f archive.json

    Takes what GET /connectors/…/offsets returns, and what offsets show -o json prints: of a source,
    the effective offsets. An offset of null deletes. A sink's partition is {"kafka_topic": …,
    "kafka_partition": …}, its offset {"kafka_offset": …}; its group must have no members. Offsets
    that the source connector would refuse are refused: those of other members, types or ranges than
    Kafka's own connectors accept, or than the connector has stored itself.
    """
    from connectctl.ops.operations.offsets import operations
    from connectctl.ops.operations.offsets.input_file import read_entries

    named = _named(connector, group)
    entries = read_entries(file, named[0])

    def request(subject: ConnectorState) -> changes.OffsetRequest:
        return changes.SetOffsets(subject.name, entries, options.force)

    _change(
        ctx.obj,
        operations.SetOffsets(),
        named,
        request,
        lambda: setting(entries),
        options,
        new=True,
        via=via,
    )


@with_options
def reset(
    ctx: typer.Context,
    connector: OptionalConnectorArgument = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(help="A partition as JSON; all if none is given.", metavar="JSON"),
    ] = None,
    group: GroupOption = None,
    via: ViaOption = None,
    options: OffsetOptions = OffsetOptions(),
) -> None:
    """Delete offsets, so that a connector starts over. For all offsets the connector's name must be
    typed.

    \b
    Examples:
      connectctl offsets reset orders --partition '{"table": "public.orders"}'
      connectctl offsets reset orders --stop
      connectctl offsets reset archive --partition '{"kafka_topic": "t", "kafka_partition": 0}'
      connectctl offsets reset --group connect-transform

    Also where the workers' own DELETE fails: exactly-once with a dedicated topic (Kafka 3.8 to
    4.3). A sink then starts according to its auto.offset.reset.
    """
    from connectctl.ops.operations.offsets import operations
    from connectctl.ops.operations.offsets.input_file import partition_text

    chosen = None if not partition else tuple(map(partition_text, partition))
    named = _named(connector, group)

    def request(subject: ConnectorState) -> changes.OffsetRequest:
        return changes.ResetOffsets(subject.name, chosen)

    typed = named[0] if chosen is None else None
    _change(
        ctx.obj,
        operations.ResetOffsets(),
        named,
        request,
        lambda: resetting(chosen),
        options,
        typed=typed,
        via=via,
    )


@with_options
def restore(
    ctx: typer.Context,
    connector: ConnectorArgument,
    file: Annotated[
        Path, typer.Option("--file", "-f", help="Backup that offsets backup wrote.", metavar="FILE")
    ],
    engine: EngineOption = Choice.AUTO,
    options: ForcedOffsetOptions = ForcedOffsetOptions(),
) -> None:
    """Restore a connector's offset records from a backup, byte for byte; others become tombstones.

    \b
    Examples:
      connectctl offsets restore orders -f orders.jsonl --stop

    A sink's group gets exactly the offsets of the backup again.
    """
    from connectctl.ops.operations.offsets import dump_lines, operations
    from connectctl.ops.operations.sink_offsets.steps import saved_offsets

    # The journal keeps a copy, because a plan may be executed or resumed later. Errors are reported
    # for the user's file, not for the copy.
    journal = ctx.obj.journal()
    kept = journal.store_artifact(dump_lines.checked(file))
    request = changes.RestoreBackup(connector, kept, force=options.force)
    lines = dump_lines.texts_of(journal.directory / kept)

    def change() -> GroupChange:
        return restoring(saved_offsets(lines, connector, dump_lines.name_of(file)))

    _change(
        ctx.obj,
        operations.RestoreOffsets(),
        (connector, False),
        lambda s: request,
        change,
        options,
        purpose=request,
    )


def _named(connector: str | None, group: str | None) -> tuple[str, bool]:
    """Return the name, and whether it is a group's. Raises ``BadInput`` unless exactly one of both
    is given.
    """
    if (connector is None) is (group is None):
        raise BadInput(
            "A connector or --group GROUP is needed, and not both", next_step="Give one of them."
        )
    return connector or group or "", connector is None


def _change(
    session: Session,
    operation: OffsetsOperation,
    named: tuple[str, bool],
    request: Callable[[ConnectorState], changes.OffsetRequest],
    change: Callable[[], GroupChange],
    options: OffsetOptions,
    *,
    new: bool = False,
    typed: str | None = None,
    via: str | None = None,
    purpose: changes.RestoreBackup | None = None,
) -> None:
    """Change offsets of a source by ``request``, or of a sink's group by ``change``.
    Whether a ``named`` connector is a source or a sink is decided when it is read.
    """
    from connectctl.ops.operations.offsets.operations import OffsetsRequest

    name, is_group = named
    source = OffsetTarget(name, request, new=new, via=via or "kafka", purpose=purpose)
    wanted = OffsetsRequest(
        () if is_group else (source,),
        lambda: (GroupTarget(name, change(), not is_group),),
        stop=options.stop,
        via=via,
        typed=typed,
    )
    flow.perform(session, operation, wanted, options)

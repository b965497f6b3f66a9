"""``connectctl offsets merge|copy``: every change is a plan with backup, verification and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from connectctl.cli import completed_names, flow
from connectctl.cli.options import ForcedOffsetOptions, OffsetOptions, with_options
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets import changes
from connectctl.ops.operations.offsets.engine_choice import Choice
from connectctl.ops.operations.offsets.target import OffsetTarget

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.operations.offsets.planning import ConnectorState


Names = Annotated[
    list[str], typer.Argument(metavar="CONNECTOR...", autocompletion=completed_names.connectors)
]
ViaOption = Annotated[
    Literal["kafka", "rest"] | None,
    typer.Option(
        help="kafka: write the topics, commit for a sink's group; rest: ask the workers, which "
        "are 3.6 or newer. By default kafka for sources, and for sinks rest where workers "
        "can.",
        metavar="HOW",
        autocompletion=completed_names.one_of("kafka", "rest"),
    ),
]


def _store_engine(ctx: typer.Context, engine: Choice) -> Choice:
    ctx.obj.engine = engine.value
    return engine


EngineOption = Annotated[
    Choice,
    typer.Option(
        "--engine",
        callback=_store_engine,
        metavar="ENGINE",
        autocompletion=completed_names.one_of("auto", "local", "spark"),
        help="Engine that reads the topics: local, spark, or auto (spark if installed, for what "
        "memory might not hold).",
    ),
]


@with_options
def merge(
    ctx: typer.Context,
    connectors: Names,
    into: Annotated[Side, typer.Option(help="global or dedicated.", metavar="SIDE")],
    policy: Annotated[
        changes.MergePolicy | None,
        typer.Option(
            help="Side that takes precedence: effective (KIP-618, default), newest, global or "
            "dedicated.",
            metavar="POLICY",
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            help="With --into dedicated: the connector's own topic from now on.", metavar="TOPIC"
        ),
    ] = None,
    engine: EngineOption = Choice.AUTO,
    unset_topic: Annotated[
        bool,
        typer.Option(
            "--unset-topic",
            help="With --into global: the connector no longer has a topic of its own.",
        ),
    ] = False,
    via: ViaOption = None,
    options: OffsetOptions = OffsetOptions(),
) -> None:
    """Merge a connector's offsets into its dedicated topic, or into the global one.

    \b
    Examples:
      connectctl offsets merge orders --into dedicated --stop
      connectctl offsets merge orders --into dedicated --topic orders-offsets --stop
      connectctl offsets merge orders --into global --unset-topic --stop
      connectctl offsets merge orders --into global --dry-run

    Workers do not fall back to the global topic, so a connector that gets its own topic starts over
    unless that topic is seeded first: --into dedicated does it. A dedicated topic that looks stale
    stops the plan until --policy selects a side.
    """
    from connectctl.ops.operations.offsets import operations

    if topic and into is Side.GLOBAL:
        raise BadInput("--topic requires --into dedicated")
    if unset_topic and into is Side.DEDICATED:
        raise BadInput("--unset-topic requires --into global")
    if topic and len(connectors) > 1:
        raise BadInput(
            "--topic requires exactly one connector", next_step="Merge one connector at a time."
        )
    chosen = (policy or changes.MergePolicy.EFFECTIVE).value

    def request(subject: ConnectorState) -> changes.OffsetRequest:
        own = topic or next(
            (at.topic for at in subject.topic_states if at.side is Side.DEDICATED), None
        )
        if own is None:
            hint = (
                "Name one: --topic NAME."
                if into is Side.DEDICATED
                else "Its offsets are in the global one."
            )
            raise BadInput(f"{subject.name} has no dedicated offsets topic", next_step=hint)
        moved = own if into is Side.DEDICATED or unset_topic else None
        return changes.MergeOffsets(subject.name, into.value, chosen, policy is not None, moved)

    hints = [changes.MergeOffsets(name, into.value, chosen) for name in connectors]
    targets = [
        OffsetTarget(hint.connector, request, topic, via=via or "kafka", purpose=hint)
        for hint in hints
    ]
    flow.perform(
        ctx.obj,
        operations.MergeOffsets(),
        operations.OffsetsRequest(targets, stop=options.stop),
        options,
    )


@with_options
def copy(
    ctx: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="FROM", autocompletion=completed_names.connectors)
    ],
    target: Annotated[str, typer.Argument(metavar="TO", autocompletion=completed_names.connectors)],
    from_context: Annotated[
        str | None,
        typer.Option(
            help="Context of FROM, if it is on another cluster.",
            metavar="CONTEXT",
            autocompletion=completed_names.contexts,
        ),
    ] = None,
    via: ViaOption = None,
    options: ForcedOffsetOptions = ForcedOffsetOptions(),
) -> None:
    """Copy the effective offsets of a connector to another connector: to rename or to move it.

    \b
    Examples:
      connectctl offsets copy orders orders-v2
      connectctl offsets copy orders orders --from-context old-cluster

    TO need not exist yet. Source partitions that only TO has are not changed.
    """
    from connectctl.ops.operations.offsets import operations
    from connectctl.ops.operations.offsets.prepare import entries_to_copy
    from connectctl.ops.operations.offsets.sources import observe_connectors

    session: Session = ctx.obj
    source_session = session if from_context is None else session.in_context(from_context)
    if source_session is session and source == target:
        raise BadInput("FROM and TO are the same connector")
    _, (origin,) = observe_connectors(source_session, [OffsetTarget(source, None)])
    entries = entries_to_copy(origin)

    def request(subject: ConnectorState) -> changes.OffsetRequest:
        return changes.CopyOffsets(subject.name, source, entries, from_context, options.force)

    targets = [OffsetTarget(target, request, new=True, via=via or "kafka")]
    flow.perform(
        session,
        operations.CopyOffsets(),
        operations.OffsetsRequest(targets, stop=options.stop),
        options,
    )

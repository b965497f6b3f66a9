"""``connectctl offsets show``: the offsets of sources and sinks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.options import ConnectorsArgument, GroupOption, PatienceOption
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.cli.views import offsets as views
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.wait import OPEN_TRANSACTIONS_PATIENCE

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.snapshot import OffsetsQuery


class OffsetsOutput(StrEnum):
    """Values of ``-o``: those of every list, and ``configmap``."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    CONFIGMAP = "configmap"


def show(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    global_only: Annotated[
        bool, typer.Option("--global-only", help="Read only the workers' global topic.")
    ] = False,
    dedicated_only: Annotated[
        bool, typer.Option("--dedicated-only", help="Read only the connectors' dedicated topics.")
    ] = False,
    all_generations: Annotated[
        bool,
        typer.Option(
            "--all-generations", help="Also show records that newer ones have superseded."
        ),
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", metavar="DUMP", help="Read saved topics (JSON lines), - for stdin."
        ),
    ] = None,
    patience: PatienceOption = OPEN_TRANSACTIONS_PATIENCE,
    limit: Annotated[
        int,
        typer.Option(
            metavar="COUNT",
            min=0,
            help="Most source partitions in a table, 0 for all; JSON has all.",
        ),
    ] = 10_000,
    group: GroupOption = None,
    output: Annotated[
        OffsetsOutput,
        typer.Option(
            "--output",
            "-o",
            help="table, wide, json, yaml; name for one name a line; configmap for Strimzi.",
        ),
    ] = OffsetsOutput.TABLE,
) -> None:
    """Show the offset of every source partition, in the global topic, in the dedicated one, and
    the effective one; of a sink, what its consumer group has committed.

    \b
    Examples:
      connectctl offsets show                      every source connector
      connectctl offsets show 'orders-*'           those whose names match
      connectctl offsets show orders -o json       one, for scripts
      connectctl offsets show archive              a sink: committed offsets, and the lag
      connectctl offsets show --group connect-t    a transform's group, without a connector
      connectctl offsets show orders -o configmap  for alterOffsets.fromConfigMap of Strimzi
      connectctl offsets show -f dump.jsonl        from a saved topic, without a cluster
      kcat -C -e -J -b broker:9092 -t connect-offsets | connectctl offsets show -f -

    Reads the topics themselves, so it works with Connect down. EFFECTIVE is what KIP-618 promises a
    task; WORKER READS is what workers really give it, which differs in every release from 3.3 to
    4.3.1: they do not fall back to the global topic. Findings are on standard error, and in
    the JSON. Exit code 1: something could not be read to its end. Tables hide passwords in
    addresses; JSON, which offsets set -f takes, is exact. Offsets are held in memory, and more than
    fit are refused; of named connectors only theirs are held.
    """
    from connectctl.cli.commands.offsets import sink_show
    from connectctl.ops.operations.offsets.snapshot import OffsetsQuery

    form = None if output is OffsetsOutput.CONFIGMAP else Output(output.value)
    if group is not None:
        if connectors or file:
            raise BadInput(
                "--group cannot be combined with connectors or files", next_step="Give one of them."
            )
        sink_show.show_group(ctx.obj, group, form)
        return
    if global_only and dedicated_only:
        raise BadInput(
            "--global-only and --dedicated-only leave nothing to show",
            next_step="Give one of them.",
        )
    query = OffsetsQuery(
        tuple(connectors or ()), not dedicated_only, not global_only, all_generations
    )
    try:
        _show_sources(ctx.obj, query, file, patience, limit, form)
    except BadInput as e:
        if e.code != "sink" or file:
            raise
        sink_show.show_sinks(ctx.obj, query.connectors, form)


def _show_sources(
    session: Session,
    query: OffsetsQuery,
    file: Path | None,
    patience: float,
    limit: int,
    output: Output | None,
) -> None:
    from connectctl.ops.operations.offsets.effective_offsets import assemble

    read_at = datetime.now(UTC)
    with without_collection(ends=True):
        snapshot, cluster = (
            _from_file(session, file, query) if file else _from_cluster(session, query, patience)
        )
        found = assemble(snapshot, query)
        if output is None:
            terminal.documents(views.config_maps(found))
        else:
            data = views.as_json(found, read_at, output) if not output.for_people else {}
            table = partial(views.print_table, found, limit)
            terminal.emit("SourceOffsets", cluster | data, output, table)
    terminal.findings(found.findings)
    if not found.complete:
        raise typer.Exit(1)


def _from_cluster(
    session: Session, query: OffsetsQuery, patience: float
) -> tuple[Any, dict[str, Any]]:
    from connectctl.ops.operations.offsets.observe import observe
    from connectctl.ops.operations.offsets.sources import sources_of

    sources, group, findings = sources_of(session, patience)
    snapshot = observe(sources, query)
    snapshot = replace(snapshot, findings=findings + snapshot.findings)
    return snapshot, {"clusterId": sources.kafka.cluster_id(), "groupId": group.id}


def _from_file(session: Session, file: Path, query: OffsetsQuery) -> tuple[Any, dict[str, Any]]:
    from connectctl.ops.operations.offsets import topic_dump

    offsets_topic = session.flags.get("topics.offsets")
    records = topic_dump.read_file(file)
    return topic_dump.snapshot(records, str(file), offsets_topic, query), {
        "clusterId": None,
        "groupId": None,
    }

"""``connectctl offsets``: where sources stand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli.commands.offsets import change, files, set_reset, sink_show
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.options import (
    OPEN_TRANSACTIONS_PATIENCE,
    ConnectorsArgument,
    GroupOption,
    ListOption,
    PatienceOption,
)
from connectctl.cli.output import terminal
from connectctl.cli.output.json_lines import EncodedItems, Flow
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.connect.source_offsets import UNKNOWN, SourceOffset
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.times import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from connectctl.ops.connect.source_offsets import ConnectorOffsets, StoredOffset
    from connectctl.ops.operations.offsets.large_topics import InOrder, Passing
    from connectctl.ops.operations.offsets.plain_records import Rows
    from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, ReadTopic, SourceOffsets

    Answer = SourceOffsets | InOrder

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, help="Show and change offsets.")


change.register(app)
set_reset.register(app)
files.register(app)


@app.callback()
def offsets() -> None:
    """Source offsets: global, dedicated, effective, and what a worker really reads."""


@app.command()
def show(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    global_only: Annotated[bool, typer.Option("--global-only", help="Read only the workers' global topic.")] = False,
    dedicated_only: Annotated[
        bool, typer.Option("--dedicated-only", help="Read only the connectors' dedicated topics.")
    ] = False,
    all_generations: Annotated[
        bool, typer.Option("--all-generations", help="Also show records that newer ones have superseded.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="DUMP", help="Read saved topics (JSON lines), - for stdin.")
    ] = None,
    patience: PatienceOption = OPEN_TRANSACTIONS_PATIENCE,
    limit: Annotated[
        int, typer.Option(metavar="COUNT", min=0, help="Most source partitions in a table, 0 for all; JSON has all.")
    ] = 10_000,
    group: GroupOption = None,
    output: ListOption = Output.TABLE,
) -> None:
    """Show the offset of every source partition, in the global topic, in the dedicated one, and what they add up to; of a
    sink, what its consumer group has committed.

    \b
    Examples:
      connectctl offsets show                      every source connector
      connectctl offsets show 'orders-*'           those whose names match
      connectctl offsets show orders -o json       one, for scripts
      connectctl offsets show archive              a sink: committed offsets, and the lag
      connectctl offsets show --group connect-t    a transform's group, without a connector
      connectctl offsets show -f dump.jsonl        from a saved topic, without a cluster
      kcat -C -e -J -b broker:9092 -t connect-offsets | connectctl offsets show -f -

    Reads the topics themselves, so it works with Connect down. EFFECTIVE is what KIP-618 promises a task; WORKER READS
    is what workers really give it, which differs in every release from 3.3 to 4.3.1: they do not fall back to the
    global topic. Oddities are findings on standard error, and in the JSON. Exit code 1: something could not be read
    to its end. Tables hide passwords in addresses; JSON, which offsets set -f takes, is exact.
    What is too much for memory is sorted in TMPDIR, and JSON written as it is read from there; what is beyond the limit of
    a table is then counted only.
    """
    if group is not None:
        if connectors or file:
            raise BadInput("--group cannot be combined with connectors or files", next_step="Give one of them.")
        sink_show.show_group(ctx.obj, group, output)
        return
    from connectctl.ops.operations.offsets.snapshot import OffsetsQuery

    if global_only and dedicated_only:
        raise BadInput("--global-only and --dedicated-only leave nothing to show", next_step="Give one of them.")
    query = OffsetsQuery(tuple(connectors or ()), not dedicated_only, not global_only, all_generations)
    try:
        _show_sources(ctx.obj, query, file, patience, limit, output)
    except BadInput as e:
        if e.code != "sink" or file:
            raise
        sink_show.show_sinks(ctx.obj, query.connectors, output)


def _show_sources(
    session: Session, query: OffsetsQuery, file: Path | None, patience: float, limit: int, output: Output
) -> None:
    from connectctl.ops.operations.offsets.effective_offsets import assemble
    from connectctl.ops.operations.offsets.large_topics import InOrder, is_big

    read_at = datetime.now(UTC)
    with without_collection():
        snapshot, cluster = _from_file(session, file, query) if file else _from_cluster(session, query, patience)
        found: Answer = (
            InOrder(snapshot, query, output is Output.JSON) if is_big(snapshot) else assemble(snapshot, query)
        )
        data = _as_json(found, read_at, output) if output not in (Output.TABLE, Output.WIDE) else {}
        terminal.emit("SourceOffsets", cluster | data, output, partial(_print, found, limit))
    terminal.findings(found.findings)
    if not found.complete:
        raise typer.Exit(1)


def _from_cluster(session: Session, query: OffsetsQuery, patience: float) -> tuple[Any, dict[str, Any]]:
    from connectctl.cli.commands.offsets.sources import sources_of
    from connectctl.ops.operations.offsets.observe import observe

    sources, group, findings = sources_of(session, patience)
    snapshot = observe(sources, query)
    snapshot = replace(snapshot, findings=findings + snapshot.findings)
    return snapshot, {"clusterId": sources.kafka.cluster_id(), "groupId": group.id}


def _from_file(session: Session, file: Path, query: OffsetsQuery) -> tuple[Any, dict[str, Any]]:
    from connectctl.ops.operations.offsets import topic_dump

    offsets_topic = session.flags.get("topics.offsets")
    records = topic_dump.read_file(file, superseded=query.superseded)
    return topic_dump.snapshot(records, str(file), offsets_topic, query), {
        "clusterId": None,
        "groupId": None,
    }


# --------------------------------------------------------------------------------------------------------- for scripts


def _as_json(found: Answer, read_at: datetime, output: Output) -> dict[str, Any]:
    from connectctl.ops.operations.offsets.large_topics import InOrder

    if isinstance(found, InOrder):
        connectors = _flow((_connector(connector, output) for connector in found.connectors()), output)
        findings = _flow(_findings(found), output)
    else:
        connectors = [_connector(connector, output) for connector in found.connectors]
        findings = list(_findings(found))
    return {
        "readAt": _time(int(read_at.timestamp() * 1000)),
        "topics": [_topic(topic) for topic in found.topics],
        "connectors": connectors,
        "findings": findings,
    }


def _connector(connector: ConnectorOffsets | Passing, output: Output) -> dict[str, Any]:
    given = connector.offsets
    offsets = terminal.each(given, _offset, output) if isinstance(given, tuple) else _flow(map(_item, given), output)
    return {
        "name": connector.name,
        "dedicatedTopic": connector.dedicated_topic,
        "configured": connector.configured,
        "offsets": offsets,
    }


def _flow(items: Iterable[Any], output: Output) -> list[Any]:
    return Flow(items) if output is Output.JSON else list(items)


def _findings(found: Answer) -> Iterator[dict[str, Any]]:
    """Told last: of topics too big for memory they are known when all else is written."""
    for finding in found.findings:
        yield finding.as_json()


def _topic(topic: ReadTopic) -> dict[str, Any]:
    ends = {str(partition): end for partition, end in sorted(topic.image.end_offsets.items())}
    data = {"topic": topic.image.topic, "role": topic.role, "records": topic.image.records, "endOffsets": ends}
    return data | ({"bootstrapServers": topic.bootstrap} if topic.bootstrap else {})


def _item(entry: SourceOffset | Rows) -> dict[str, Any] | EncodedItems:
    return _offset(entry) if isinstance(entry, SourceOffset) else _written(entry)


def _written(found: Rows) -> EncodedItems:
    """What ``_offset`` says of each, as JSON."""
    from connectctl.ops.operations.offsets.plain_records import spaced

    start = len(f'["{found.connector}",')
    # All at once: nothing that is plain has a line's end in it.
    keys = b"\n".join([row[1] for row in found.rows]).decode().replace('"', '\\"').split("\n")
    partitions = spaced(b"\n".join([row[1][start:-1] for row in found.rows]).decode()).split("\n")
    offsets = spaced(b"\n".join([row[6] for row in found.rows]).decode()).split("\n")
    times = {at: _time(at) for at in {row[5] for row in found.rows}}
    return EncodedItems(
        f'{{"partition": {partition}, "key": "{key}", "global": {{"offset": {offset}, "timestamp": '
        f'"{times[row[5]]}", "kafkaPartition": {row[3]}, "kafkaOffset": {row[4]}}}, "dedicated": null, '
        f'"effective": {offset}, "origin": "global", "workerReads": {offset}}}'
        for row, key, partition, offset in zip(found.rows, keys, partitions, offsets, strict=True)
    )


def _offset(entry: SourceOffset) -> dict[str, Any]:
    data: dict[str, Any] = {
        "partition": entry.key.partition,
        "key": entry.key.text,
        "global": _side(entry.global_),
        "dedicated": _side(entry.dedicated),
        "effective": entry.effective,
        "origin": entry.origin,
        "workerReads": entry.worker_reads,
    }
    if entry.strays:
        data["strays"] = [_side(side) for side in entry.strays]
    if entry.earlier:
        data["earlier"] = [_side(side) for side in entry.earlier]
    return data


def _side(side: StoredOffset | None) -> dict[str, Any] | None:
    if side is None:
        return None
    data = {
        "offset": side.offset,
        "timestamp": None if side.timestamp is None else _time(side.timestamp),
        "kafkaPartition": side.kafka_partition,
        "kafkaOffset": side.kafka_offset,
    }
    return data | ({"unreadable": side.raw} if side.problem else {})


def _time(milliseconds: int) -> str:
    try:
        return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03}Z"
    except (ValueError, OverflowError, OSError):
        return iso_utc(milliseconds)


@lru_cache(maxsize=86_400)
def _second(seconds: int) -> str:
    return f"{_day(seconds // 86_400)}T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


@lru_cache(maxsize=1024)
def _day(day: int) -> str:
    return f"{datetime.fromtimestamp(day * 86_400, UTC):%Y-%m-%d}"


# ---------------------------------------------------------------------------------------------------------- for people


def _print(found: Answer, limit: int, wide: bool) -> None:
    from connectctl.ops.operations.offsets.large_topics import InOrder

    connectors = found.connectors() if isinstance(found, InOrder) else found.connectors
    entries = ((connector, entry) for connector in connectors for entry in connector.offsets)
    shown = list(islice(entries, limit or None))
    rows = [row for connector, entry in shown for row in _rows(connector, entry, wide)]
    columns = ["CONNECTOR", "PARTITION", "GLOBAL", "DEDICATED", "EFFECTIVE", "ORIGIN", "WORKER-READS"]
    columns += ["DEDICATED-TOPIC", "WRITTEN", "AT"] if wide else []
    if not wide and not any(entry.lost for _, entry in shown):
        # Workers read what is effective, and without a dedicated topic all that is the global offset.
        kept = (0, 1, 2, 3, 4, 5) if any(connector.dedicated_topic for connector, _ in shown) else (0, 1, 2)
        columns, rows = [columns[n] for n in kept], [[row[n] for n in kept] for row in rows]
        columns = ["CONNECTOR", "PARTITION", "OFFSET"] if len(kept) == 3 else columns
    terminal.table(columns, rows, empty="No source offsets." if found.complete else "No source offsets could be read.")
    if limit and len(shown) == limit:
        _tell_of_more(found, limit)


def _tell_of_more(found: Answer, shown: int) -> None:
    """That a table is not all: of topics too big for memory the rest is counted, and not looked at."""
    from connectctl.ops.operations.offsets.large_topics import InOrder

    if isinstance(found, InOrder):
        more, looked = found.keys() - shown, " (not read)"
    else:
        more, looked = sum(len(connector.offsets) for connector in found.connectors) - shown, ""
    if more > 0:
        terminal.note(f"… and {more:,} more source partitions{looked}. Name connectors, or use --limit 0 or -o json.")


def _rows(connector: ConnectorOffsets | Passing, entry: SourceOffset, wide: bool) -> Iterator[list[str]]:
    name = connector.name if connector.configured else f"{connector.name} (deleted)"
    known = entry.origin != UNKNOWN
    ours, value = (_cell(entry.dedicated), _object(entry.effective)) if known else ("?", "?")
    reads = _object(entry.worker_reads) + (" !" if entry.lost else "") if known else "?"
    row = [name, _object(entry.key.partition), _cell(entry.global_), ours, value, entry.origin, reads]
    side = entry.dedicated or entry.global_
    if wide and side is not None:
        written = "" if side.timestamp is None else _time(side.timestamp)
        row += [connector.dedicated_topic or "", written, f"{side.kafka_partition}@{side.kafka_offset}"]
    yield row + ([""] * 3 if wide and side is None else [])
    for older in entry.earlier:
        yield ["", "  earlier", _cell(older), "", "", "", ""] + (
            ["", _time(older.timestamp or 0), f"{older.kafka_partition}@{older.kafka_offset}"] if wide else []
        )


def _cell(side: StoredOffset | None) -> str:
    if side is None:
        return "-"
    if side.problem:
        return addresses_masked(f"unreadable: {side.raw}")
    return "tombstone" if side.tombstone else _object(side.offset)


def _object(value: dict[str, Any] | None) -> str:
    from connectctl.ops.connect.stream_source_partitions import in_short

    return "-" if value is None else addresses_masked(connect_json(in_short(value)))

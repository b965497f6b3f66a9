"""Source offsets in ``offsets show``: as JSON and as tables."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import terminal
from connectctl.cli.output.json_lines import EncodedItems, Flow
from connectctl.cli.output.terminal import Output
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.connect.source_offsets import UNKNOWN, ConnectorOffsets, SourceOffset, StoredOffset
from connectctl.ops.core.times import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from connectctl.ops.operations.offsets.large_topics import InOrder, Passing
    from connectctl.ops.operations.offsets.plain_records import PlainRows
    from connectctl.ops.operations.offsets.snapshot import ReadTopic, SourceOffsets

    Answer = SourceOffsets | InOrder

# ---------------------------------------------------------------------------------------------------------------- JSON


def as_json(found: Answer, read_at: datetime, output: Output) -> dict[str, Any]:
    """Return the members of ``SourceOffsets``, without the cluster."""
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
    """Yield the findings, written last: for topics too big for memory they are complete only then."""
    for finding in found.findings:
        yield finding.as_json()


def _topic(topic: ReadTopic) -> dict[str, Any]:
    ends = {str(partition): end for partition, end in sorted(topic.image.end_offsets.items())}
    data = {"topic": topic.image.topic, "role": topic.role, "records": topic.image.records, "endOffsets": ends}
    return data | ({"bootstrapServers": topic.bootstrap} if topic.bootstrap else {})


def _item(entry: SourceOffset | PlainRows) -> dict[str, Any] | EncodedItems:
    return _offset(entry) if isinstance(entry, SourceOffset) else _encoded(entry)


def _encoded(found: PlainRows) -> EncodedItems:
    """Return each row as ``_offset`` does, encoded as JSON."""
    from connectctl.ops.operations.offsets.plain_records import spaced

    start = len(f'["{found.connector}",')
    # All rows are converted together: plain records contain no line ends.
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


# -------------------------------------------------------------------------------------------------------------- tables


def print_table(found: Answer, limit: int, wide: bool) -> None:
    """Print at most ``limit`` source partitions; 0: all."""
    from connectctl.ops.operations.offsets.large_topics import InOrder

    connectors = found.connectors() if isinstance(found, InOrder) else found.connectors
    entries = ((connector, entry) for connector in connectors for entry in connector.offsets)
    shown = list(islice(entries, limit or None))
    rows = [row for connector, entry in shown for row in _rows(connector, entry, wide)]
    columns = ["CONNECTOR", "PARTITION", "GLOBAL", "DEDICATED", "EFFECTIVE", "ORIGIN", "WORKER-READS"]
    columns += ["DEDICATED-TOPIC", "WRITTEN", "AT"] if wide else []
    if not wide and not any(entry.lost for _, entry in shown):
        # Workers read the effective offset; without a dedicated topic it is the global one.
        kept = (0, 1, 2, 3, 4, 5) if any(connector.dedicated_topic for connector, _ in shown) else (0, 1, 2)
        columns, rows = [columns[n] for n in kept], [[row[n] for n in kept] for row in rows]
        columns = ["CONNECTOR", "PARTITION", "OFFSET"] if len(kept) == 3 else columns
    terminal.table(columns, rows, empty="No source offsets." if found.complete else "No source offsets could be read.")
    if limit and len(shown) == limit:
        _note_omitted(found, limit)


def _note_omitted(found: Answer, shown: int) -> None:
    """Print how many rows were left out; of topics too big for memory they are counted and not read."""
    from connectctl.ops.operations.offsets.large_topics import InOrder

    if isinstance(found, InOrder):
        more, unread = found.keys() - shown, " (not read)"
    else:
        more, unread = sum(len(connector.offsets) for connector in found.connectors) - shown, ""
    if more > 0:
        terminal.note(f"… and {more:,} more source partitions{unread}. Name connectors, or use --limit 0 or -o json.")


def _rows(connector: ConnectorOffsets | Passing, entry: SourceOffset, wide: bool) -> Iterator[list[str]]:
    name = connector.name if connector.configured else f"{connector.name} (deleted)"
    known = entry.origin != UNKNOWN
    dedicated, value = (_cell(entry.dedicated), _json_text(entry.effective)) if known else ("?", "?")
    reads = _json_text(entry.worker_reads) + (" !" if entry.lost else "") if known else "?"
    row = [name, _json_text(entry.key.partition), _cell(entry.global_), dedicated, value, entry.origin, reads]
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
    return "tombstone" if side.tombstone else _json_text(side.offset)


def _json_text(value: dict[str, Any] | None) -> str:
    from connectctl.ops.connect.stream_source_partitions import in_short

    return "-" if value is None else addresses_masked(connect_json(in_short(value)))

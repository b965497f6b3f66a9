"""Source offsets in ``offsets show``: as JSON and as tables."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.connect.source_offsets import (
    UNKNOWN,
    ConnectorOffsets,
    SourceOffset,
    StoredOffset,
)
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.times import iso_utc
from connectctl.ops.operations.offsets.config_map import check_names, config_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectctl.ops.operations.offsets.snapshot import ReadTopic, SourceOffsets

# --------------------------------------------------------------------------------------------- JSON


def as_json(found: SourceOffsets, read_at: datetime, output: Output) -> dict[str, Any]:
    """Return the members of ``SourceOffsets``, without the cluster."""
    return {
        "readAt": _time(int(read_at.timestamp() * 1000)),
        "topics": [_topic(topic) for topic in found.topics],
        "connectors": [_connector(connector, output) for connector in found.connectors],
        "findings": [finding.as_json() for finding in found.findings],
    }


def _connector(connector: ConnectorOffsets, output: Output) -> dict[str, Any]:
    return {
        "name": connector.name,
        "dedicatedTopic": connector.dedicated_topic,
        "configured": connector.configured,
        "offsets": terminal.each(connector.offsets, _offset, output),
    }


def _topic(topic: ReadTopic) -> dict[str, Any]:
    ends = {str(partition): end for partition, end in sorted(topic.image.end_offsets.items())}
    data = {
        "topic": topic.image.topic,
        "role": topic.role,
        "records": topic.image.records,
        "endOffsets": ends,
    }
    return data | ({"bootstrapServers": topic.bootstrap} if topic.bootstrap else {})


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
    data: dict[str, Any] = {
        "offset": side.offset,
        "timestamp": None if side.timestamp is None else _time(side.timestamp),
        "kafkaPartition": side.kafka_partition,
        "kafkaOffset": side.kafka_offset,
    }
    if side.problem:
        data["unreadable"] = side.raw
    return data


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


# --------------------------------------------------------------------------------------- ConfigMaps


def config_maps(found: SourceOffsets) -> list[dict[str, Any]]:
    """Return the ConfigMap of each connector that has offsets, for Strimzi's operator. Raises
    ``BadInput`` if effective offsets are unknown, and without offsets.
    """
    maps = []
    for connector in found.connectors:
        if any(entry.origin == UNKNOWN for entry in connector.offsets):
            raise BadInput(
                f"Which offsets of {connector.name} are effective is not known",
                why="its dedicated offsets topic was not read (OFFSETS011)",
            )
        entries = [
            (entry.key.partition, entry.effective)
            for entry in connector.offsets
            if entry.effective is not None
        ]
        if entries or len(found.connectors) == 1:
            maps.append(config_map(connector.name, entries))
    check_names(maps)
    return maps


# ------------------------------------------------------------------------------------------- tables


def print_table(found: SourceOffsets, limit: int, wide: bool) -> None:
    """Print at most ``limit`` source partitions; 0: all."""
    entries = ((connector, entry) for connector in found.connectors for entry in connector.offsets)
    shown = list(islice(entries, limit or None))
    rows = [row for connector, entry in shown for row in _rows(connector, entry, wide)]
    columns = [
        "CONNECTOR",
        "PARTITION",
        "GLOBAL",
        "DEDICATED",
        "EFFECTIVE",
        "ORIGIN",
        "WORKER-READS",
    ]
    columns += ["DEDICATED-TOPIC", "WRITTEN", "AT"] if wide else []
    if not wide and not any(entry.lost for _, entry in shown):
        # Workers read the effective offset; without a dedicated topic it is the global one.
        kept = (
            (0, 1, 2, 3, 4, 5)
            if any(connector.dedicated_topic for connector, _ in shown)
            else (0, 1, 2)
        )
        columns, rows = [columns[n] for n in kept], [[row[n] for n in kept] for row in rows]
        columns = ["CONNECTOR", "PARTITION", "OFFSET"] if len(kept) == 3 else columns
    terminal.table(
        columns,
        rows,
        empty="No source offsets." if found.complete else "No source offsets could be read.",
    )
    more = sum(len(connector.offsets) for connector in found.connectors) - len(shown)
    if more > 0:
        terminal.note(
            f"… and {more:,} more source partitions. Name connectors, or use --limit 0 or -o json."
        )


def _rows(connector: ConnectorOffsets, entry: SourceOffset, wide: bool) -> Iterator[list[str]]:
    name = connector.name if connector.configured else f"{connector.name} (deleted)"
    known = entry.origin != UNKNOWN
    dedicated, value = (
        (_cell(entry.dedicated), _json_text(entry.effective)) if known else ("?", "?")
    )
    reads = _json_text(entry.worker_reads) + (" !" if entry.lost else "") if known else "?"
    row = [
        name,
        _json_text(entry.key.partition),
        _cell(entry.global_),
        dedicated,
        value,
        entry.origin,
        reads,
    ]
    side = entry.dedicated or entry.global_
    if wide and side is not None:
        written = "" if side.timestamp is None else _time(side.timestamp)
        row += [
            connector.dedicated_topic or "",
            written,
            f"{side.kafka_partition}@{side.kafka_offset}",
        ]
    yield row + ([""] * 3 if wide and side is None else [])
    for older in entry.earlier:
        yield ["", "  earlier", _cell(older), "", "", "", ""] + (
            ["", _time(older.timestamp or 0), f"{older.kafka_partition}@{older.kafka_offset}"]
            if wide
            else []
        )


def _cell(side: StoredOffset | None) -> str:
    if side is None:
        return "-"
    if side.problem:
        return addresses_masked(f"unreadable: {side.raw}")
    return "tombstone" if side.tombstone else _json_text(side.offset)


def _json_text(value: dict[str, Any] | None) -> str:
    from connectctl.ops.connect.stream_source_partitions import abridged

    return "-" if value is None else addresses_masked(connect_json(abridged(value)))

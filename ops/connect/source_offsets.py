"""Source offsets: the contents of each topic, the effective offset by KIP-618, and the one that a
worker reads.

KIP-618 ("Smooth migration"): a connector with a dedicated offsets topic reads both topics, and the
dedicated one takes precedence. Every release from 3.3 to 4.3.1 departs from that:
``ConnectorOffsetBackingStore.get`` overwrites the global topic's result with the dedicated topic's,
in which an absent offset is a null, so that the global offset is never used. A tombstone is an
absent offset to both: the KIP falls back to the global topic, the worker reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from connectctl.ops.config.json_text import decode_together
from connectctl.ops.connect.offset_rules import nested_problem
from connectctl.ops.connect.source_keys import SourceKey, TooLarge, decode_json, holds_nested
from connectctl.ops.kafka.records import ConsumerRecord


class StoredOffset(NamedTuple):
    """The offset of a source partition in one topic. ``offset`` is None for a tombstone and for an
    unreadable value.

    ``problem`` is why the value cannot be read, None if it can; ``raw`` is the value as text if
    there is a problem, or if more text follows the JSON, which workers ignore. ``timestamp`` is in
    milliseconds since the epoch.
    """

    offset: dict[str, Any] | None
    timestamp: int | None
    kafka_partition: int
    kafka_offset: int
    problem: str | None = None
    raw: str | None = None

    @property
    def tombstone(self) -> bool:
        """Return whether the record deletes the offset."""
        return self.offset is None and self.problem is None


class SourceOffset(NamedTuple):
    """One source partition of a connector. ``strays`` are records of the same key on other Kafka
    partitions.
    """

    key: SourceKey
    global_: StoredOffset | None
    dedicated: StoredOffset | None
    effective: dict[str, Any] | None
    origin: str
    worker_reads: dict[str, Any] | None
    strays: tuple[StoredOffset, ...] = ()
    earlier: tuple[StoredOffset, ...] = ()

    @property
    def lost(self) -> bool:
        """Return whether a worker starts this source partition elsewhere than KIP-618 specifies."""
        return self.effective != self.worker_reads


UNKNOWN = "unknown"
"""The origin of an offset whose dedicated side was not read: no effective offset is reported."""


@dataclass(frozen=True)
class ConnectorOffsets:
    """All source partitions of one connector. ``configured`` is False for a connector that was
    deleted.
    """

    name: str
    dedicated_topic: str | None
    offsets: tuple[SourceOffset, ...]
    configured: bool = True
    bootstrap: str | None = None


def read_offset(record: ConsumerRecord) -> StoredOffset:
    """Return the offset in ``record``, with the reason if a worker cannot use it
    (``OffsetUtils.validateFormat``).
    """
    position = (record.timestamp, record.partition, record.offset)
    if record.value is None:
        return StoredOffset(None, *position)
    try:
        text = record.value.decode()
        value, trailing = decode_json(text)
    except TooLarge as e:
        return StoredOffset(None, *position, f"no double can hold {e}", record.value.decode())
    except (ValueError, RecursionError):
        return StoredOffset(
            None, *position, "it is not JSON", record.value.decode(errors="backslashreplace")
        )
    if isinstance(value, dict):
        if holds_nested(value):
            member, inner = next(
                (m, inner) for m, inner in value.items() if isinstance(inner, dict | list)
            )
            return StoredOffset(None, *position, nested_problem("the offset", member, inner), text)
        return StoredOffset(value, *position, raw=text if trailing else None)
    why = "it is the JSON null" if value is None else "it is not a JSON object"
    return StoredOffset(None, *position, why, text)


_FLAT = dict[str, str | int | float | bool | None]


def read_offsets(records: Sequence[ConsumerRecord | None]) -> list[StoredOffset | None]:
    """Return ``read_offset`` of each record, None without one; flat offsets are decoded
    together.
    """
    texts = [record.value for record in records if record is not None and record.value is not None]
    values = decode_together(_FLAT, texts, b"{") if texts else []
    if values is None:
        return [None if record is None else read_offset(record) for record in records]
    left = iter(values)
    return [
        None
        if record is None
        else StoredOffset(
            None if record.value is None else next(left),
            record.timestamp,
            record.partition,
            record.offset,
        )
        for record in records
    ]


def problem_of(record: ConsumerRecord) -> str | None:
    """Return why the offset of ``record`` cannot be read, None if it can: only this part of
    ``read_offset``.
    """
    quick = decode_together(_FLAT, [record.value], b"{")
    return read_offset(record).problem if quick is None else None


def effective(
    global_: StoredOffset | None, dedicated: StoredOffset | None
) -> tuple[dict[str, Any] | None, str]:
    """Return the offset by KIP-618 and its origin. An unreadable dedicated value hides the global
    one.
    """
    side, origin = global_, "global"
    if dedicated is not None and not dedicated.tombstone:
        side, origin = dedicated, "dedicated"
    if side is None or side.offset is None:
        return None, "none"
    return side.offset, origin


def worker_reads(
    key: SourceKey,
    global_: StoredOffset | None,
    dedicated: StoredOffset | None,
    *,
    has_dedicated: bool,
) -> dict[str, Any] | None:
    """Return what a task of a real worker gets for ``key``: no fallback, no foreign spelling,
    64-bit whole numbers.
    """
    side = dedicated if has_dedicated else global_
    if side is None or side.offset is None or not key.spelled_as_connect:
        return None
    if key.nested:
        return None
    for value in side.offset.values():
        if type(value) is int and not -(1 << 63) <= value < 1 << 63:
            return {name: _wrapped(v) for name, v in side.offset.items()}
    return side.offset


def _wrapped(value: Any) -> Any:
    """Return a whole number as Java's ``longValue`` truncates it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63) if type(value) is int else value

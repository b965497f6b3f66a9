"""Source offsets: what each topic says, what KIP-618 makes of it, and what a worker really reads.

KIP-618 ("Smooth migration"): a connector with a dedicated offsets topic sees both topics, and the dedicated one wins.
Every release from 3.3 to 4.3.1 departs from that: ``ConnectorOffsetBackingStore.get`` lays the dedicated topic's answer,
in which an absent offset is a null, over the global topic's, so that the global offset is never seen. A tombstone is an
absent offset to both: the KIP falls back to the global topic, the worker reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from connectctl.ops.config.json_text import checker
from connectctl.ops.connect.offset_rules import nested_problem
from connectctl.ops.connect.source_keys import SourceKey, TooLarge, decode_json, holds_nested

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord


class StoredOffset(NamedTuple):
    """What one topic says of a source partition. ``offset`` is None for a tombstone and for a value we cannot read.

    ``problem`` says why it cannot be read, None where it can; ``raw`` is the value as text where there is a problem,
    or where more follows the JSON, which workers ignore.
    ``timestamp`` is in milliseconds since the epoch.
    """

    offset: dict[str, Any] | None
    timestamp: int | None
    kafka_partition: int
    kafka_offset: int
    problem: str | None = None
    raw: str | None = None

    @property
    def tombstone(self) -> bool:
        """Whether the record deletes the offset."""
        return self.offset is None and self.problem is None


class SourceOffset(NamedTuple):
    """One source partition of a connector. ``strays`` are records of the same key on other Kafka partitions."""

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
        """Whether a worker would start this partition elsewhere than KIP-618 says."""
        return self.effective != self.worker_reads


UNKNOWN = "unknown"
"""The origin of an offset whose dedicated side was not read: none is effective, and none is said to be."""


@dataclass(frozen=True)
class ConnectorOffsets:
    """All source partitions of one connector. ``configured`` is False for a connector that was deleted."""

    name: str
    dedicated_topic: str | None
    offsets: tuple[SourceOffset, ...]
    configured: bool = True
    bootstrap: str | None = None


def read_offset(record: ConsumerRecord) -> StoredOffset:
    """What ``record`` says, with the reason where a worker could make nothing of it (``OffsetUtils.validateFormat``)."""
    where = (record.timestamp, record.partition, record.offset)
    if record.value is None:
        return StoredOffset(None, *where)
    try:
        text = record.value.decode()
        value, more = decode_json(text)
    except TooLarge as e:
        return StoredOffset(None, *where, f"no double can hold {e}", record.value.decode())
    except (ValueError, RecursionError):
        return StoredOffset(None, *where, "it is not JSON", record.value.decode(errors="backslashreplace"))
    if isinstance(value, dict):
        if holds_nested(value):
            member, inner = next((m, inner) for m, inner in value.items() if isinstance(inner, dict | list))
            return StoredOffset(None, *where, nested_problem("the offset", member, inner), text)
        return StoredOffset(value, *where, raw=text if more else None)
    why = "it is the JSON null" if value is None else "it is not a JSON object"
    return StoredOffset(None, *where, why, text)


@cache
def _quick_offset() -> tuple[Callable[[bytes], Any], type[Exception]]:
    return checker(dict[str, str | int | float | bool | None])


def problem_of(record: ConsumerRecord) -> str | None:
    """Return why the offset of ``record`` cannot be read, None where it can: ``read_offset`` without the rest."""
    quick, refused = _quick_offset()
    try:
        quick(record.value or b"")
    except (refused, ValueError, RecursionError):
        return read_offset(record).problem
    return None


def effective(global_: StoredOffset | None, dedicated: StoredOffset | None) -> tuple[dict[str, Any] | None, str]:
    """KIP-618's answer and where it comes from. A dedicated value that cannot be read hides the global one."""
    for side, origin in ((dedicated, "dedicated"), (global_, "global")):
        if side is not None and not side.tombstone:
            return side.offset, origin if side.problem is None else "none"
    return None, "none"


def worker_reads(
    key: SourceKey, global_: StoredOffset | None, dedicated: StoredOffset | None, *, has_dedicated: bool
) -> dict[str, Any] | None:
    """What a task of a real worker gets for ``key``: no fallback, no foreign spelling, whole numbers of 64 bits."""
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
    """A whole number as Java's ``longValue`` cuts it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63) if type(value) is int else value

"""Source partitions and offsets as ``MirrorUtils`` wraps them: {"cluster", "partition", "topic"} and {"offset"}. Pure.

An offset is the one that was copied last: whoever goes on begins behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.connector import Offset, Partition

Place = tuple[str, int]
"""A topic of the source and a partition of it."""
ASSIGNED, INDEX = "task.assigned.partitions", "task.index"
"""What a task's configuration has besides the connector's."""
_LARGEST = 2**31 - 1


def wrap_partition(alias: str, place: Place) -> dict[str, Any]:
    """The source partition, its members in the order in which Java writes them."""
    topic, partition = place
    return {"cluster": alias, "partition": partition, "topic": topic}


def wrap_offset(offset: int) -> dict[str, int]:
    """The source offset of the record at ``offset``."""
    return {"offset": offset}


def next_offset(stored: Mapping[str, Any] | None) -> int | None:
    """Where to go on behind ``stored``, None where nothing is."""
    if stored is None or stored.get("offset") is None:
        return None
    return int(stored["offset"]) + 1


def share(places: list[Place], most: int) -> list[list[Place]]:
    """``places`` among at most ``most`` tasks, in turn."""
    tasks = min(most, len(places))
    return [places[n::tasks] for n in range(tasks)]


def encode(places: list[Place]) -> str:
    """The value of ``task.assigned.partitions``."""
    return ",".join(f"{topic}-{partition}" for topic, partition in places)


def decode(text: str) -> list[Place]:
    """The places in a ``task.assigned.partitions``."""
    parts = (part.strip().rpartition("-") for part in text.split(",") if part.strip())
    return [(topic, int(partition)) for topic, _, partition in parts]


def check(partition: Partition, offset: Offset | None) -> None:
    """Raises ``ConnectctlError`` for what a Java connector would not take; a tombstone may be for anything."""
    if offset is None:
        return
    for problem in (*_of_partition(partition), *_of_offset(offset)):
        raise ConnectctlError(
            "A mirror source has source partitions of cluster, topic and partition, and source offsets of offset",
            why=problem,
            code="bad-offset",
        )


def _of_partition(partition: Partition) -> Iterator[str]:
    for name in ("cluster", "topic"):
        if not isinstance(partition.get(name), str):
            yield f"{name} is missing, or is no string"
    number: Any = partition.get("partition")
    if not _is_whole(number) or number > _LARGEST:
        yield "partition is missing, or is no 32-bit integer"
    elif number < 0:
        yield "partition is negative"


def _of_offset(offset: Offset) -> Iterator[str]:
    number: Any = offset.get("offset")
    if not _is_whole(number):
        yield "offset is missing, or is no integer"
    elif number < 0:
        yield "offset is negative"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

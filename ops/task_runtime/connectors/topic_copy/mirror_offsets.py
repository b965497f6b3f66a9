"""Source partitions and offsets as ``MirrorUtils`` wraps them: {"cluster", "partition", "topic"} and {"offset"}. Pure.

An offset is the one that was copied last: whoever resumes begins behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectctl.ops.kafka.topic_partition import TopicPartition

ASSIGNED, INDEX = "task.assigned.partitions", "task.index"
"""What a task's configuration has besides the connector's."""


def wrap_partition(alias: str, place: TopicPartition) -> dict[str, Any]:
    """The source partition, its members in the order in which Java writes them."""
    return {"cluster": alias, "partition": place.partition, "topic": place.topic}


def wrap_offset(offset: int) -> dict[str, int]:
    return {"offset": offset}


def next_offset(stored: Mapping[str, Any] | None) -> int | None:
    """Where to resume behind ``stored``, None where nothing is."""
    if stored is None or stored.get("offset") is None:
        return None
    return int(stored["offset"]) + 1


def share(places: list[TopicPartition], most: int) -> list[list[TopicPartition]]:
    """``places`` among at most ``most`` tasks, in turn."""
    tasks = min(most, len(places))
    return [places[n::tasks] for n in range(tasks)]


def encode(places: list[TopicPartition]) -> str:
    """The value of ``task.assigned.partitions``."""
    return ",".join(map(str, places))


def decode(text: str) -> list[TopicPartition]:
    """The places in a ``task.assigned.partitions``."""
    parts = (part.strip().rpartition("-") for part in text.split(",") if part.strip())
    return [TopicPartition(topic, int(partition)) for topic, _, partition in parts]

"""Source partitions and offsets as ``MirrorUtils`` wraps them: {"cluster", "partition", "topic"}
and {"offset"}. Pure.

An offset is that of the last copied record: a task resumes after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from connectctl.ops.kafka.topic_partition import TopicPartition

ASSIGNED, INDEX = "task.assigned.partitions", "task.index"
"""The properties of a task's configuration besides the connector's."""
ADDED = "task.added.partitions"
"""Those of the assigned partitions that have appeared during the run: they are copied from their
beginning.
"""


def wrap_partition(alias: str, topic_partition: TopicPartition) -> dict[str, Any]:
    """Return the source partition, its members in the order in which Java writes them."""
    return {
        "cluster": alias,
        "partition": topic_partition.partition,
        "topic": topic_partition.topic,
    }


def wrap_offset(offset: int) -> dict[str, int]:
    return {"offset": offset}


def next_offset(stored: Mapping[str, Any] | None) -> int | None:
    """Return the offset after ``stored``, None if there is none."""
    if stored is None or stored.get("offset") is None:
        return None
    return int(stored["offset"]) + 1


def share(topic_partitions: list[TopicPartition], most: int) -> list[list[TopicPartition]]:
    """Return ``topic_partitions`` among at most ``most`` tasks, in turn."""
    tasks = min(most, len(topic_partitions))
    return [topic_partitions[n::tasks] for n in range(tasks)]


def share_again(
    running: Sequence[Sequence[TopicPartition]],
    topic_partitions: Sequence[TopicPartition],
    most: int,
) -> list[list[TopicPartition]]:
    """Return the shares of ``topic_partitions`` among at most ``most`` tasks, of which some are
    ``running``. These keep what they have; what is new goes to the smallest shares. Only where
    fewer tasks are left, all is shared out anew.
    """
    existing, tasks = set(topic_partitions), min(most, len(topic_partitions))
    if tasks < len(running):
        return share(list(topic_partitions), most)
    shares = [[partition for partition in each if partition in existing] for each in running]
    shares += [[] for _ in range(tasks - len(running))]
    known = {partition for each in shares for partition in each}
    for partition in topic_partitions:
        if partition not in known:
            min(shares, key=len).append(partition)
    return shares


def tasks(
    configs: Mapping[str, str],
    shares: Sequence[Sequence[TopicPartition]],
    before: Collection[TopicPartition] | None = None,
) -> list[dict[str, str]]:
    """Return the configuration of a task for each of ``shares``. ``before`` are the partitions with
    which the run began, where that was earlier.
    """
    made = []
    for number, topic_partitions in enumerate(shares):
        config = {**configs, ASSIGNED: encode(topic_partitions), INDEX: str(number)}
        if (
            added := []
            if before is None
            else [partition for partition in topic_partitions if partition not in before]
        ):
            config[ADDED] = encode(added)
        made.append(config)
    return made


def encode(topic_partitions: Sequence[TopicPartition]) -> str:
    """Return the value of ``task.assigned.partitions``."""
    return ",".join(map(str, topic_partitions))


def decode(text: str) -> list[TopicPartition]:
    """Return the partitions in a ``task.assigned.partitions``."""
    parts = (part.strip().rpartition("-") for part in text.split(",") if part.strip())
    return [TopicPartition(topic, int(partition)) for topic, _, partition in parts]

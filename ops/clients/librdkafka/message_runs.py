"""Messages of one partition that follow each other, so that a question is asked once of many and
not of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import methodcaller
from typing import Any

from connectctl.ops.kafka.topic_partition import TopicPartition

Stretches = Iterator[tuple[TopicPartition, list[Any]]]
_PARTITION, _TOPIC = methodcaller("partition"), methodcaller("topic")


def stretches(batch: list[Any], topic: str | None) -> Stretches:
    """The batch cut where the place changes; ``topic`` where there is only one, because to ask for
    it takes time.
    """
    keys: Iterable[Any] = map(_PARTITION, batch)
    if topic is None:
        keys = zip(map(_TOPIC, batch), keys, strict=True)
    start = 0
    for key, same in groupby(keys):
        end = start + len(list(same))
        yield (
            TopicPartition(*key) if topic is None else TopicPartition(topic, key),
            batch[start:end],
        )
        start = end

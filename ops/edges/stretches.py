"""Messages of one partition that follow each other, so that a question is asked once of many and not of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Place = tuple[str, int]


def stretches(batch: list[Any], topic: str | None) -> Iterator[tuple[Place, list[Any]]]:
    """The batch cut where the place changes; ``topic`` where there is only one, because to ask for it takes time."""
    if not batch:
        return
    keys: list[Any] = [message.partition() for message in batch]
    if topic is None:
        keys = [(message.topic(), partition) for message, partition in zip(batch, keys, strict=True)]
    cuts = [0, *(n for n, (a, b) in enumerate(pairwise(keys), start=1) if a != b), len(batch)]
    for a, b in pairwise(cuts):
        place = keys[a] if topic is None else (topic, keys[a])
        yield place, batch if len(cuts) == 2 else batch[a:b]

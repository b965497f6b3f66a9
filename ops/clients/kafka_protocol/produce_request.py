"""Produce as it goes over the wire, in parts: its batches are sent from where they lie, and not copied into a request."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import groupby

from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.varints import unsigned_varint

KEY = 0
FLEXIBLE = 9
"""From this version on it has compact lengths, and tags (KIP-482)."""
Parts = Sequence[bytes | memoryview]
_SHORT, _INT, _ACKS_AND_TIMEOUT = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">hi")
_ALL = -1
"""``acks``."""


def produce_parts(version: int, id_: str, timeout_ms: int, batches: Iterable[tuple[TopicPartition, Parts]]) -> Parts:
    """The body of a Produce with acks=all, of the transactional id ``id_``; one batch for each place, topic by topic."""
    flexible = version >= FLEXIBLE
    tags = b"\0" if flexible else b""

    def length(number: int) -> bytes:
        return unsigned_varint(number + 1) if flexible else _INT.pack(number)

    def text(name: str) -> bytes:
        encoded = name.encode()
        return (length(len(encoded)) if flexible else _SHORT.pack(len(encoded))) + encoded

    topics = [(topic, list(some)) for topic, some in groupby(batches, lambda each: each[0].topic)]
    parts: list[bytes | memoryview] = [text(id_) + _ACKS_AND_TIMEOUT.pack(_ALL, timeout_ms) + length(len(topics))]
    for topic, some in topics:
        parts.append(text(topic) + length(len(some)))
        for place, batch in some:
            parts += (_INT.pack(place.partition) + length(sum(map(len, batch))), *batch, tags)
        parts.append(tags)
    return [*parts, tags]

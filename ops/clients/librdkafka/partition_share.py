"""Reads a share of some topics: what a Spark task does of a big reading, with the reader that the
local engine uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing

from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.clients.librdkafka.read import TopicReading, consumer_of
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.sentinels import Offset

MOST = 200_000
"""Records that are kept for newer ones of their keys before they are given."""


def read_share(
    kafka: Connection,
    ends: Mapping[str, Mapping[int, int]],
    wanted: Mapping[str, Collection[str] | None],
    *,
    newest: bool,
) -> Iterator[tuple[str, list[ConsumerRecord]]]:
    """Yield each topic with some of its records below its ends, with read_committed.

    ``newest``: of each key of a partition only the newest one; else older ones may be among them.
    ``ends`` are offsets that such a reader can get to. ``wanted`` has by topic the connectors whose
    keys are read, None for all keys.
    """
    if not ends:
        return
    offsets = {topic: {p: Offset(end) for p, end in by.items()} for topic, by in ends.items()}
    includes = {topic: names.__contains__ for topic, names in wanted.items() if names is not None}
    reading = TopicReading(kafka, offsets, includes=includes)
    with closing(consumer_of(kafka, "read_committed")) as consumer:
        for _ in reading.rounds(consumer, None):
            if not newest and reading.held > MOST:
                yield from reading.given()
    yield from reading.given()

"""An admin client that gives no offsets now and then, as librdkafka does of leaders that have just
died; and a believer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.kafka.sentinels import Offset
    from connectctl.ops.kafka.topics import KnownEnds

NONE = -1001
"""RD_KAFKA_OFFSET_INVALID."""


def install() -> None:
    """Have every connection of this process answer every other question for ends with ``NONE``, and
    without an error.
    """
    asked, real = count(1), AdminClient.list_offsets

    def list_offsets(self: Any, wanted: Any, **more: Any) -> Any:
        latest = any(spec._value == OffsetSpec.latest()._value for spec in wanted.values())
        return (
            {place: _none() for place in wanted}
            if latest and next(asked) % 2
            else real(self, wanted, **more)
        )

    AdminClient.list_offsets = list_offsets


def _none() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(SimpleNamespace(offset=NONE))
    return future


def believed(
    kafka: Kafka, topics: Sequence[str], seen: Mapping[str, KnownEnds] | None = None
) -> dict[str, dict[int, Offset]]:
    """A reading of ends that takes what comes: a mutant of ``partition_offsets.end_offsets``."""
    places = [
        TopicPartition(t, p) for t, n in kafka.partition_counts(topics).items() for p in range(n)
    ]
    found: dict[str, dict[int, Offset]] = {topic: {} for topic in topics}
    for place, future in kafka.admin.list_offsets(
        {place: OffsetSpec.latest() for place in places}
    ).items():
        found[place.topic][place.partition] = future.result().offset
    return found

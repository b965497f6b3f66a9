"""Who has written to the config topic, as far as its records and its partition's producer state show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from connectctl.ops.connect import config_topic
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.kafka.transactions import PartitionProducer

_ALONE = (config_topic.COMMIT, config_topic.FENCING, "session-key", "restart-connector-")
"""Records that only the leader writes, each in a transaction of its own (``KafkaConfigBackingStore``)."""


@dataclass(frozen=True)
class LeaderWrite:
    """The newest record of the config topic that only a leader writes. ``at`` is in seconds since the epoch.

    ``outside``: it was written outside a transaction for certain, for what follows it is not a marker.
    """

    key: str
    offset: int
    at: float
    outside: bool


@dataclass(frozen=True)
class ConfigTopic:
    """The config topic: what its connectors are, and who writes to it.

    ``foreign`` are the producers with an id on its partition besides the leader's; ``owners`` their transactional ids.
    ``leader_wrote`` is when the leader's producer wrote last, in seconds since the epoch.
    """

    name: str
    connectors: frozenset[str] = frozenset()
    newest: LeaderWrite | None = None
    leader_wrote: float | None = None
    foreign: tuple[PartitionProducer, ...] = ()
    owners: Mapping[int, str] = field(default_factory=dict)


def newest_write(image: TopicImage) -> LeaderWrite | None:
    """The newest record that only a leader writes, and whether it stands outside a transaction.

    Under a preparing or enabled leader each is a transaction of its own, so that the offset behind it is the marker's and
    holds no record. Compaction makes gaps too, but no record where a marker was.
    """
    records = [*image.latest, *image.superseded]
    ours = [
        r for r in records if r.key and r.timestamp is not None and r.key.decode(errors="replace").startswith(_ALONE)
    ]
    if not ours:
        return None
    newest = max(ours, key=lambda record: record.offset)
    behind = newest.offset + 1
    outside = image.end_offsets.get(newest.partition) == behind or _has(records, behind)
    key = (newest.key or b"").decode(errors="replace")
    return LeaderWrite(key, newest.offset, (newest.timestamp or 0) / 1000, outside)


def _has(records: Iterable[ConsumerRecord], offset: int) -> bool:
    return any(record.offset == offset for record in records)

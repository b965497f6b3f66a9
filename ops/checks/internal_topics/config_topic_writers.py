"""The writers of the config topic, by its records and by the producer state of its partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from connectctl.ops.connect import config_topic
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.kafka.transactions import PartitionProducer

_LEADER_KEYS = (config_topic.COMMIT, config_topic.FENCING, "session-key", "restart-connector-")
"""Records that only the leader writes, each in a transaction of its own
(``KafkaConfigBackingStore``).
"""


@dataclass(frozen=True)
class LeaderWrite:
    """The newest record of the config topic that only a leader writes. ``at`` is in seconds since
    the epoch.

    ``outside``: it was certainly written outside a transaction, because no marker follows it.
    """

    key: str
    offset: int
    at: float
    outside: bool


@dataclass(frozen=True)
class ConfigTopic:
    """The config topic: its connectors, and the producers that write to it.

    ``foreign`` are the producers on its partition that are not the leader's; ``owners`` are their
    transactional ids. ``leader_wrote`` is when the leader's producer last wrote, in seconds since
    the epoch.
    """

    name: str
    connectors: frozenset[str] = frozenset()
    newest: LeaderWrite | None = None
    leader_wrote: float | None = None
    foreign: tuple[PartitionProducer, ...] = ()
    owners: Mapping[int, str] = field(default_factory=dict)


def newest_write(image: TopicImage) -> LeaderWrite | None:
    """Return the newest record that only a leader writes, and whether it is outside a transaction.

    A preparing or enabled leader writes each in a transaction of its own, so that the next offset
    is the marker's and holds no record. Compaction also leaves offsets without a record, but never
    a record at a marker's offset.
    """
    records = [*image.latest, *image.superseded]
    of_leaders = [
        record
        for record in records
        if record.key
        and record.timestamp is not None
        and record.key.decode(errors="replace").startswith(_LEADER_KEYS)
    ]
    if not of_leaders:
        return None
    newest = max(of_leaders, key=lambda record: record.offset)
    next_offset = newest.offset + 1
    outside = image.end_offsets.get(newest.partition) == next_offset or _has(records, next_offset)
    key = (newest.key or b"").decode(errors="replace")
    return LeaderWrite(key, newest.offset, (newest.timestamp or 0) / 1000, outside)


def _has(records: Iterable[ConsumerRecord], offset: int) -> bool:
    return any(record.offset == offset for record in records)

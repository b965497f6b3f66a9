"""The commits of consumer groups in ``__consumer_offsets``. Source: ``OffsetCommitKey`` and
``GroupMetadataManager`` of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from connectctl.ops.kafka.field_reader import FieldReader
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition

TOPIC = "__consumer_offsets"
_OFFSET_COMMITS = (0, 1)
"""The versions of keys that are offsets; others are groups and their members."""
_VALUE_VERSION = 3


class OffsetCommit(NamedTuple):
    """An offset that ``group`` committed; ``at`` is in seconds since the epoch."""

    group: str
    partition: TopicPartition
    offset: int
    at: float


def offset_commits(records: Iterable[ConsumerRecord]) -> list[OffsetCommit]:
    """Return the commits among ``records``, in their order; tombstones and other records are left
    out.
    """
    found = []
    for record in records:
        if record.key and record.value and record.timestamp is not None:
            try:
                commit = _commit(record.key, record.value, record.timestamp / 1000)
            except ValueError:  # no offset of a group, or of a version to come
                continue
            if commit is not None:
                found.append(commit)
    return found


def key_of_commit(group: str, topic: str, partition: int) -> bytes:
    """Return the key of a commit's record."""
    return b"\0\1" + _string(group) + _string(topic) + partition.to_bytes(4, "big")


def value_of_commit(offset: int) -> bytes:
    """Return the beginning of a commit's value, which ``offset_commits`` reads."""
    return _VALUE_VERSION.to_bytes(2, "big") + offset.to_bytes(8, "big")


def _string(text: str) -> bytes:
    return len(text.encode()).to_bytes(2, "big") + text.encode()


def _commit(key: bytes, value: bytes, at: float) -> OffsetCommit | None:
    reader = FieldReader(key)
    if reader.number(2) not in _OFFSET_COMMITS:
        return None
    group = reader.take(reader.number(2)).decode()
    topic = reader.take(reader.number(2)).decode()
    partition = TopicPartition(topic, reader.number(4))
    reader = FieldReader(value)
    reader.number(2)  # version
    return OffsetCommit(group, partition, reader.number(8), at)

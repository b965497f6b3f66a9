"""Offsets topics as values: records, topics that were read, writes applied to them, and random
histories of all that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.operations.offsets.record_changes import RecordChange
from connectctl.ops.operations.offsets.snapshot import ReadTopic
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, topic_state
from hypothesis import strategies as st

PARTITIONS = 5
NOW = 1_000_000


def raw(value: Any) -> bytes | None:
    """Bytes as they are, None, or JSON as Connect spells it."""
    return value if isinstance(value, bytes) or value is None else connect_json(value).encode()


def record(
    key: Any, value: Any, offset: int = 0, *, partition: int | None = None, at: int = NOW
) -> ConsumerRecord:
    """A record where Java's partitioner puts it, or on ``partition``."""
    spelled = raw(key)
    home = java_partition(spelled or b"", PARTITIONS) if partition is None else partition
    return ConsumerRecord(spelled, raw(value), home, offset, at)


def topic(
    name: str,
    side: str,
    *records: ConsumerRecord,
    held: tuple[UnreadTail, ...] = (),
    bootstrap: str | None = None,
) -> ReadTopic:
    """A topic that was read; only the newest record of a key on a partition is left."""
    latest = {(r.partition, r.key): r for r in records}
    image = TopicImage(
        name, len(records), tuple(latest.values()), dict.fromkeys(range(PARTITIONS), 99), held
    )
    return ReadTopic(image, side, bootstrap)


def places(
    global_: Iterable[ConsumerRecord],
    dedicated: Iterable[ConsumerRecord] | None = None,
    connector: str = "c",
    own: str = "own",
) -> list[OffsetsTopicState]:
    """The global topic and, where there is one, the dedicated one, as ``connector`` sees them."""
    found = [topic_state(topic("global", "global", *global_), connector)]
    return (
        found
        if dedicated is None
        else [*found, topic_state(topic(own, "dedicated", *dedicated), connector)]
    )


def written(
    before: Iterable[OffsetsTopicState], writes: Iterable[RecordChange], at: int = NOW + 1
) -> list[OffsetsTopicState]:
    """``before`` after ``writes``; topics that did not exist do now."""
    after = []
    for found in before:
        records = {key: {r.partition: r for r in kept} for key, kept in found.records.items()}
        for write in writes:
            if (write.bootstrap, write.topic) == (found.bootstrap, found.topic):
                newest = ConsumerRecord(write.key, write.value, write.partition, 10**6, at)
                records.setdefault(write.key, {})[write.partition] = newest
        kept = {key: tuple(by.values()) for key, by in records.items()}
        after.append(replace(found, records=kept, partitions_exist=True))
    return after


def live(found: Iterable[OffsetsTopicState]) -> dict[tuple[str, bytes, int], bytes]:
    """Every value that is there, by topic, key and partition: tombstones and nothing are the
    same.
    """
    return {
        (at.topic, key, r.partition): r.value
        for at in found
        for key, kept in at.records.items()
        for r in kept
        if r.value is not None
    }


KEYS = [
    ["c", {"table": "a"}],
    ["c", {"table": "b", "server": "s"}],
    b'["c",{"server":"s","table":"b"}]',
    b'["c", {"table":"a"}]',
    ["c", {"n": 1}],
    ["c", {"n": 1.5}],
    ["c", None],
    ["d", {"table": "a"}],
    ["cc", {"table": "a"}],
    b'["c"]',
    b"garbage",
    "é".encode("latin-1"),
]
"""Keys of connector ``c``, of others, in several spellings, and of nobody."""
VALUES = [{"lsn": 1}, {"lsn": 2, "tx": None}, {"pos": 1.5}, b'{"lsn": 1}', None, None]
UNREADABLE = [b"no json", b"[1]", b"\xff", b'{"a":{}}']


def histories(
    values: list[Any] | None = None, keys: list[Any] | None = None
) -> st.SearchStrategy[list[ConsumerRecord]]:
    """Records of one topic in order: any keys, some on partitions where Java would not put them."""
    one = st.tuples(
        st.sampled_from(KEYS if keys is None else keys),
        st.sampled_from(VALUES if values is None else values),
        st.one_of(st.none(), st.integers(0, PARTITIONS - 1)),
        st.integers(NOW - 200_000, NOW),
    )
    return st.lists(one, max_size=14).map(
        lambda rows: [record(k, v, n, partition=p, at=at) for n, (k, v, p, at) in enumerate(rows)]
    )


def saved(
    found: Iterable[OffsetsTopicState],
) -> Mapping[tuple[str | None, str], list[ConsumerRecord]]:
    """What a backup of ``found`` brings back."""
    return {
        (at.bootstrap, at.topic): [r for kept in at.records.values() for r in kept]
        for at in found
        if at.records
    }

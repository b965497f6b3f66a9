"""Reads whole topics to the end as it stood at the start, and returns what compaction would leave.

Only the newest record of a key in a partition is kept, and it is kept as librdkafka's own message
until the end, so that a million records cost only a million dictionary writes. Records that
do not fit in memory are refused before more is read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import compress
from operator import methodcaller
from types import MappingProxyType
from typing import Any

import confluent_kafka
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.clients.librdkafka.consume import (
    Progress,
    consume_to,
    consumer_of,
    read_ranges,
    record_of,
)
from connectctl.ops.clients.librdkafka.partition_offsets import (
    end_offsets,
    offsets_at,
    read_extents,
)
from connectctl.ops.connect import group_rounds
from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka import memory, offset_commits
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.records import ConsumerRecord, KeyTimes, TopicImage, UnreadTail
from connectctl.ops.kafka.rhythm import Rhythm
from connectctl.ops.kafka.sentinels import Offset
from connectctl.ops.kafka.topic_partition import TopicPartition

KEY_OF = methodcaller("key")
Latest = dict[int, dict[bytes | None, Any]]
Includes = Callable[[str], bool]
"""Returns for the name of a connector whether its keys are read."""


def read_images(
    kafka: Connection,
    topics: Sequence[str],
    *,
    patience: float,
    superseded: bool = False,
    includes: Includes | None = None,
) -> dict[str, TopicImage]:
    """Return the image of each topic. ``patience`` is how long to wait, in seconds, for open
    transactions to end.

    With ``includes`` the source offsets of other connectors are left out. Raises
    ``ConnectctlError`` for what memory does not hold.
    """
    if not topics:
        return {}
    reading = TopicReading(
        kafka,
        end_offsets(kafka, topics),
        keep_all=superseded,
        includes=dict.fromkeys(topics, includes) if includes else {},
    )
    with closing(consumer_of(kafka, "read_committed")) as consumer:
        reading.run(consumer, patience)
    return {topic: reading.image(topic) for topic in topics}


def read_tails(
    kafka: Connection, topics: Sequence[str], count: int
) -> dict[str, list[ConsumerRecord]]:
    """Return the records at the last ``count`` offsets of every partition, committed or not."""
    if not topics:
        return {}
    ranges = {
        TopicPartition(topic, p): (max(0, end - count), int(end))
        for topic, by in end_offsets(kafka, topics).items()
        for p, end in by.items()
    }
    found: dict[str, list[ConsumerRecord]] = {topic: [] for topic in topics}
    for partition, messages in read_ranges(kafka, ranges, isolation="read_uncommitted"):
        found[partition.topic] += map(record_of, messages)
        memory.check(sum(map(len, found.values())), some_of(list(topics), 3))
    return found


def read_wanted(
    kafka: Connection,
    topic: str,
    partitions: Iterable[int],
    wanted: Callable[[bytes | None, bytes | None], bool],
) -> list[ConsumerRecord]:
    """Return the records of these partitions whose key and value are ``wanted``, committed or not,
    by partition in the order of the log.
    """
    ends = end_offsets(kafka, [topic])[topic]
    ranges = {TopicPartition(topic, p): (0, int(ends[p])) for p in partitions}
    found: list[ConsumerRecord] = []
    for _, messages in read_ranges(kafka, ranges, isolation="read_uncommitted"):
        found += [record_of(m) for m in messages if wanted(m.key(), m.value())]
        memory.check(len(found), topic)
    return sorted(found, key=lambda record: (record.partition, record.offset))


def read_key_times(
    kafka: Connection, topics: Sequence[str], *, patience: float, most: int
) -> dict[str, KeyTimes]:
    """Return when the newest ``most`` records of each key of each topic were written. Raises as
    ``read_images`` does.
    """
    if not topics:
        return {}
    reading = _TimesReading(kafka, end_offsets(kafka, topics), most)
    with closing(consumer_of(kafka, "read_committed")) as consumer:
        reading.run(consumer, patience)
    return {topic: reading.key_times(topic) for topic in topics}


def read_group_log(kafka: Connection, group_id: str, since_ms: int) -> list[ConsumerRecord]:
    """Return the records about the group in its partition of ``__consumer_offsets``, from the first
    one that was written at ``since_ms`` or later.
    """
    starts = offsets_at(kafka, [offset_commits.TOPIC], since_ms)[offset_commits.TOPIC]
    ends = end_offsets(kafka, [offset_commits.TOPIC])[offset_commits.TOPIC]
    number = coordinator_partition(group_id, len(ends))
    end, key = int(ends[number]), group_rounds.key_of(group_id)
    ranges = {TopicPartition(offset_commits.TOPIC, number): (int(starts[number]), end)}
    return [
        record_of(message)
        for _, messages in read_ranges(kafka, ranges, isolation="read_uncommitted")
        for message in messages
        if message.key() == key
    ]


class TopicReading:
    """A reading of topics: the newest record of each key, and what was not read.

    ``includes`` has, by topic, the connectors whose source offsets are read; of topics without it
    all are.
    """

    def __init__(
        self,
        kafka: Connection,
        ends: Mapping[str, Mapping[int, Offset]],
        *,
        keep_all: bool = False,
        includes: Mapping[str, Includes] = MappingProxyType({}),
    ):
        self._kafka = kafka
        self._ends = ends
        self.progress = Progress(
            {TopicPartition(t, p): end for t, by in ends.items() for p, end in by.items()}
        )
        self._latest: dict[str, Latest] = {t: {p: {} for p in by} for t, by in ends.items()}
        self._counts = dict.fromkeys(ends, 0)
        self._keep_all = keep_all
        self._includes = includes
        self._owners: dict[str, dict[bytes, bool]] = {topic: {b"": True} for topic in includes}
        self.all: dict[str, list[ConsumerRecord]] = {t: [] for t in ends}

    def run(self, consumer: confluent_kafka.Consumer, patience: float | None) -> None:
        """Read everything. Raises ``ConnectctlError`` as soon as memory does not hold what was
        read.
        """
        for _ in self.rounds(consumer, patience):
            memory.check(self.held, some_of(list(self._latest), 3))

    def rounds(self, consumer: confluent_kafka.Consumer, patience: float | None) -> Iterator[None]:
        """Consume, thousands of records a round, until every partition is at its end, or only open
        transactions are in the way for ``patience`` seconds.

        With None nothing may be in the way: the ends are offsets that readers can reach. An end
        from one leader that cannot be reached with the next one has not been read.
        """
        started = time.monotonic()
        for runs in consume_to(self._kafka, consumer, self.progress):
            now = time.monotonic()
            for partition, messages in runs:
                self._take(partition, messages)
            if runs:
                yield
            held_back = patience is not None and self.progress.is_held_back
            if held_back and now - started > (patience or 0.0) and self._has_open_transactions():
                return
            if not runs and not held_back:
                self.progress.check_answers(self._kafka)

    @property
    def held(self) -> int:
        """Return the number of records in memory."""
        newest = sum(len(by_key) for by in self._latest.values() for by_key in by.values())
        return max(newest, sum(map(len, self.all.values())))

    def given(self) -> Iterator[tuple[str, list[ConsumerRecord]]]:
        """Yield the records of each topic that are in memory, and remove them."""
        for topic, by in self._latest.items():
            for by_key in by.values():
                yield topic, list(map(record_of, by_key.values()))
                by_key.clear()

    def _has_open_transactions(self) -> bool:
        """Return whether open transactions, and not new leaders, hold back all that is not read."""
        pending, held_back = self.progress.pending, self.progress.held_back
        extents = read_extents(self._kafka, sorted({topic for topic, _ in pending}))
        for partition in pending:
            if (
                extents[partition.topic][partition.partition].stable
                >= self.progress.ends[partition]
            ):
                # The consumer got an end that its new leader had before it had caught up: it
                # continues.
                held_back.pop(partition, None)
        return self.progress.is_held_back

    def _take(self, topic_partition: TopicPartition, messages: list[Any]) -> None:
        topic, partition = topic_partition
        self._counts[topic] += len(messages)
        keys, chosen = self._chosen(topic, messages)
        self._latest[topic][partition].update(zip(keys, chosen, strict=True))
        if self._keep_all:
            self.all[topic] += map(record_of, chosen)

    def _chosen(
        self, topic: str, messages: list[Any]
    ) -> tuple[Sequence[bytes | None], Sequence[Any]]:
        """Return the keys and the messages to keep. A key that does not begin as Connect's is kept,
        too: it is a finding.
        """
        keys = list(map(KEY_OF, messages))
        if topic not in self._includes:
            return keys, messages
        owners, included, includes = owners_of(keys), self._owners[topic], self._includes[topic]
        for owner in set(owners) - included.keys():
            included[owner] = includes(owner.decode(errors="surrogatepass"))
        chosen = [included[owner] for owner in owners]
        return list(compress(keys, chosen)), list(compress(messages, chosen))

    def tails(self, topic: str) -> tuple[UnreadTail, ...]:
        """Return the tails of ``topic`` that were not read."""
        ends, held_back = self._ends[topic], self.progress.held_back
        return tuple(
            UnreadTail(partition.partition, held_back[partition], ends[partition.partition])
            for partition in sorted(self.progress.pending)
            if partition.topic == topic
        )

    def image(self, topic: str) -> TopicImage:
        """Return what was read of ``topic``: its newest records by key, and the tails that were
        not read.
        """
        ends, tails = self._ends[topic], self.tails(topic)
        messages = (m for by_key in self._latest[topic].values() for m in by_key.values())
        superseded: list[ConsumerRecord] = []
        records: Collection[ConsumerRecord]
        if self._keep_all:
            newest = {(m.partition(), m.offset()) for m in messages}
            records = tuple(r for r in self.all[topic] if (r.partition, r.offset) in newest)
            superseded = [r for r in self.all[topic] if (r.partition, r.offset) not in newest]
        else:
            records = tuple(map(record_of, messages))
        left_out = frozenset(
            owner.decode(errors="surrogatepass")
            for owner, is_included in self._owners.get(topic, {}).items()
            if not is_included
        )
        return TopicImage(
            topic, self._counts[topic], records, ends, tails, tuple(superseded), left_out
        )


class _TimesReading(TopicReading):
    """A reading that keeps the times of the newest ``most`` records of each key, and no record."""

    def __init__(
        self, kafka: Connection, ends: Mapping[str, Mapping[int, Offset]], most: int
    ) -> None:
        super().__init__(kafka, ends)
        self._most = most
        self._times: dict[str, dict[bytes, deque[int]]] = {topic: {} for topic in ends}
        self._rhythms: dict[str, dict[bytes, Rhythm]] = {topic: {} for topic in ends}

    def _take(self, topic_partition: TopicPartition, messages: list[Any]) -> None:
        times, most = self._times[topic_partition.topic], self._most
        rhythms = self._rhythms[topic_partition.topic]
        for message in messages:
            key = message.key()
            if key is None:
                continue
            if message.value() is None:
                times.pop(key, None)
                rhythms.pop(key, None)
                continue
            kind, at = message.timestamp()
            if not kind or at < 0:
                continue
            times.setdefault(key, deque(maxlen=most)).append(at)
            if key in rhythms:
                rhythms[key].add(at / 1000)
            else:
                rhythms[key] = Rhythm(at / 1000, at / 1000)

    @property
    def held(self) -> int:
        return sum(map(len, self._times.values()))

    def key_times(self, topic: str) -> KeyTimes:
        """Return the times of the keys of ``topic``, and the tails that were not read."""
        times = {key: tuple(found) for key, found in self._times[topic].items()}
        return KeyTimes(topic, times, self.tails(topic), self._rhythms[topic])

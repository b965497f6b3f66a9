"""Reads whole topics to the end as it stood at the start, and gives what compaction would leave.

Only the newest record of a key in a partition is kept, and it is kept as librdkafka's own message
until the end, so that a million records cost a million dictionary writes and no more. What memory
does not hold is refused before more is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import compress
from operator import methodcaller
from types import MappingProxyType
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.clients.librdkafka.group_positions import positions_at
from connectctl.ops.clients.librdkafka.message_runs import stretches
from connectctl.ops.clients.librdkafka.partition_offsets import end_offsets, read_extents
from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka import memory
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.kafka.sentinels import Offset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import read_topic

BATCH = 10_000
WAIT = 0.01
"""Seconds that librdkafka may take to fill a batch; the last one of a topic is never full."""
_IGNORED = {"GROUP_AUTHORIZATION_FAILED", "_ALL_BROKERS_DOWN", "_TRANSPORT"}
"""Errors of the handle that do not end a reading: no group is joined, and lost brokers come back or
time out.
"""

KEY_OF = methodcaller("key")
_ERROR = methodcaller("error")
Latest = dict[int, dict[bytes | None, Any]]
Includes = Callable[[str], bool]
"""Says of a connector whether its keys are read."""


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
    ends = end_offsets(kafka, topics)
    reading = TopicReading(
        kafka,
        ends,
        keep_all=superseded,
        includes=dict.fromkeys(topics, includes) if includes else {},
    )
    with closing(consumer_of(kafka, "read_committed")) as consumer:
        reading.run(consumer, patience)
    return {topic: reading.image(topic) for topic in topics}


def read_tails(
    kafka: Connection, topics: Sequence[str], count: int
) -> dict[str, list[ConsumerRecord]]:
    """The last ``count`` offsets of every partition, transactions ignored."""
    if not topics:
        return {}
    ends = end_offsets(kafka, topics)
    reading = TopicReading(kafka, ends, keep_all=True)
    with closing(consumer_of(kafka, "read_uncommitted")) as consumer:
        reading.run(consumer, None, start=lambda end: max(0, end - count))
    return reading.all


def read_wanted(
    kafka: Connection,
    topic: str,
    partitions: Iterable[int],
    wanted: Callable[[bytes | None, bytes | None], bool],
) -> list[ConsumerRecord]:
    """The records of these partitions whose key and value are ``wanted``, by partition in the order
    of the log.
    """
    ends = end_offsets(kafka, [topic])[topic]
    reading = Sifting(kafka, {topic: {p: ends[p] for p in partitions}}, wanted)
    with closing(consumer_of(kafka, "read_uncommitted")) as consumer:
        reading.run(consumer, None)
    return sorted(reading.all[topic], key=lambda record: (record.partition, record.offset))


def consumer_of(kafka: Connection, isolation: str) -> confluent_kafka.Consumer:
    """A consumer to which partitions are assigned by hand. ``isolation`` is ``read_committed`` or
    ``read_uncommitted``.
    """
    # The group id is a formality: partitions are assigned by hand, nothing joins and nothing is
    # committed.
    return confluent_kafka.Consumer(
        kafka.properties(
            group__id="connectctl",
            isolation__level=isolation,
            enable__auto__commit=False,
            enable__partition__eof=True,
            auto__offset__reset="earliest",
            fetch__wait__max__ms=20,
            queued__min__messages=500_000,
        )
    )


class TopicReading:
    """One pass over some topics: where it has to get, how far it got, what it found.

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
        self._pending = {
            TopicPartition(t, p) for t, by in ends.items() for p, end in by.items() if end > 0
        }
        self._stuck: dict[TopicPartition, int] = {}
        self._latest: dict[str, Latest] = {t: {p: {} for p in by} for t, by in ends.items()}
        self._counts = dict.fromkeys(ends, 0)
        self._keep_all = keep_all
        self._includes = includes
        self._taken: dict[str, dict[bytes, bool]] = {topic: {b"": True} for topic in includes}
        self._only = next(iter(ends)) if len(ends) == 1 else None
        self.all: dict[str, list[ConsumerRecord]] = {t: [] for t in ends}

    def run(
        self, consumer: confluent_kafka.Consumer, patience: float | None, start: Any = None
    ) -> None:
        """Go through all ``rounds``. Raises ``ConnectctlError`` as soon as memory does not hold
        what was read.
        """
        for _ in self.rounds(consumer, patience, start):
            memory.check(self.held, some_of(list(self._latest), 3))

    def rounds(
        self, consumer: confluent_kafka.Consumer, patience: float | None, start: Any = None
    ) -> Iterator[None]:
        """Consume, thousands of records a round, until every partition is at its end, or only open
        transactions are in the way for ``patience`` seconds.

        None: nothing may be in the way, because transactions are ignored, or the ends are such that
        readers get to. An end from one leader that cannot be reached with the next one has not been
        read.
        """
        # From 0, and not from OFFSET_BEGINNING, for which librdkafka first asks where that is, half
        # a second later. A partition that begins later is found by auto.offset.reset.
        begin = start or (lambda end: 0)
        consumer.assign(
            positions_at({p: begin(self._ends[p.topic][p.partition]) for p in self._pending})
        )
        started = received = time.monotonic()
        while self._pending:
            batch = consumer.consume(BATCH, WAIT)
            now = time.monotonic()
            if batch:
                self._take(batch)
                yield
                received = time.monotonic()  # what is done with a round takes its own time
            stuck = patience is not None and self._pending <= self._stuck.keys()
            if stuck and now - started > (patience or 0.0) and self._held_back():
                return
            if now - received > self._kafka.timeout and not stuck:
                names = some_of(list(map(str, sorted(self._pending))), 3)
                raise unanswered(self._kafka, f", and {names} was not read to its end")

    @property
    def held(self) -> int:
        """How many records are in memory."""
        newest = sum(len(by_key) for by in self._latest.values() for by_key in by.values())
        return max(newest, sum(map(len, self.all.values())))

    def given(self) -> Iterator[tuple[str, list[ConsumerRecord]]]:
        """Yield what is in memory of each topic, which then is there no more."""
        for topic, by in self._latest.items():
            for by_key in by.values():
                yield topic, list(map(record_of, by_key.values()))
                by_key.clear()

    def _held_back(self) -> bool:
        """Whether all that is left is held back by open transactions, and not only by leaders that
        are new.
        """
        extents = read_extents(self._kafka, sorted({topic for topic, _ in self._pending}))
        for place in self._pending:
            if (
                extents[place.topic][place.partition].stable
                >= self._ends[place.topic][place.partition]
            ):
                # The consumer got an end that its new leader had before it had caught up: it
                # continues.
                self._stuck.pop(place, None)
        return self._pending <= self._stuck.keys()

    def _take(self, batch: list[Any]) -> None:
        if any(map(_ERROR, batch)):  # a KafkaError cannot be compared to None
            self._take_singly(batch)
            return
        for place, some in stretches(batch, self._only):
            topic, partition = place
            end = self._ends[topic][partition]
            last = some[-1].offset()
            self._stuck.pop(place, None)
            if last >= end - 1:
                self._pending.discard(place)
            kept = some if last < end else [message for message in some if message.offset() < end]
            self._counts[topic] += len(kept)
            keys, chosen = self._chosen(topic, kept)
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
        owners, taken, includes = owners_of(keys), self._taken[topic], self._includes[topic]
        for owner in set(owners) - taken.keys():
            taken[owner] = includes(owner.decode(errors="surrogatepass"))
        chosen = [taken[owner] for owner in owners]
        return list(compress(keys, chosen)), list(compress(messages, chosen))

    def _take_singly(self, batch: Iterable[Any]) -> None:
        """The same with events among the records: what follows an end is more than there was."""
        ends, latest, stuck, counts, keep_all = (
            self._ends,
            self._latest,
            self._stuck,
            self._counts,
            self._keep_all,
        )
        for message in batch:
            if message.error() is not None:
                self._mark(message)
                continue
            topic, partition, offset, key = (
                message.topic(),
                message.partition(),
                message.offset(),
                message.key(),
            )
            end = ends[topic][partition]
            if stuck:
                stuck.pop(TopicPartition(topic, partition), None)
            if offset < end:
                counts[topic] += 1
                if self._chosen(topic, [message])[1]:
                    latest[topic][partition][key] = message
                    if keep_all:
                        self.all[topic].append(record_of(message))
            if offset >= end - 1:
                self._pending.discard(TopicPartition(topic, partition))

    def _mark(self, message: Any) -> None:
        """An event in place of a record: the end of a partition, or an error."""
        error = message.error()
        if error.code() == KafkaError._PARTITION_EOF:
            place = TopicPartition(message.topic(), message.partition())
            if message.offset() >= self._ends[place.topic][place.partition]:
                self._pending.discard(place)
            elif place in self._pending:
                # The end of what is committed, and not the end of the partition: a transaction is
                # open.
                self._stuck[place] = message.offset()
        else:
            raise_unless_ignored(self._kafka, message)

    def image(self, topic: str) -> TopicImage:
        """What was read of ``topic``: its newest records by key, and what of it is still unread."""
        left, ends = (
            sorted(place for place in self._pending if place.topic == topic),
            self._ends[topic],
        )
        held = [UnreadTail(p.partition, self._stuck[p], ends[p.partition]) for p in left]
        messages = (m for by_key in self._latest[topic].values() for m in by_key.values())
        superseded: list[ConsumerRecord] = []
        records: Collection[ConsumerRecord]
        if self._keep_all:
            newest = {(m.partition(), m.offset()) for m in messages}
            records = tuple(r for r in self.all[topic] if (r.partition, r.offset) in newest)
            superseded = [r for r in self.all[topic] if (r.partition, r.offset) not in newest]
        else:
            records = tuple(map(record_of, messages))
        taken = self._taken.get(topic, {})
        left_out = frozenset(
            owner.decode(errors="surrogatepass")
            for owner, is_taken in taken.items()
            if not is_taken
        )
        return TopicImage(
            topic, self._counts[topic], records, ends, tuple(held), tuple(superseded), left_out
        )


class Sifting(TopicReading):
    """A pass over topics too big to keep, for the records whose key and value are ``wanted``."""

    def __init__(
        self,
        kafka: Connection,
        ends: Mapping[str, Mapping[int, Offset]],
        wanted: Callable[[bytes | None, bytes | None], bool],
    ):
        super().__init__(kafka, ends)
        self._wanted = wanted

    def _take(self, batch: list[Any]) -> None:
        ends, wanted = self._ends, self._wanted
        for message in batch:
            if message.error() is not None:
                self._mark(message)
                continue
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            end = ends[topic][partition]
            if offset < end and wanted(message.key(), message.value()):
                self.all[topic].append(record_of(message))
            if offset >= end - 1:
                self._pending.discard(TopicPartition(topic, partition))


def unanswered(kafka: Connection, more: str = "") -> Unreachable:
    """The error of a reading for which nothing came; ``more`` follows why."""
    return Unreachable(
        f"Kafka at {kafka.bootstrap} stopped answering while topics were read",
        why=f"no records received for {kafka.timeout:g} s{more}",
        next_step="Try again, with a longer --timeout if the cluster is slow.",
    )


def raise_unless_ignored(kafka: Connection, message: Any) -> None:
    """Raise what the error in place of a record is, unless librdkafka recovers from it by
    itself.
    """
    if message.error().name() not in _IGNORED:
        topic = message.topic()
        raise kafka.failure(
            message.error(), f"read {topic or 'topics'}", read_topic(topic) if topic else None
        )


def record_of(message: Any) -> ConsumerRecord:
    kind, timestamp = message.timestamp()
    when = timestamp if kind and timestamp >= 0 else None
    return ConsumerRecord(
        message.key(), message.value(), message.partition(), message.offset(), when
    )

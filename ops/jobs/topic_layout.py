"""A Kafka cluster that has the layouts of large topics before anything is read of them, and then
the records that Spark kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.consume import consumer_of
from connectctl.ops.clients.librdkafka.read import TopicReading
from connectctl.ops.clients.protocols import KafkaReads
from connectctl.ops.jobs.frames import in_shares, of_shares
from connectctl.ops.jobs.offsets import ROWS, TEXTS, TOGETHER, Source, in_buckets, texts
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.kafka.sentinels import Offset
from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.cluster.open_transactions import settled
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.record_changes import Where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST = 200_000
"""Records that are kept for newer ones of their keys before they are yielded."""


@dataclass(frozen=True)
class WantedKeys:
    """A topic to read: the keys of ``connectors``, or of all if None.

    ``ends`` are, by partition, the offsets up to which committed records reach; ``client`` are
    librdkafka's properties. Keys that are not Connect's are read, too.
    """

    source: Source
    client: Mapping[str, Any] = field(repr=False)
    timeout: float
    ends: Mapping[int, int]
    connectors: frozenset[str] | None = None


def read(spark: SparkSession, topics: Sequence[WantedKeys], tasks: int, parts: int) -> DataFrame:
    """Return the records (``ROWS``), read by at most ``tasks`` Spark tasks, for ``parts`` others.

    Of each key they have the newest record in each partition, and perhaps older ones.
    """
    shares = split(topics, tasks)
    return of_shares(
        spark,
        shares,
        lambda share: in_buckets(_records(share, newest=False), parts),
        ROWS,
        TOGETHER,
    )


def read_texts(
    spark: SparkSession,
    topics: Sequence[WantedKeys],
    owners: Mapping[Source, frozenset[str] | None],
    tasks: int,
) -> DataFrame:
    """Return the lines of a backup (``TEXTS``) of the topics' ``owners``; see ``texts``."""
    shares = split(topics, tasks)
    return of_shares(
        spark, shares, lambda share: texts(_records(share, newest=True), owners), TEXTS, TOGETHER
    )


def split(topics: Sequence[WantedKeys], tasks: int) -> list[list[WantedKeys]]:
    """Return ``topics`` by partition, in at most ``tasks`` shares."""
    parts = [
        replace(topic, ends={p: end})
        for topic in topics
        for p, end in topic.ends.items()
        if end > 0
    ]
    return in_shares(parts, tasks, lambda part: sum(part.ends.values()))


def _records(
    share: Sequence[WantedKeys], *, newest: bool
) -> Iterator[tuple[Source, list[ConsumerRecord]]]:
    by_cluster: dict[str | None, list[WantedKeys]] = {}
    for part in share:
        by_cluster.setdefault(part.source.bootstrap, []).append(part)
    for bootstrap, parts in by_cluster.items():
        for topic, records in read_share(parts, newest=newest):
            yield Source(bootstrap, topic), records


def read_share(
    parts: Sequence[WantedKeys], *, newest: bool
) -> Iterator[tuple[str, list[ConsumerRecord]]]:
    """Yield each topic of ``parts``, which are of one cluster, with some of its records.

    ``newest``: of each key of a partition only the newest one; else older ones may be among them.
    """
    ends: dict[str, dict[int, Offset]] = {}
    includes = {}
    for part in parts:
        of_topic = ends.setdefault(part.source.topic, {})
        of_topic.update({p: Offset(end) for p, end in part.ends.items()})
        if part.connectors is not None:
            includes[part.source.topic] = part.connectors.__contains__
    kafka = Kafka(parts[0].client, timeout=parts[0].timeout)
    reading = TopicReading(kafka, ends, includes=includes)
    with closing(consumer_of(kafka, "read_committed")) as consumer:
        for _ in reading.rounds(consumer, None):
            if not newest and reading.held > MOST:
                yield from reading.given()
    yield from reading.given()


@dataclass
class _Topic:
    """A requested topic: its cluster, its ends, and its records."""

    kafka: KafkaReads
    extents: Mapping[int, OffsetRange]
    image: TopicImage


class TopicLayout:
    """The layout of the topics of ``sources``: requested images are noted, and are empty until
    ``fill``.

    The config topic, which is small and has the names of other topics, is read once as usual.
    """

    def __init__(self, sources: Sources):
        self._topics: dict[Source, _Topic] = {}
        self._whole = {Source(None, sources.config_topic)} if sources.config_topic else set()
        self._read: dict[str, TopicImage] = {}

        def other(bootstrap: str, overrides: Mapping[str, str]) -> KafkaReads:
            return cast(
                "KafkaReads", _SeenTopic(self, sources.other_kafka(bootstrap, overrides), bootstrap)
            )

        kafka = cast("KafkaReads", _SeenTopic(self, sources.kafka, None))
        self.sources = replace(sources, kafka=kafka, other_kafka=other)

    @property
    def records(self) -> int:
        """Return the maximum number of records in the topics."""
        return sum(topic.image.records for topic in self._topics.values())

    def wanted(self, owners: Mapping[Source, frozenset[str] | None]) -> list[WantedKeys]:
        """Return what to read: of each topic the keys of its ``owners``, or of all if None."""
        found = []
        for source, topic in self._topics.items():
            kafka, wanted = cast("Kafka", topic.kafka), owners.get(source, frozenset())
            ends = {
                p: min(extent.stable, extent.end)
                for p, extent in topic.extents.items()
                if extent.end > extent.first
            }
            found.append(WantedKeys(source, kafka.client, kafka.timeout, ends, wanted))
        return found

    def sources_of(self) -> list[Source]:
        """Return the requested topics."""
        return list(self._topics)

    def fill(
        self, records: Mapping[Source, Collection[ConsumerRecord]]
    ) -> dict[str, dict[Where, Any]]:
        """Let the topics hold ``records``, and give those that are of backups, by connector."""
        for source, topic in self._topics.items():
            topic.image = replace(topic.image, latest=records.get(source, ()))
        saved: dict[str, dict[Where, Any]] = {}
        for source, newest in records.items():
            if source.saved_for is not None:
                saved.setdefault(source.saved_for, {})[source.bootstrap, source.topic] = newest
        return saved

    def image(self, kafka: KafkaReads, source: Source, patience: float) -> TopicImage:
        if source in self._whole:
            if source.topic not in self._read:
                self._read |= kafka.image([source.topic], patience=patience)
            return self._read[source.topic]
        if source not in self._topics:
            first, last = (
                e[source.topic] for e in settled(lambda: kafka.extents([source.topic]), patience)
            )
            extents = {p: replace(extent, stable=last[p].stable) for p, extent in first.items()}
            self._topics[source] = _Topic(kafka, extents, _empty(source.topic, extents))
        return self._topics[source].image


class _SeenTopic:
    """A cluster's ``KafkaReads``, but for images, which are the layout's."""

    def __init__(self, layout: TopicLayout, kafka: KafkaReads, bootstrap: str | None):
        self._layout, self._kafka, self._bootstrap = layout, kafka, bootstrap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)

    def image(self, topics: Sequence[str], *, patience: float, **how: Any) -> dict[str, TopicImage]:
        existing = those_that_exist(self._kafka, *topics)
        return {
            t: self._layout.image(self._kafka, Source(self._bootstrap, t), patience)
            for t in existing
        }


def _empty(topic: str, extents: Mapping[int, OffsetRange]) -> TopicImage:
    held = [
        UnreadTail(p, extent.stable, extent.end)
        for p, extent in extents.items()
        if extent.stable < extent.end
    ]
    records = sum(extent.end - extent.first for extent in extents.values())
    return TopicImage(
        topic, records, (), {p: extent.end for p, extent in extents.items()}, tuple(held)
    )

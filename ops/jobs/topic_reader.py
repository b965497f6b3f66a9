"""Kafka topics as a DataFrame. Each Spark task reads its share of the partitions with the local
engine's own reader.

Not with Spark's Kafka source, which is slower, needs jars and a translation of every client
property: docs/decisions/0005.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.consume import consumer_of
from connectctl.ops.clients.librdkafka.read import TopicReading
from connectctl.ops.jobs.frames import in_shares, of_shares
from connectctl.ops.jobs.offsets import ROWS, TEXTS, TOGETHER, Source, in_buckets, texts
from connectctl.ops.kafka.sentinels import Offset

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord
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

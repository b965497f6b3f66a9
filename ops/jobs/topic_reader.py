"""Kafka topics as a DataFrame. Each Spark task reads its share of the partitions with the local engine's own reader.

Not with Spark's Kafka source, which is slower, needs jars and a translation of every client property: docs/decisions/0005.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.partition_share import read_share
from connectctl.ops.jobs.frames import of_shares
from connectctl.ops.jobs.offsets import ROWS, TEXTS, TOGETHER, Source, in_buckets, texts
from connectctl.ops.operations.offsets.plain_records import Owners

if TYPE_CHECKING:
    from connectctl.ops.jobs.frames import Tuples
    from connectctl.ops.kafka.records import Row
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class WantedKeys:
    """What to read of one topic: the keys of ``connectors``, or of all for None.

    ``ends`` are, by partition, the offsets up to which committed records reach; ``client`` are librdkafka's properties.
    ``strangers``: it matters whether there are keys that are not Connect's.
    """

    source: Source
    client: Mapping[str, Any] = field(repr=False)
    timeout: float
    ends: Mapping[int, int]
    connectors: frozenset[str] | None = None
    strangers: bool = True


def read(spark: SparkSession, topics: Sequence[WantedKeys], tasks: int, parts: int) -> DataFrame:
    """The records (``ROWS``), read by at most as many tasks as ``tasks`` says, for ``parts`` others.

    Of each key the newest in each partition, and perhaps older ones.
    """

    def rows(share: Sequence[WantedKeys]) -> Tuples:
        return in_buckets(_blocks(share, newest=False), parts)

    return of_shares(spark, split(topics, tasks), rows, ROWS, TOGETHER)


def read_texts(
    spark: SparkSession, topics: Sequence[WantedKeys], owners: Mapping[Source, frozenset[str] | None], tasks: int
) -> DataFrame:
    """The lines of a backup (``TEXTS``) of the topics' ``owners``; see ``texts``."""

    def rows(share: Sequence[WantedKeys]) -> Tuples:
        return texts(_blocks(share, newest=True), owners)

    return of_shares(spark, split(topics, tasks), rows, TEXTS, TOGETHER)


def split(topics: Sequence[WantedKeys], tasks: int) -> list[list[WantedKeys]]:
    """The same in as many shares: the biggest partitions first, each to the share that has the least to do."""
    parts = [(end, topic, partition) for topic in topics for partition, end in topic.ends.items() if end > 0]
    shares: list[tuple[int, list[WantedKeys]]] = [(0, []) for _ in range(min(tasks, len(parts)))]
    for end, topic, partition in sorted(parts, key=lambda part: -part[0]):
        number = min(range(len(shares)), key=lambda n: shares[n][0])
        load, share = shares[number]
        shares[number] = (load + end, [*share, replace(topic, ends={partition: end})])
    return [share for _, share in shares]


def _blocks(share: Sequence[WantedKeys], *, newest: bool) -> Iterator[tuple[Source, list[Row]]]:
    by_cluster: dict[str | None, list[WantedKeys]] = {}
    for part in share:
        by_cluster.setdefault(part.source.bootstrap, []).append(part)
    for bootstrap, parts in by_cluster.items():
        ends: dict[str, dict[int, int]] = {}
        for part in parts:
            ends.setdefault(part.source.topic, {}).update(part.ends)
        wanted = {part.source.topic: part.connectors for part in parts}
        strangers = {part.source.topic for part in parts if part.strangers}
        kafka = Kafka(parts[0].client, timeout=parts[0].timeout)
        shared = read_share(kafka, ends, wanted, strangers, owner_of=Owners().of, newest=newest)
        for topic, are_strangers, rows in shared:
            yield Source(bootstrap, topic, strangers=are_strangers), rows

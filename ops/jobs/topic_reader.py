"""Kafka topics as a DataFrame. Each Spark task reads its share of the partitions with the local engine's own reader.

Not with Spark's Kafka source, which is slower, needs jars and a translation of every client property: docs/decisions/0005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.partition_share import read_share
from connectctl.ops.jobs.offsets import ROWS, Blocks, Source, in_buckets

if TYPE_CHECKING:
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
    """The newest record of every key (``ROWS``), read by at most as many tasks as ``tasks`` says, for ``parts`` others."""

    def batches(blocks: Blocks) -> Iterator[Any]:
        return in_buckets(blocks, parts)

    return read_as(spark, topics, tasks, ROWS, batches)


def read_as(
    spark: SparkSession,
    topics: Sequence[WantedKeys],
    tasks: int,
    schema: str,
    batches: Callable[[Blocks], Iterator[Any]],
) -> DataFrame:
    """What ``batches`` gives of each share of the topics: Arrow's batches of ``schema``."""
    shares = split(topics, tasks)

    def of_shares(numbers: Iterator[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from batches(_blocks(shares[number]))

    return spark.range(0, len(shares), 1, max(len(shares), 1)).mapInArrow(of_shares, schema)


def split(topics: Sequence[WantedKeys], tasks: int) -> list[list[WantedKeys]]:
    """The same in as many shares: the biggest partitions first, each to the share that has the least to do."""
    parts = [(end, topic, partition) for topic in topics for partition, end in topic.ends.items() if end > 0]
    shares: list[tuple[int, list[WantedKeys]]] = [(0, []) for _ in range(min(tasks, len(parts)))]
    for end, topic, partition in sorted(parts, key=lambda part: -part[0]):
        number = min(range(len(shares)), key=lambda n: shares[n][0])
        load, share = shares[number]
        shares[number] = (load + end, [*share, replace(topic, ends={partition: end})])
    return [share for _, share in shares]


def _blocks(share: Sequence[WantedKeys]) -> Iterator[tuple[Source, list[Row]]]:
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
        for topic, are_strangers, rows in read_share(kafka, ends, wanted, strangers):
            yield Source(bootstrap, topic, strangers=are_strangers), rows

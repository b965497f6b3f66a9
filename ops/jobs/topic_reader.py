"""Kafka topics as a DataFrame. Each Spark task reads its share of the partitions with the local engine's own reader.

Not with Spark's Kafka source, which is slower, needs jars and a translation of every client property: docs/decisions/0005.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.partition_share import read_share
from connectctl.ops.connect.source_keys import SourceKey, parse_key
from connectctl.ops.jobs.offsets import SCHEMA, Row, Source, named, to_arrow

if TYPE_CHECKING:
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


def read(spark: SparkSession, topics: Sequence[WantedKeys], tasks: int) -> DataFrame:
    """The newest records of every topic's partitions, read by at most as many tasks as ``tasks`` says."""
    shares = split(topics, tasks)

    def records(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from to_arrow(_rows(shares[number]))

    return spark.range(0, len(shares), 1, max(len(shares), 1)).mapInArrow(records, SCHEMA)


def split(topics: Sequence[WantedKeys], tasks: int) -> list[list[WantedKeys]]:
    """The same in as many shares: the biggest partitions first, each to the share that has the least to do."""
    parts = [(end, topic, partition) for topic in topics for partition, end in topic.ends.items() if end > 0]
    shares: list[tuple[int, list[WantedKeys]]] = [(0, []) for _ in range(min(tasks, len(parts)))]
    for end, topic, partition in sorted(parts, key=lambda part: -part[0]):
        number = min(range(len(shares)), key=lambda n: shares[n][0])
        load, share = shares[number]
        shares[number] = (load + end, [*share, replace(topic, ends={partition: end})])
    return [share for _, share in shares]


def _rows(share: Sequence[WantedKeys]) -> Iterator[Row]:
    by_cluster: dict[str | None, list[WantedKeys]] = {}
    for part in share:
        by_cluster.setdefault(part.source.bootstrap, []).append(part)
    for bootstrap, parts in by_cluster.items():
        ends: dict[str, dict[int, int]] = {}
        for part in parts:
            ends.setdefault(part.source.topic, {}).update(part.ends)
        chooser = Chooser(parts)
        kafka = Kafka(parts[0].client, timeout=parts[0].timeout)
        for topic, record in read_share(kafka, ends, chooser):
            place = (record.partition, record.offset, record.timestamp)
            yield Row(named(Source(bootstrap, topic)), record.key, record.value, *place)


class Chooser:
    """Whose keys are wanted of each topic. Where ``strangers`` are, one key that is not Connect's is kept of each topic."""

    def __init__(self, wanted: Sequence[WantedKeys]):
        self._connectors = {part.source.topic: part.connectors for part in wanted}
        self._strangers = {part.source.topic for part in wanted if part.strangers}
        self._marks = {topic: _marks(names) for topic, names in self._connectors.items()}

    def __call__(self, topic: str, raw: bytes | None) -> bool:
        names, unmarked = self._connectors[topic], topic not in self._strangers
        # Most of a big topic is other connectors', and reading their keys is most of the work.
        if unmarked and (raw is None or not any(mark in raw for mark in self._marks[topic])):
            return False
        key = parse_key(raw)
        if isinstance(key, SourceKey):
            return names is None or key.connector in names
        self._strangers.discard(topic)
        return not unmarked


def _marks(names: frozenset[str] | None) -> list[bytes]:
    """Bytes of which one is in every key of these connectors: the name in quotation marks, or an escape that spells it."""
    return [b""] if names is None else [b"\\", *(f'"{name}"'.encode(errors="surrogatepass") for name in names)]

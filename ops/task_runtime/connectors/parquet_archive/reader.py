"""Reads exactly the files that an archive's manifest names, and removes those that it does not
name.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.files import NAME, ArchiveDirectory
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import (
    TIMEOUT,
    ArchivedFile,
    ends_of,
    read_manifest,
)

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestamp_type string, key "
    "binary, value binary, headers array<struct<key: string, value: binary>>"
)
"""The columns of an archive, for Spark."""
OLDER_THAN = 3600.0
"""Seconds."""


@dataclass(frozen=True)
class Orphan:
    """A file that the manifest does not name; ``age`` is in seconds, ``bytes`` its size."""

    name: str
    age: float
    bytes: int


def archived(
    spark: SparkSession,
    directory: str,
    manifest_topic: str,
    client: Mapping[str, Any],
    *,
    timeout: float = TIMEOUT,
) -> DataFrame:
    """Return each record of the archive once, in the columns of ``SCHEMA``: the files that
    ``manifest_topic`` names, and no other.

    ``directory`` is an absolute path or a URI as Spark knows it (``s3a://…`` where the connector
    has ``s3://…``), ``client`` are librdkafka's properties with ``bootstrap.servers``, ``timeout``
    is in seconds. What is archived afterwards is not in it. Raises ``ConnectctlError`` where the
    manifest cannot be read to its end, and Spark's ``AnalysisException`` where one of its files is
    missing.
    """
    files = read_manifest(client, manifest_topic, timeout)
    if not files:
        return spark.createDataFrame([], SCHEMA)
    root = spark_root(directory)
    return spark.read.schema(SCHEMA).parquet(*(f"{root}/{each.name}" for each in files))


def spark_root(directory: str) -> str:
    """Return ``directory``, an absolute path or a URI, as Spark names it: its name of pyarrow's
    ``s3`` is ``s3a``.
    """
    root = directory.rstrip("/") if "://" in directory else f"file://{directory.rstrip('/')}"
    return f"s3a{root[2:]}" if root.startswith("s3://") else root


def sweep(
    directory: str,
    manifest: Collection[ArchivedFile],
    *,
    older_than: float = OLDER_THAN,
    remove: bool = False,
    now: float | None = None,
) -> tuple[Orphan, ...]:
    """Return the orphans of an archive, and remove them with ``remove``: files that attempts wrote
    and could not commit.

    ``manifest`` was read from the archive's topic before. A file is an orphan if it has a name of
    an archive, is not in the manifest, was last changed more than ``older_than`` seconds before
    ``now`` (since the epoch), and begins before the end of its partition in the manifest: a file
    that begins later may be that of a live attempt, whatever its age. Raises ``ConnectctlError`` if
    the directory cannot be used.
    """
    archive = ArchiveDirectory(directory)
    found = orphans_among(
        archive.listed(), manifest, older_than=older_than, now=time.time() if now is None else now
    )
    if remove:
        for each in found:
            archive.remove(each.name)
    return found


def orphans_among(
    listed: Iterable[tuple[str, FileInfo]],
    manifest: Collection[ArchivedFile],
    *,
    now: float,
    older_than: float = OLDER_THAN,
) -> tuple[Orphan, ...]:
    """Return the orphans as ``sweep`` does, of the files that ``ArchiveDirectory.listed`` returned,
    by name.
    """
    named, ends, found = {each.name for each in manifest}, ends_of(manifest), list[Orphan]()
    for name, facts in listed:
        if name in named or facts.mtime_ns is None or not _is_replaced(name, ends):
            continue
        age = now - facts.mtime_ns / 1e9
        if age > older_than:
            found.append(Orphan(name, age, facts.size))
    return tuple(sorted(found, key=lambda each: each.name))


def _is_replaced(name: str, ends: Mapping[TopicPartition, int]) -> bool:
    """Return whether it is a file of an archive whose first offset is archived in another file, so
    that it cannot be committed.
    """
    parts = NAME.fullmatch(name)
    if parts is None:
        return False
    return int(parts["first"]) < ends.get(
        TopicPartition(parts["topic"], int(parts["partition"])), 0
    )

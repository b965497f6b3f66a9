"""The manifest topic of an archive, which names its files. A file without a record here is not in
the archive.

A record is written in the transaction that commits the group's offsets after its file, so that both
exist or neither.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.protocols import KafkaReads
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord

TIMEOUT = 60.0
"""Seconds to read a manifest topic."""


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file of the archive. ``name`` is relative to the directory; ``first`` and ``last`` are
    offsets of records that are in it, ``bytes`` the file's size.
    """

    topic: str
    partition: int
    first: int
    last: int
    rows: int
    bytes: int
    name: str

    @property
    def topic_partition(self) -> TopicPartition:
        """Return the partition of its records."""
        return TopicPartition(self.topic, self.partition)

    def record(self, manifest_topic: str) -> ProducerRecord:
        """Return its record in the manifest: the key is JSON with ``topic``, ``partition`` and
        ``first``, the value JSON with ``file``, ``first``, ``last``, ``rows`` and ``bytes``.
        """
        key = {"topic": self.topic, "partition": self.partition, "first": self.first}
        value = {
            "file": self.name,
            "first": self.first,
            "last": self.last,
            "rows": self.rows,
            "bytes": self.bytes,
        }
        return ProducerRecord(manifest_topic, _json(key), _json(value))


def read_manifest(
    client: Mapping[str, Any], topic: str, timeout: float = TIMEOUT
) -> tuple[ArchivedFile, ...]:
    """Return the files that ``topic`` names, by topic, partition and offset.

    ``client`` are librdkafka's properties, ``timeout`` is in seconds, open transactions included.
    Raises ``BadInput`` where there is no such topic, ``TimedOut`` where its end cannot be read, and
    what ``files_of`` raises.
    """
    return manifest_of(Kafka(client, timeout=timeout), topic, timeout)


def manifest_of(
    kafka: KafkaReads, topic: str, timeout: float = TIMEOUT
) -> tuple[ArchivedFile, ...]:
    """Return the files as ``read_manifest`` does, over an open connection."""
    return files_of(newest_records(kafka, topic, timeout))


def newest_records(
    kafka: KafkaReads, topic: str, timeout: float = TIMEOUT
) -> tuple[ConsumerRecord, ...]:
    """Return the newest record of each key of a manifest topic. Raises as ``read_manifest`` does,
    but for what is in them.
    """
    image = kafka.image([topic], patience=timeout).get(topic)
    if image is None:
        hint = "Give CONNECTOR-archive; the first run of the connector creates it."
        raise BadInput(
            f"The manifest topic {topic} does not exist", next_step=hint, code="no-topic"
        )
    if image.held_back:
        why = "a transaction is open on it"
        raise TimedOut(
            f"Could not read {topic} to its end (open transaction)", why=why, next_step="Try again."
        )
    return tuple(image.latest)


def files_of(records: Iterable[ConsumerRecord]) -> tuple[ArchivedFile, ...]:
    """Return the files that the newest ``records`` of a manifest topic name, in order. Raises
    ``ConnectctlError`` for a record that is not of a manifest, and where two files have the same
    offsets.
    """
    found = described(records)
    for before, after in pairwise(found):
        if before.topic_partition == after.topic_partition and after.first <= before.last:
            raise ConnectctlError(
                f"The archive has offsets of {after.topic_partition} twice",
                why=f"{before.name} and {after.name} overlap, because the group's offsets were "
                "set back",
                next_step="Delete one of their records from the manifest topic.",
            )
    return found


def described(records: Iterable[ConsumerRecord]) -> tuple[ArchivedFile, ...]:
    """Return the files as ``files_of`` does, also if they overlap."""
    found = [_file(each) for each in records if each.value is not None]
    return tuple(sorted(found, key=lambda each: (each.topic, each.partition, each.first)))


def names_in(records: Iterable[ConsumerRecord]) -> frozenset[str]:
    """Return the names of files in ``records`` of what may be a manifest topic."""
    found: set[str] = set()
    for each in records:
        with suppress(ConnectctlError):
            found.add(_file(each).name)
    return frozenset(found)


def ends_of(files: Collection[ArchivedFile]) -> dict[TopicPartition, int]:
    """Return the offset after the last archived record, by partition."""
    ends: dict[TopicPartition, int] = {}
    for each in files:
        ends[each.topic_partition] = max(each.last + 1, ends.get(each.topic_partition, 0))
    return ends


def _file(record: ConsumerRecord) -> ArchivedFile:
    try:
        key, value = json.loads(record.key or b""), json.loads(record.value or b"")
        first, last, rows, size = (int(value[name]) for name in ("first", "last", "rows", "bytes"))
        return ArchivedFile(
            str(key["topic"]), int(key["partition"]), first, last, rows, size, str(value["file"])
        )
    except (ValueError, KeyError, TypeError) as e:
        raise ConnectctlError(
            f"Record {record.partition}:{record.offset} of the manifest topic does not describe a "
            "file",
            why=f"{type(e).__name__}: {e}",
            next_step="Give the topic CONNECTOR-archive of a ParquetArchive.",
        ) from e


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()

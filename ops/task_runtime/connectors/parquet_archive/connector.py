"""``ParquetArchive``: topics as Parquet files, each record once.

Rows are collected by partition and become a file at each commit, at ``max.rows`` or at
``max.bytes``. The file's name is written to the manifest topic in the transaction that commits the
group's offsets, so that a task that may not commit offsets any more cannot add files either. Files
that were written and never committed are orphans, which ``reader.sweep`` finds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from connectctl.ops.connect.internal_topics import manifest_topic
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.files import (
    ArchiveDirectory,
    Row,
    file_name,
    row_of,
    size_of,
)
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.spi.connector import Outlook, Setting, not_above_zero
from connectctl.ops.task_runtime.spi.converters import BYTES as BYTE_ARRAYS
from connectctl.ops.task_runtime.spi.converters import KINDS
from connectctl.ops.task_runtime.spi.sink import SinkConnector, SinkRecord, SinkTask
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord

CONVERTERS = ("key.converter", "value.converter", "header.converter")
DIRECTORY, MAX_ROWS, MAX_BYTES = "directory", "max.rows", "max.bytes"
ROWS, BYTES = 100_000, 64 * 1024 * 1024


@dataclass
class Uncommitted:
    """A partition's files after its committed offset, and the rows after these, of ``size`` bytes."""

    files: list[ArchivedFile] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    size: int = 0

    def add(self, row: Row) -> None:
        """Add the next row; one that was read again replaces all rows from it on."""
        self.forget_from(row[0])
        self.rows.append(row)
        self.size += size_of(row)

    def forget_from(self, offset: int) -> None:
        """The partition is read again from ``offset``. Files that have it stay where they are, as
        orphans.
        """
        if self._last < offset:
            return
        kept = [each for each in self.files if each.last < offset]
        assert all(each.first >= offset for each in self.files[len(kept) :]), (
            "commits end where files end"
        )
        self.files = kept
        self.rows = [row for row in self.rows if row[0] < offset]
        self.size = sum(map(size_of, self.rows))

    @property
    def _last(self) -> int:
        if self.rows:
            return self.rows[-1][0]
        return self.files[-1].last if self.files else -1


class ParquetArchiveTask(SinkTask):
    """One task: its partitions, each in its own files."""

    def start(self, configs: Mapping[str, str]) -> None:
        self._manifest = manifest_topic(configs["name"])
        self._directory = self.directory(configs[DIRECTORY])
        self._most_rows, self._most_bytes = (
            int(configs.get(MAX_ROWS, ROWS)),
            int(configs.get(MAX_BYTES, BYTES)),
        )
        self._uncommitted: dict[TopicPartition, Uncommitted] = {}

    def directory(self, uri: str) -> ArchiveDirectory:
        return ArchiveDirectory(uri)

    def file_name(self, topic_partition: TopicPartition, rows: Sequence[Row]) -> str:
        return file_name(topic_partition, rows[0][0], rows[-1][0])

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            held = self._uncommitted.get(partition)
            if held is None:
                held = self._uncommitted[partition] = Uncommitted()
            held.add(row_of(record))
            if len(held.rows) >= self._most_rows or held.size >= self._most_bytes:
                self._write(partition, held)

    def flush(self, offsets: GroupOffsets) -> None:
        for partition, offset in offsets.items():
            held = self._uncommitted.get(partition)
            if held is not None:
                held.forget_from(offset.offset)  # it was rewound, and the records come again
                self._write(partition, held)

    def transaction_records(self, offsets: GroupOffsets) -> Sequence[ProducerRecord]:
        """Return the manifest's records of the files that end before ``offsets``."""
        return [each.record(self._manifest) for each in self._ended(offsets)]

    def committed(self, offsets: GroupOffsets) -> None:
        for each in self._ended(offsets):
            self._uncommitted[each.topic_partition].files.remove(each)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._uncommitted.pop(partition, None)

    def _ended(self, offsets: GroupOffsets) -> list[ArchivedFile]:
        empty = Uncommitted()
        return [
            file
            for partition, offset in offsets.items()
            for file in self._uncommitted.get(partition, empty).files
            if file.last < offset.offset
        ]

    def _write(self, topic_partition: TopicPartition, held: Uncommitted) -> None:
        if held.rows:
            held.files.append(
                self._directory.write(
                    self.file_name(topic_partition, held.rows), topic_partition, held.rows
                )
            )
            held.rows, held.size = [], 0


class ParquetArchive(SinkConnector):
    """Tasks share the partitions and the directory; no two of them write the same file."""

    task = ParquetArchiveTask
    exactly_once = True
    default_converters = dict.fromkeys(CONVERTERS, BYTE_ARRAYS)
    settings = (
        Setting("topics", "Topics to read, separated by commas; or set topics.regex."),
        Setting(
            DIRECTORY,
            "Absolute path or URI of the archive, the same one on every executor.",
            required=True,
        ),
        Setting(MAX_ROWS, "Maximum number of rows of a file.", default=str(ROWS)),
        Setting(
            MAX_BYTES,
            "A file ends when its keys, values and headers have that many bytes.",
            default=str(BYTES),
        ),
    )

    @classmethod
    def internal_topics(cls, name: str) -> Mapping[str, Mapping[str, str]]:
        return {manifest_topic(name): {"cleanup.policy": "compact"}}

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        """Return the errors of a directory that is not absolute, and of limits below 1."""
        found = super().validate(configs)
        directory = configs.get(DIRECTORY, "")
        if directory and not directory.startswith("/") and "://" not in directory:
            found[DIRECTORY] = [
                f"Invalid value {directory} for configuration {DIRECTORY}: it must be an absolute "
                "path or a URI"
            ]
        return found | not_above_zero(configs, MAX_ROWS, MAX_BYTES)

    def outlook(self, configs: Mapping[str, str]) -> Outlook:
        """Name the converters that do not keep the bytes of the topics."""
        named = {name: configs.get(name, BYTE_ARRAYS) for name in CONVERTERS}
        return Outlook(
            notes=[
                f"{name}={kind}: the archive has what it converts to, not the bytes of the topics. "
                "Leave it out to keep them."
                for name, kind in named.items()
                if KINDS.get(kind) != BYTE_ARRAYS
            ]
        )

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.configs) for _ in range(max_tasks)]

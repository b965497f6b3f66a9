"""The files of an archive: their names and columns, and how they come into its directory.

Columns: ``topic`` string, ``partition`` int, ``offset`` long, ``timestamp`` (UTC, ms),
``timestamp_type`` string, ``key`` and ``value`` binary, ``headers`` list of ``key`` string and
``value`` binary.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from connectctl.ops.config import whole_file
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.filestream_sink import line_of
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile
from connectctl.ops.task_runtime.spi.sink import SinkRecord
from pyarrow import fs, parquet

NAME = re.compile(
    r"(?P<topic>[^/]+)/(?P<partition>\d+)/\.?(?P<first>\d+)-(?P<last>\d+)-[0-9a-f]{32}\.parquet(\.tmp)?"
)
"""A file that this module made, or was about to make, relative to the directory."""
Row = tuple[int, int | None, str, bytes | None, bytes | None, list[dict[str, Any]]]
"""Offset, timestamp (ms), its type, key, value and headers."""


def file_name(topic_partition: TopicPartition, first: int, last: int) -> str:
    """Return a name that no attempt uses again. A name of offsets alone would be overwritten by an
    attempt that was replaced and does not know it.
    """
    topic, partition = topic_partition
    return f"{topic}/{partition}/{first}-{last}-{uuid.uuid4().hex}.parquet"


def row_of(record: SinkRecord) -> Row:
    """Return the row of ``record``. Text is UTF-8, bytes are unchanged, null is null, anything else
    is JSON.
    """
    headers = [{"key": key, "value": _bytes(value)} for key, value in record.headers or ()]
    when = record.timestamp
    return (
        record.offset,
        when,
        str(record.timestamp_type),
        _bytes(record.key),
        _bytes(record.value),
        headers,
    )


def size_of(row: Row) -> int:
    """Return the bytes of its key, value and headers, and some for the rest."""
    _, _, _, key, value, headers = row
    extra = sum(len(each["key"]) + len(each["value"] or b"") for each in headers) if headers else 0
    return 32 + len(key or b"") + len(value or b"") + extra


def table_of(topic_partition: TopicPartition, rows: Sequence[Row]) -> pa.Table:
    """Return ``rows`` of one partition as columns."""
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    offset, when, kind, key, value, header = zip(*rows, strict=True)
    columns = {
        "topic": pa.array([topic_partition.topic] * len(rows), pa.string()),
        "partition": pa.array([topic_partition.partition] * len(rows), pa.int32()),
        "offset": pa.array(offset, pa.int64()),
        "timestamp": pa.array(when, pa.timestamp("ms", tz="UTC")),
        "timestamp_type": pa.array(kind, pa.string()),
        "key": pa.array(key, pa.binary()),
        "value": pa.array(value, pa.binary()),
        "headers": pa.array(header, headers),
    }
    return pa.table(columns)


class ArchiveDirectory:
    """The directory at ``uri``: an absolute path, or a URI that ``pyarrow.fs`` knows. Raises
    ``ConnectctlError``, here as in its methods, where it cannot be used.
    """

    def __init__(self, uri: str):
        self._uri = uri
        self._made: set[str] = set()
        with self._failing("open"):
            self._files, self._root = _opened(uri)

    def write(
        self, name: str, topic_partition: TopicPartition, rows: Sequence[Row]
    ) -> ArchivedFile:
        """Write ``rows`` to ``name``; what it returns is on the disk."""
        path = self._path(name)
        directory, _, last = path.rpartition("/")
        # readers of directories leave out what begins with a dot
        temporary = f"{directory}/.{last}.tmp"
        with self._failing("write to"):
            self._make(directory)
            table = table_of(topic_partition, rows)
            with self._files.open_output_stream(temporary) as stream:
                parquet.write_table(table, stream, compression="zstd")
            self._sync(temporary)
            size = self._files.get_file_info(temporary).size
            self._files.move(temporary, path)
            self._sync(directory)
        return ArchivedFile(*topic_partition, rows[0][0], rows[-1][0], len(rows), size, name)

    def listed(self) -> list[tuple[str, fs.FileInfo]]:
        """Return its files: names relative to it, and pyarrow's file infos; nothing if it does not
        exist.
        """
        with self._failing("list"):
            infos = self._files.get_file_info(
                fs.FileSelector(self._root, recursive=True, allow_not_found=True)
            )
        # Some file systems list paths with a leading slash, or without one.
        return [
            (each.path.strip("/").removeprefix(self._root.strip("/")).lstrip("/"), each)
            for each in infos
            if each.is_file
        ]

    def remove(self, name: str) -> None:
        with self._failing("delete from"):
            self._files.delete_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _make(self, directory: str) -> None:
        if directory in self._made:
            return
        self._files.create_dir(directory, recursive=True)
        for each in (directory, *map(str, Path(directory).parents[:2])):
            self._sync(each)
        self._made.add(directory)

    def _sync(self, path: str) -> None:
        """Have a local file or directory on the disk; other file systems have what was closed."""
        if self._files.type_name == "local":
            whole_file.sync(path)

    @contextmanager
    def _failing(self, action: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as e:  # pyarrow's ArrowInvalid is a ValueError
            hint = "Check directory, its permissions and its space, on every executor."
            why = (isinstance(e, OSError) and e.strerror) or str(e).splitlines()[0]
            raise ConnectctlError(f"Could not {action} {self._uri}", why=why, next_step=hint) from e


def _opened(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system, and the directory's path in it without a slash at its end."""
    if "://" not in uri:
        return fs.LocalFileSystem(), str(Path(uri).absolute())
    files, root = fs.FileSystem.from_uri(uri)
    return files, root.rstrip("/")


def _bytes(value: Any) -> bytes | None:
    return None if value is None else line_of(value)

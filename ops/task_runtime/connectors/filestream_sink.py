"""Values as lines of a file: Kafka's FileStreamSink.

Each value is appended to the file with a line feed. Text and bytes are written unchanged, null as
``null``, anything else as JSON, where Java writes the result of its objects' ``toString``.
Committed records are on the disk; after a failure the lines after them are written again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.spi.connector import Setting
from connectctl.ops.task_runtime.spi.sink import SinkConnector, SinkRecord, SinkTask


def line_of(value: Any) -> bytes:
    """Return the line of ``value``, without its end. Raises ``TypeError`` for a value that JSON
    does not have.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="replace")
    return connect_json(value).encode()


class FileStreamSinkTask(SinkTask):
    """Appends to ``file``, to standard output where there is none."""

    _file: IO[bytes] | None = None

    def start(self, configs: Mapping[str, str]) -> None:
        self._path = configs.get("file")
        if self._path is None:
            return
        try:
            self._file = open(self._path, "ab")  # noqa: PTH123, SIM115  # kept open until stop
        except OSError as e:
            hint = "Check file, its directory and its permissions on every executor."
            raise ConnectctlError(
                f"Could not open or create {self._path}", why=e.strerror, next_step=hint
            ) from e

    def put(self, records: Sequence[SinkRecord]) -> None:
        lines = b"".join(line_of(record.value) + b"\n" for record in records)
        if self._file is None:
            sys.stdout.buffer.write(lines)
            return
        try:
            self._file.write(lines)
        except OSError as e:
            raise self._failed(e) from e

    def flush(self, offsets: GroupOffsets) -> None:
        if self._file is None:
            sys.stdout.flush()
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as e:
            raise self._failed(e) from e

    def stop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _failed(self, error: OSError) -> ConnectctlError:
        return ConnectctlError(
            f"Could not write to {self._path}",
            why=error.strerror,
            next_step="Free space on its disk, or use another file.",
        )


class FileStreamSink(SinkConnector):
    """Every task appends to the same file."""

    task = FileStreamSinkTask
    settings = (
        Setting("topics", "Topics to read, separated by commas; or set topics.regex."),
        Setting("file", "File to append to; standard output of the task where it is missing."),
    )

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.configs) for _ in range(max_tasks)]

"""Lines of a file as records. Its offsets are those of Kafka's FileStreamSource: either resumes
where the other stopped.

The source partition is ``{"filename": FILE}``, the source offset ``{"position": N}``, as
``FileStreamSourceTask`` writes them. A line ends with a line feed, a carriage return or both; one
without an end waits for it. Positions are bytes. The Java connector counts characters and skips as
many bytes, so that it loses its position in a file that is not ASCII: no task can resume where it
stopped in such a file, and a task here resumes at the byte that the offset has.

A line is its bytes, whatever they are. For converters other than those of text and bytes it is a
string: U+FFFD replaces bytes that are not UTF-8, as in ``FileStreamSourceTask``, whose reader
decodes every line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.connector import (
    ExactlyOnceSupport,
    Partition,
    Setting,
    SourceConnector,
    SourceRecords,
    SourceTask,
)
from connectctl.ops.task_runtime.spi.converters import BYTES, STRING, converter_class

CHUNK = 1 << 20
DEFAULT_BATCH = 20_000
"""Lines of a poll. Kafka's own gives 2000; each poll is a transaction, whose end takes as long as
thousands of lines.
"""
MOST_BYTES = 16 << 20
"""A poll of long lines ends with fewer of them."""
_LINE = re.compile(rb"([^\r\n]*)(\r\n|\n|\r(?!\Z))")
"""A line and its end; a carriage return at the very end of what was read may be half of an end."""


@dataclass(frozen=True)
class Lines:
    """Lines without their ends. ``widths`` are their bytes with them, None where each has one byte
    more than its text.
    """

    texts: Sequence[bytes] = ()
    widths: Sequence[int] | None = None

    def width(self, start: int, end: int) -> int:
        """Return the size in the file of the lines from ``start`` to before ``end``, in bytes."""
        if self.widths is None:
            return sum(map(len, self.texts[start:end])) + end - start
        return sum(self.widths[start:end])


def lines_of(content: bytes) -> tuple[Lines, bytes]:
    """Return the whole lines of ``content``, and what is left of it."""
    if b"\r" not in content:
        *texts, rest = content.split(b"\n")
        return Lines(texts), rest
    found = list(_LINE.finditer(content))
    widths = [line.end() - line.start() for line in found]
    return Lines([line.group(1) for line in found], widths), content[sum(widths) :]


class FileStreamTask(SourceTask):
    """Reads one file, and waits for more at its end unless ``until.end`` is true."""

    def start(self, configs: Mapping[str, str]) -> None:
        self._path = configs["file"]
        self._topic = configs["topic"]
        self._batch = int(configs.get("batch.size", DEFAULT_BATCH))
        # Other converters and transformations take bytes in another way than text.
        keeps = converter_class(configs, "value.converter") in (STRING, BYTES)
        self._as_text = not keeps or bool(configs.get("transforms", "").strip())
        self._bounded = configs.get("until.end", "false").lower() == "true"
        self._partition: Partition = {"filename": self._path}
        stored = self.context.offsets.offset(self._partition) or {}
        self._position = int(stored.get("position", 0))
        self._read = Lines()
        self._given = 0
        self._rest = b""
        self._file: IO[bytes] | None = None
        self._at_end = False

    def poll(self) -> SourceRecords | None:
        values: list[Any] = []
        begun = self._position
        while len(values) < self._batch and self._position - begun < MOST_BYTES:
            if self._given == len(self._read.texts) and not self._fill():
                break
            values += self._lines(self._batch - len(values))
        return (
            SourceRecords(self._partition, {"position": self._position}, self._topic, values)
            if values
            else None
        )

    def _lines(self, most: int) -> Sequence[bytes | str]:
        start, end = self._given, min(self._given + most, len(self._read.texts))
        texts = self._read.texts[start:end]
        self._position += self._read.width(start, end)
        self._given = end
        return [text.decode("utf-8", "replace") for text in texts] if self._as_text else texts

    def _fill(self) -> bool:
        """Read on; False at the end of the file, or while there is none."""
        if self._file is None:
            try:
                # kept open from poll to poll
                self._file = open(self._path, "rb")  # noqa: PTH123, SIM115
            except FileNotFoundError:
                return False
            size = os.fstat(self._file.fileno()).st_size
            if size < self._position:
                raise ConnectctlError(
                    f"{self._path} has {size} bytes but the committed offset is {self._position}",
                    why="the file was replaced or truncated",
                    next_step="Set or reset the offset: connectctl offsets set, connectctl "
                    "offsets reset.",
                )
            self._file.seek(self._position)
        more = self._file.read(CHUNK)
        self._at_end = not more
        self._read, self._rest = lines_of(self._rest + more) if more else (Lines(), self._rest)
        self._given = 0
        return bool(more)

    @property
    def finished(self) -> bool:
        return self._bounded and self._at_end and self._given == len(self._read.texts)

    @property
    def lag(self) -> int | None:
        """Bytes that no record has yet."""
        return (
            None if self._file is None else os.fstat(self._file.fileno()).st_size - self._position
        )

    def stop(self) -> None:
        if self._file is not None:
            self._file.close()


class FileStreamSource(SourceConnector):
    """One file, one task."""

    task = FileStreamTask
    settings = (
        Setting("file", "File to read.", required=True),
        Setting("topic", "Topic to write the lines to.", required=True),
        Setting("batch.size", "Maximum number of lines per poll.", default=str(DEFAULT_BATCH)),
        Setting("until.end", "Finish the task at the end of the file.", default="false"),
    )

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.configs)]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport | None:
        return (
            ExactlyOnceSupport.SUPPORTED if configs.get("file") else ExactlyOnceSupport.UNSUPPORTED
        )

"""An archive without Kafka: a group's offsets and its manifest, which change together, and attempts
that crash at a call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.connector import (
    ParquetArchive,
    ParquetArchiveTask,
)
from connectctl.ops.task_runtime.connectors.parquet_archive.files import ArchiveDirectory
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile, files_of
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.spi.error_settings import ErrorSettings
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from connectctl.ops.task_runtime.task.transactional_producer import Fenced
from fakes.sinkconsumer import Attempt as LoopAttempt
from fakes.sinkconsumer import Clock, Rebalance, SinkConsumer

INTERVAL = 60.0


class Crash(BaseException):
    """The process is gone: nobody catches it, and nothing is closed."""


@dataclass
class Calls:
    """Counts the calls that change something, and fails at one of them: before it, or behind it."""

    fail_at: int | None = None
    error: Callable[[], BaseException] = Crash
    count: int = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        self._next()
        yield
        self._next()

    def _next(self) -> None:
        self.count += 1
        if self.count == self.fail_at:
            raise self.error()


class CountedFiles:
    """A file system of pyarrow, of which every call counts."""

    def __init__(self, files: Any, calls: Calls):
        self._files, self._calls = files, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._files, name)
        if not callable(found):
            return found

        def counted(*args: Any, **more: Any) -> Any:
            with self._calls.one():
                return found(*args, **more)

        return counted


@dataclass
class Archive:
    """The archive at ``path`` of the topic ``log``, whose values are told apart. ``newest`` is who
    may commit.
    """

    path: Path
    log: Mapping[int, Sequence[bytes]]
    group: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    manifest: dict[tuple[str, bytes | None], ConsumerRecord] = field(default_factory=dict)
    newest: Attempt | None = None

    def attempt(
        self, calls: Calls | None = None, kind: type[ParquetArchiveTask] = ParquetArchiveTask
    ) -> Attempt:
        """The next attempt, which fences the one before it."""
        self.newest = Attempt(self, calls or Calls(), kind)
        return self.newest

    @property
    def files(self) -> tuple[ArchivedFile, ...]:
        return files_of(self.manifest.values())

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the files that the manifest names."""
        return [
            row for file in self.files for row in pq.read_table(self.path / file.name).to_pylist()
        ]

    def each_once(self) -> None:
        """Every record of the log is there, in the order of its partition, and no other."""
        there = [(row["partition"], row["offset"], row["value"]) for row in self.rows()]
        assert there == [
            (p, n, value)
            for p, values in sorted(self.log.items())
            for n, value in enumerate(values)
        ]
        for file in self.files:
            assert file.rows == pq.read_metadata(self.path / file.name).num_rows
            assert file.bytes == (self.path / file.name).stat().st_size

    @property
    def on_disk(self) -> set[str]:
        return {str(each.relative_to(self.path)) for each in self.path.rglob("*") if each.is_file()}

    @property
    def named(self) -> set[str]:
        return {each.name for each in self.files}


class Attempt:
    """One attempt of the archive's only task."""

    def __init__(self, archive: Archive, calls: Calls, kind: type[ParquetArchiveTask]):
        class Task(kind):  # type: ignore[misc, valid-type]
            def directory(self, uri: str) -> ArchiveDirectory:
                found = ArchiveDirectory(uri)
                found._files = CountedFiles(found._files, calls)
                return found

        self.archive, self.calls, self.clock = archive, calls, Clock()
        self.notes: list[str] = []
        self.sink = Task()
        self.consumer = SinkConsumer(archive.log, sorted(archive.log), self.clock)
        self.consumer.group = archive.group
        configs = {"name": "a", "directory": str(archive.path), "max.rows": "4"}
        errors = RecordErrors(ErrorSettings(), "a", 0)
        self.task = WorkerSinkTask(
            lambda: self.sink,
            configs,
            reading_converters({**ParquetArchive.default_converters, **configs}),
            errors,
            interval=INTERVAL,
            note=self.notes.append,
            now=self.clock,
        )
        self.loop = LoopAttempt(self.task, self.consumer, self.commit)

    def commit(self, offsets: GroupOffsets) -> None:
        """As one transaction does it."""
        records = self.sink.transaction_records(offsets)
        assert {each.topic for each in records} <= {"a-archive"}
        if self.archive.newest is not self:
            raise Fenced("another attempt has its transactional id")
        with self.calls.one():
            self.consumer.commit(offsets)
            for each in records:
                number = len(self.archive.manifest)
                self.archive.manifest[each.topic, each.key] = ConsumerRecord(
                    each.key, each.value, 0, number
                )

    def start(self) -> Attempt:
        self.loop.start()
        return self

    def rounds(self, count: int = 1, most: int = 500, **change: Collection[int]) -> Attempt:
        """So many rounds; the first one brings ``change``, as ``Rebalance`` has it."""
        if change:
            self.consumer.script.append(Rebalance(**change))
        for _ in range(count):
            self.loop.round(0, most)
        return self

    def due(self, most: int = 500) -> Attempt:
        """One more round, at which the interval is over."""
        self.clock.seconds += INTERVAL
        return self.rounds(most=most)

    def ends(self) -> Attempt:
        self.loop.end()
        return self

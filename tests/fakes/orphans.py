"""An archive’s directory with manifests and files."""

from __future__ import annotations

import os
import time
from pathlib import Path

from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile
from connectctl.ops.task_runtime.connectors.parquet_archive.orphans import ArchiveSweeper
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import (
    ArchiveLocation,
    OrphanFile,
    RemoveOrphans,
    SweepContext,
)
from fakes.groupoffsets import FakeGroupOffsets
from fakes.kafkareads import FakeKafka

GROUP = "connect-a"


def name(first: int, last: int, unique: str = "a", topic: str = "t") -> str:
    return f"{topic}/0/{first}-{last}-{unique * 32}.parquet"


def manifest(
    *files: tuple[int, int], connector: str = "a", unique: str = "a"
) -> list[ConsumerRecord]:
    found = []
    for n, (first, last) in enumerate(files):
        file = ArchivedFile("t", 0, first, last, last - first + 1, 1, name(first, last, unique))
        made = file.record(f"{connector}-archive")
        found.append(ConsumerRecord(made.key, made.value, 0, n))
    return found


class Place:
    """An archive of the offsets 0 to 9 whose directory also has the file of an attempt that was
    killed.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self.kafka = FakeKafka({"a-archive": manifest((0, 4), (5, 9))})
        self.groups = FakeGroupOffsets({GROUP: {TopicPartition("t", 0): 10}})
        self.location = ArchiveLocation("a", str(directory), GROUP)
        self.sweeper = ArchiveSweeper(self.location, "connect", self.kafka, self.groups)
        self.orphan = name(0, 3, "b")
        self.put(name(0, 4), name(5, 9), self.orphan)

    def put(self, *names: str, age: float = 7200.0) -> None:
        for each in names:
            path = self.directory / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
            os.utime(path, (time.time() - age,) * 2)

    @property
    def there(self) -> set[str]:
        return {
            str(each.relative_to(self.directory))
            for each in self.directory.rglob("*")
            if each.is_file()
        }

    def remove(self, *names: str) -> str | None:
        files = tuple(OrphanFile(each, 1) for each in names)
        context = SweepContext(find=self.sweeper.names, remove=self.sweeper.remove)
        return RemoveOrphans("a", self.location, files).apply(context)

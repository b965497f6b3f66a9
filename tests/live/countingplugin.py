"""A connector that is nowhere but in an archive: every task of it counts, record by record, as the
oracle wants it.
"""

from __future__ import annotations

import secrets
import zipfile
from pathlib import Path

ENTRY = "Counting"
"""The name by which the wheel's connector can be configured."""
SOURCE = '''
import os
import time
from pathlib import Path

from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceRecord, SourceTask


class Task(SourceTask):
    """Gives ``count`` numbers, ``batch`` at a time, every ``pause`` seconds; dies once where ``dies`` is no file yet."""

    def start(self, configs):
        self.number, self.configs = int(configs["task"]), configs
        self.partition = {"source": configs["task"]}
        self.end, self.size = int(configs["count"]), int(configs.get("batch", "20"))
        if self.number == 0 and "first" in configs:
            self.end = int(configs["first"])
        self.next = (self.context.offsets.offset(self.partition) or {}).get("next", 0)

    def poll(self):
        if self.finished:
            return None
        time.sleep(float(self.configs.get("pause", "0")))
        dies = self.configs.get("dies")
        if dies and self.next >= self.end // 2 and not Path(dies).exists():
            Path(dies).touch()
            os._exit(1)
        numbers = range(self.next, min(self.next + self.size, self.end))
        self.next = numbers.stop
        key, topic = self.configs["task"], self.configs["topic"]
        return [SourceRecord(self.partition, {"next": n + 1}, topic, str(n), key) for n in numbers]

    @property
    def finished(self):
        return self.next >= self.end


class Counting(SourceConnector):
    """As many tasks as are allowed."""

    task = Task

    def task_configs(self, max_tasks):
        return [{**self.configs, "task": str(n)} for n in range(max_tasks)]
'''
_STRING = "org.apache.kafka.connect.storage.StringConverter"
CONFIG = {"key.converter": _STRING, "value.converter": _STRING}


def as_zip(directory: Path, source: str = SOURCE, name: str = "Counting") -> tuple[str, str]:
    """A zip with a module of a new name: its file name, and the ``connector.class``, the class
    ``name`` in ``source``.
    """
    module = f"plugin_{secrets.token_hex(4)}"
    with zipfile.ZipFile(directory / f"{module}.zip", "w") as archive:
        archive.writestr(f"{module}.py", source)
    return f"{module}.zip", f"{module}:{name}"


def as_wheel(directory: Path) -> tuple[str, str]:
    """A wheel with an entry point: its file name, and the ``connector.class``."""
    module = f"counting_{secrets.token_hex(4)}"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(directory / f"{module}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{module}/__init__.py", SOURCE)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{info}/entry_points.txt", f"[connectctl.connectors]\n{ENTRY} = {module}:Counting\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return f"{module}-1.0-py3-none-any.whl", ENTRY


def whose(partition: dict[str, str]) -> bytes:
    """The record key of a source partition."""
    return partition["source"].encode()

"""A connector that counts up, for a campaign on Spark: it travels there as a zip, and tells of
itself in a file.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceRecord, SourceTask

SOURCES = 6
PAUSE = 0.2
"""Seconds between two words about commits."""


class Task(SourceTask):
    """0, 1, 2 … of each of its sources, with the source as the key; a few of one source at a
    time.
    """

    def start(self, configs: Mapping[str, str]) -> None:
        self._configs = configs
        self._chance = random.Random()
        self._next = {n: self._stored(n) for n in json.loads(configs["sources"])}
        self._said = 0.0
        self._say("begins", attempt=_attempt(), next=self._next)

    def _stored(self, source: int) -> int:
        return int((self.context.offsets.offset({"source": source}) or {"next": 0})["next"])

    def poll(self) -> Sequence[SourceRecord] | None:
        time.sleep(self._chance.uniform(0.0, float(self._configs.get("pause", "0.05"))))
        topic = self._configs["topic"]
        records: list[SourceRecord] = []
        for source in self._chance.sample(
            sorted(self._next), self._chance.randint(0, len(self._next))
        ):
            start = self._next[source]
            self._next[source] = start + self._chance.randint(1, 40)
            records += [
                SourceRecord({"source": source}, {"next": n + 1}, topic, n, key=str(source))
                for n in range(start, self._next[source])
            ]
        return records or None

    def commit(self) -> None:
        now = time.monotonic()
        if now - self._said >= PAUSE:
            self._said = now
            self._say("commits")

    def _say(self, what: str, **more: Any) -> None:
        said = {
            "what": what,
            "pid": os.getpid(),
            "at": time.monotonic(),
            "sources": sorted(self._next),
            **more,
        }
        file = os.open(self._configs["told"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, json.dumps(said).encode() + b"\n")
        os.close(file)


class Counting(SourceConnector):
    """As many tasks as it may have."""

    task = Task

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        shares = [[n for n in range(SOURCES) if n % max_tasks == task] for task in range(max_tasks)]
        return [{**self.configs, "sources": json.dumps(share)} for share in shares]


def _attempt() -> int:
    """Which attempt of its Spark task it is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return -1 if context is None else int(context.attemptNumber())

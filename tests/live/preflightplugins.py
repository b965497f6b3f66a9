"""Connectors that answer a start's questions in every way there is: about exactly-once, and how
many tasks they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectctl.ops.task_runtime.spi.connector import (
    ExactlyOnceSupport,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TransactionBoundaries,
)
from fakes.polledsource import Task


class Answers(SourceConnector):
    """Says what its configuration tells it to: ``null``, ``fail``, or the name of an answer."""

    task = Task

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{}]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport | None:
        said = _said(configs["says.support"])
        return None if said is None else ExactlyOnceSupport(said)

    def can_define_transaction_boundaries(
        self, configs: Mapping[str, str]
    ) -> TransactionBoundaries | None:
        said = _said(configs["says.boundaries"])
        return None if said is None else TransactionBoundaries(said)


class CountingTask(SourceTask):
    """Counts from 0 to below ``count``, ten at once."""

    def start(self, configs: Mapping[str, str]) -> None:
        self._partition = {"task": configs["task"]}
        self._end, self._topic = int(configs["count"]), configs["topic"]
        self._next = int((self.context.offsets.offset(self._partition) or {}).get("next", 0))

    def poll(self) -> Sequence[SourceRecord]:
        numbers = range(self._next, min(self._next + 10, self._end))
        self._next = max(self._next, numbers.stop)
        return [SourceRecord(self._partition, {"next": n + 1}, self._topic, n) for n in numbers]

    @property
    def finished(self) -> bool:
        return self._next >= self._end


class Counting(SourceConnector):
    """Has as many tasks as ``wanted``, whatever ``tasks.max`` says."""

    task = CountingTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.configs, "task": str(n)} for n in range(int(self.configs["wanted"]))]


def _said(answer: str) -> str | None:
    if answer == "fail":
        raise ZeroDivisionError("asked too much")
    return None if answer == "null" else answer

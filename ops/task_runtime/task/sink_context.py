"""A sink task's requests to its runtime, until they are executed (``WorkerSinkTaskContext``)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupConsumer
from connectctl.ops.task_runtime.spi.sink import ErrantRecordReporter


class WorkerSinkTaskContext:
    """The ``SinkTaskContext`` of one task. ``redelivering``: all partitions are paused, whatever
    the task asks for.
    """

    def __init__(
        self,
        configs: Mapping[str, str],
        consumer: GroupConsumer,
        reporter: ErrantRecordReporter | None,
    ):
        self.configs = configs
        self.errant_record_reporter = reporter
        self._consumer = consumer
        self.assigned: set[TopicPartition] = set()
        self.paused: set[TopicPartition] = set()
        self.redelivering = False
        self.commit_requested = False
        self._rewinds: dict[TopicPartition, int] = {}
        self._timeout: float | None = None
        self._closing = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self.assigned)

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._rewinds |= offsets

    def pause(self, *partitions: TopicPartition) -> None:
        self._check("pause", partitions)
        self.paused |= set(partitions)
        if partitions:
            self._consumer.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._check("resume", partitions)
        self.paused -= set(partitions)
        if partitions and not self.redelivering:
            self._consumer.resume(partitions)

    def request_commit(self) -> None:
        self.commit_requested = True

    def timeout(self, milliseconds: int) -> None:
        self._timeout = milliseconds / 1000

    def is_closing(self) -> bool:
        return self._closing

    @contextmanager
    def closing(self) -> Iterator[None]:
        """``is_closing`` is true within."""
        self._closing = True
        try:
            yield
        finally:
            self._closing = False

    @contextmanager
    def timing(self, call: str) -> Iterator[None]:
        """Within it the task is in ``call``, which may keep its consumer from polling."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._consumer.took(call, time.monotonic() - began)

    def take_timeout(self) -> float | None:
        """Return the timeout requested since the last call, in seconds."""
        found, self._timeout = self._timeout, None
        return found

    def take_rewinds(self) -> dict[TopicPartition, int]:
        """Return the offsets requested since the last call."""
        found, self._rewinds = self._rewinds, {}
        return found

    def _check(self, action: str, partitions: tuple[TopicPartition, ...]) -> None:
        if not self.assigned.issuperset(partitions):
            others = ", ".join(map(str, sorted(set(partitions) - self.assigned)))
            raise ConnectctlError(
                f"SinkTasks may not {action} partitions that are not currently assigned to them",
                why=others,
            )

"""What all parts of a run have in common: its job, the clients, whom it tells, and how long it
waits.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectctl.ops.core.interrupts import left_alone
from connectctl.ops.task_runtime.job.generation import Leader, fence
from connectctl.ops.task_runtime.job.group_members import TaskMembers
from connectctl.ops.task_runtime.job.run_request import LEASE
from connectctl.ops.task_runtime.job.scheduler import JobRun
from connectctl.ops.task_runtime.task.retries import NO_RETRIES, RetryPolicy

if TYPE_CHECKING:
    from connectctl.ops.clients.kafka_protocol.run_presence import Presence
    from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel
    from connectctl.ops.task_runtime.job.internal_topics import RunClients
    from connectctl.ops.task_runtime.job.prepare import PreparedJob
    from pyspark.sql import SparkSession

LEAST_PATIENCE = 60.0
"""Seconds that a task has to get through; more where transactions may be open for longer."""


@dataclass
class Signals:
    """SIGTERM and SIGINT as wishes: the first for an end between transactions, the second for an
    end on the spot.
    """

    count: int = 0

    def stop(self) -> None:
        self.count += 1

    @contextmanager
    def handled(self) -> Iterator[None]:
        """While it lasts, signals count and do nothing else. Only the main thread can hear them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, lambda *_: self.stop())
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            with left_alone():
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass
class JobEnvironment:
    """A run of ``ready``. ``tell`` gets the run while it lasts, ``note`` gets lines for people.

    ``presence`` tells others that it is alive; a take-over, which has the connector alone, does not
    begin without it. ``outage`` says for how long Kafka may be away.
    """

    scene: RunClients
    ready: PreparedJob
    spark: SparkSession
    timeout: float
    tell: Callable[[JobRun, DriverChannel], None] = lambda run, board: None
    note: Callable[[str], None] = lambda line: None
    lease: float = LEASE
    signals: Signals = field(default_factory=Signals)
    presence: Presence | None = None
    outage: RetryPolicy = NO_RETRIES
    pending: float | None = None
    """For how many seconds pending offsets of a consumer group are waited for; None: as long as it
    lasts.
    """

    @property
    def patience(self) -> float:
        """Seconds that a task may take to get through: the longest transaction that may be in its
        way, and some.
        """
        return max(LEAST_PATIENCE, self.ready.delivery.timeout_ms / 1000 + 30)

    @property
    def retries(self) -> RetryPolicy:
        """What every call to Kafka goes through: nothing is repeated once the run is to end."""
        return replace(self.outage, stopping=lambda: self.signals.count > 0)

    @property
    def patiently(self) -> RetryPolicy:
        """The policy for the end of a run, which is part of the end that was requested: a second
        signal requests one on the spot.
        """
        return replace(self.outage, stopping=lambda: self.signals.count > 1)

    @property
    def members(self) -> TaskMembers | None:
        """The tasks' members of a consumer group; None for a source."""
        ready = self.ready
        if ready.subscription is None:
            return None
        return TaskMembers(
            self.scene.target, ready.group, ready.name, ready.subscription, self.note
        )

    @property
    def leader(self) -> Leader:
        scene, ready = self.scene, self.ready
        # Which topics live workers use is for them to say: they may be given others at their next
        # start.
        topics = {} if ready.take_over else ready.topics
        config_topic = ready.topics["config"]
        return Leader(
            scene.kafka, scene.calls, ready.group, config_topic, self.patience, self.retries, topics
        )

    def fence_tasks(self, count: int) -> None:
        """Fence the first ``count`` tasks, whoever runs them."""
        fence(self.scene.calls, self.ready.group, self.ready.name, count, self.patience)

    def overtaken(self) -> str | None:
        """Who has a connector that this run took over, where it was taken for dead meanwhile."""
        other = (
            self.presence.overtaken if self.presence is not None and self.ready.take_over else None
        )
        return (
            f"another connectctl run has taken over {self.ready.name}: {other}" if other else None
        )

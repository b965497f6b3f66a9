"""The environment that all parts of a run share: its job, clients, callbacks and time limits."""

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
"""The least seconds for a step of a task; more if transactions may be open for longer."""


@dataclass
class Signals:
    """A counter of SIGTERM and SIGINT. The first signal requests an end between transactions, the
    second an immediate end.
    """

    count: int = 0

    def stop(self) -> None:
        self.count += 1

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Count signals, and suppress their other effects, within the context. Only the main thread
        can receive signals.
        """
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
    """The environment of a run of ``ready``. ``tell`` receives the run as it progresses; ``note``
    receives lines for the user.

    ``presence`` shows other runs that this one is alive. A take-over must be the only run of the
    connector, and does not begin without it. ``outage`` retries requests while Kafka is
    unavailable.
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
    """Seconds to wait for pending offsets of a consumer group; None waits until they are stable."""

    @property
    def patience(self) -> float:
        """The seconds for a step of a task: more than the time-out of an older transaction that it
        may have to wait for.
        """
        return max(LEAST_PATIENCE, self.ready.delivery.timeout_ms / 1000 + 30)

    @property
    def retries(self) -> RetryPolicy:
        """The policy for all calls to Kafka. It repeats nothing after a first signal."""
        return replace(self.outage, stopping=lambda: self.signals.count > 0)

    @property
    def patiently(self) -> RetryPolicy:
        """The policy for calls at the end of a run, also after a first signal. It repeats nothing
        after a second one.
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
        # Live workers determine their topics, and may be configured with others at their next
        # start.
        topics = {} if ready.take_over else ready.topics
        config_topic = ready.topics["config"]
        return Leader(
            scene.kafka, scene.calls, ready.group, config_topic, self.patience, self.retries, topics
        )

    def fence_tasks(self, count: int) -> None:
        """Fence the first ``count`` tasks of the connector, in any run or worker."""
        fence(self.scene.calls, self.ready.group, self.ready.name, count, self.patience)

    def overtaken(self) -> str | None:
        """Return the reason if another run has taken over the connector of this take-over, because
        this run seemed dead; else None.
        """
        other = (
            self.presence.overtaken if self.presence is not None and self.ready.take_over else None
        )
        return (
            f"another connectctl run has taken over {self.ready.name}: {other}" if other else None
        )

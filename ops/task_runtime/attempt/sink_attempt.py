"""A sink's task for one lease: its group member, its loop, and a new attempt after each unknown
outcome.

If it is exactly once, the order is the source task's: check that this generation is the newest;
initialise the producer of the slot's transactional id; check the generation again; join; continue
at the stable offsets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import NotAuthorized, TimedOut, Unreachable
from connectctl.ops.task_runtime.attempt.group_attempt import group_producer, member_factory
from connectctl.ops.task_runtime.spi.error_settings import error_settings
from connectctl.ops.task_runtime.spi.plugins import connector_class
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkConnector
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    TaskResult,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.dead_letters import DeadLetterProducer
from connectctl.ops.task_runtime.task.exactly_once_task import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MOST_DOUBTS_KEPT,
    RUN_AGAIN,
    SUSPENDED,
)
from connectctl.ops.task_runtime.task.sink_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from connectctl.ops.task_runtime.task.transactional_commit import TransactionalCommit
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    PollIntervalExceeded,
    UnknownOutcome,
)
from connectctl.ops.task_runtime.task.transform_source import LONGEST_POLL

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.attempt.shared_clients import SharedClients
    from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.transaction_batch import StoredOffsets
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

SETTLED_WITHIN = 10.0
"""Seconds to wait for a rebalance that is in progress when a lease ends."""


@dataclass(frozen=True)
class ReadRecords(TransactionBatch):
    """The result of one round of a sink's loop: no records to write, ``count`` records read."""

    count: int = 0

    @property
    def size(self) -> int:
        return self.count


class SinkRounds:
    """The loop of one attempt as a record source, by which a lease counts records and time."""

    producer_properties: Mapping[str, str] = {}  # never changed
    ended = False

    def __init__(self, patience: float, most: int):
        self._patience, self._most = patience, most
        self.worker: WorkerSinkTask | None = None
        self.member: GroupConsumer | None = None

    def resume(self, stored: StoredOffsets | None) -> None:
        """Start the task of the attempt, and wait for its partitions."""
        assert self.worker is not None
        self.worker.start(self._patience)

    def next_batch(self) -> TransactionBatch | None:
        """Run one round of the loop; None without records."""
        assert self.worker is not None
        count = self.worker.iterate(LONGEST_POLL, self._most)
        return ReadRecords(more=True, count=count) if count else None

    def final_batch(self) -> None:
        """Nothing: closing the task commits."""

    def committed(self, batch: TransactionBatch) -> None:
        """Nothing: the loop commits."""

    @property
    def lag(self) -> int | None:
        return None if self.member is None else self.member.lag

    @property
    def has_more(self) -> bool:
        return (
            self.member is None
            or self.worker is None
            or self.member.has_more
            or self.worker.redelivering
        )

    def close(self) -> None:
        """Nothing: each attempt closes its own task."""


@dataclass
class SinkAttempts:
    """The attempts of one task in a lease. ``stopped``: whether the lease is over."""

    spec: TaskSpec
    shared: SharedClients
    task: int
    config: Mapping[str, str]
    stats: TaskStats
    rounds: SinkRounds
    begin: Callable[[Any], None]
    """Starts the lease's time, with the first attempt that is assigned its partitions."""
    poll: Callable[[], TransactionBatch | None]
    stopped: Callable[[], bool]
    sleep: Callable[[float], None] = time.sleep
    _counted: int = field(default=0, init=False)

    def run(self) -> TaskResult:
        """Run until the lease is over or another attempt has the slot. Raises the task's
        exceptions, and ``TimedOut`` if no attempt succeeds within the patience.
        """
        progress, pause = self.stats.progress, FIRST_PAUSE
        most = max(self.spec.patience, self.spec.outage)
        while True:
            try:
                if why := self.shared.stale_because():
                    return TaskResult(EndReason.STALE, self.stats, why)
                stale = self._attempt()
                return TaskResult(
                    EndReason.STALE if stale else EndReason.STOPPED, self.stats, stale
                )
            except Fenced as e:
                return TaskResult(EndReason.FENCED, self.stats, str(e))
            except PollIntervalExceeded as e:
                return TaskResult(EndReason.SLOW, self.stats, str(e))
            except NotAuthorized:
                raise
            except (UnknownOutcome, TimedOut, Unreachable) as e:
                if len(self.stats.doubts) < MOST_DOUBTS_KEPT:
                    self.stats.doubts.append(str(e))
                if progress.failed(str(e), SUSPENDED * self.spec.patience):
                    pause = FIRST_PAUSE
                elif progress.waited > most:
                    raise TimedOut(
                        f"No offsets committed for {most:g} s", why=str(e), next_step=RUN_AGAIN
                    ) from e
            if self.stopped():
                return TaskResult(EndReason.STOPPED, self.stats)
            self.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _attempt(self) -> str | None:
        """Run one group member. Return why the generation is stale; None if the lease is over."""
        spec, kind = self.spec, connector_class(self.spec.path)
        assert issubclass(kind, SinkConnector)
        with self._producer() as producer:
            if producer is not None and (why := self.shared.stale_because()):
                return why
            member = member_factory(spec, self.shared, self.task, self.stats, self.stopped)()
            letters = DeadLetterProducer(
                self.shared.target, task_id(spec.group, spec.connector, self.task)
            )
            try:
                task = kind.task()
                commit = (
                    member.commit
                    if producer is None
                    else TransactionalCommit(producer, member, task, spec.patience)
                )

                def counted(offsets: GroupOffsets) -> None:
                    commit(offsets)
                    self._committed(worker)

                settings = error_settings(spec.config)
                converters = reading_converters({**kind.default_converters, **spec.config})
                errors = RecordErrors(
                    settings, spec.connector, self.task, letters, self.stats.lines.append
                )
                worker = WorkerSinkTask(
                    task,
                    member,
                    self.config,
                    converters,
                    errors,
                    interval=spec.delivery.interval,
                    commit=counted,
                    note=self.stats.lines.append,
                )
                try:
                    self._loop(worker, member)
                finally:
                    self.stats.lines.extend(converters.warnings())
            finally:
                letters.discard()
                member.close()
        return None

    def _loop(self, worker: WorkerSinkTask, member: GroupConsumer) -> None:
        self.rounds.worker, self.rounds.member, self._counted = worker, member, 0
        try:
            with self.stats.progress.asking("join the consumer group"):
                self.begin(None)
            self.stats.instances += 1
            while not self.stopped():
                self.poll()
                self.stats.progress.recovered()
            worker.settle(SETTLED_WITHIN)
        except BaseException:
            with suppress(Exception):  # the first failure is the one to report
                worker.close()
            raise
        else:
            worker.close()
        finally:
            self.stats.sink.add(vars(worker.meter))

    def _committed(self, worker: WorkerSinkTask) -> None:
        count, self._counted = worker.meter.sent - self._counted, worker.meter.sent
        self.stats.commit(count)

    @contextmanager
    def _producer(self) -> Iterator[TaskProducer | None]:
        """Yield the slot's initialised producer if the sink is exactly once, else None."""
        spec = self.spec
        if not spec.delivery.exactly_once:
            yield None
            return
        id_ = task_id(spec.group, spec.connector, self.task)
        producer = group_producer(spec)(
            self.shared.target,
            id_,
            timeout_ms=spec.delivery.timeout_ms,
            properties=spec.delivery.properties,
        )
        try:
            with self.stats.progress.asking("initialise its producer"):
                producer.initialise(spec.patience)
            yield producer
        finally:
            producer.discard()

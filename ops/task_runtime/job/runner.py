"""A run from its start to its end: generation or take-over, rounds of leases, statuses, and the hand-back."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from connectctl.ops.connect.connector import State, at_rest
from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut
from connectctl.ops.core.interrupts import left_alone
from connectctl.ops.core.wait import wait_until
from connectctl.ops.operations.connectors.observe import Facts, read_facts
from connectctl.ops.operations.connectors.steps import Await, SetTargetState, StepContext
from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel, driver_address
from connectctl.ops.task_runtime.attempt.shared_clients import GLOBAL, PRIMARY
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.connectors.dataframe import DataFrameSource
from connectctl.ops.task_runtime.dataframe.read import open_dataframe
from connectctl.ops.task_runtime.job import status_topic as words
from connectctl.ops.task_runtime.job.config_topic_records import STOPPED, ConfigTopicState, Generation
from connectctl.ops.task_runtime.job.executor_monitor import executor_monitor
from connectctl.ops.task_runtime.job.generation import Leader, fence
from connectctl.ops.task_runtime.job.group_members import LeaseGap, TaskMembers, check_group_is_free
from connectctl.ops.task_runtime.job.partition_ids import PartitionIds
from connectctl.ops.task_runtime.job.prepare import create_topics, offsets_topic
from connectctl.ops.task_runtime.job.scheduler import LEASE, JobRun, Outcome
from connectctl.ops.task_runtime.job.spark_round import SparkRound, warm
from connectctl.ops.task_runtime.job.stale_run import RegainTasks, TakenOver
from connectctl.ops.task_runtime.job.stall_report import StallReport
from connectctl.ops.task_runtime.job.status_topic import StatusWriter
from connectctl.ops.task_runtime.job.steps import (
    CreateInternalTopic,
    HandBack,
    Parts,
    RunTasks,
    StartTasks,
    StopOnWorkers,
    unrecorded,
)
from connectctl.ops.task_runtime.job.task_count import TooManyTasks, fail_tasks, refusal
from connectctl.ops.task_runtime.spi import tasks_max
from connectctl.ops.task_runtime.spi.metrics import metrics
from connectctl.ops.task_runtime.spi.sink import SinkConnector
from connectctl.ops.task_runtime.spi.transform import TransformConnector
from connectctl.ops.task_runtime.task.offset_store import current_ends
from connectctl.ops.task_runtime.task.retries import NO_RETRIES, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectctl.ops.clients.kafka_protocol.run_presence import Presence
    from connectctl.ops.kafka.topics import KnownEnds
    from connectctl.ops.task_runtime.attempt.control_channel import Address
    from connectctl.ops.task_runtime.attempt.task_attempt import TaskLimits
    from connectctl.ops.task_runtime.dataframe.read import JobDataFrame
    from connectctl.ops.task_runtime.job.internal_topics import RunClients
    from connectctl.ops.task_runtime.job.prepare import PreparedJob
    from connectctl.ops.task_runtime.job.scheduler import Lease
    from pyspark.sql import SparkSession

T = TypeVar("T")
LEAST_PATIENCE = 60.0
"""Seconds that a task has to get through; more where transactions may be open for longer."""
PAUSE = 0.3
_HAND_BACK = {"resume": State.RUNNING, "pause": State.PAUSED}


@dataclass
class Result:
    """What came of a run. ``connector_failure`` is the connector's own, besides those of its tasks."""

    outcome: Outcome
    run: JobRun
    seconds: float
    connector_failure: str | None = None


@dataclass
class Signals:
    """SIGTERM and SIGINT as wishes: the first for an end between transactions, the second for an end on the spot."""

    count: int = 0

    def stop(self) -> None:
        """Wish for an end."""
        self.count += 1

    @contextmanager
    def handled(self) -> Iterator[None]:
        """While it lasts, signals count and do nothing else. Only the main thread can hear them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with left_alone():
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass(frozen=True)
class _Started:
    """The tasks that run; ``failure`` is the connector's, where they are those of before."""

    generation: Generation
    tasks: list[dict[str, str]]
    failure: str | None


@dataclass
class JobRunner:
    """One run of ``ready``. ``tell`` gets the run while it lasts, ``note`` gets lines for people.

    ``presence`` tells others that it is alive; a take-over, which has the connector alone, does not begin without it.
    ``outage`` says for how long Kafka may be away; ``parts`` does each part of the run, and writes it down.
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
    parts: Parts[Any] = unrecorded
    _begun: int = 0
    _gone: bool = False
    _touched: bool = False
    _unseen: bool = False
    _frame: JobDataFrame | None = None

    @property
    def patience(self) -> float:
        """Seconds that a task may take to get through: the longest transaction that may be in its way, and some."""
        return max(LEAST_PATIENCE, self.ready.delivery.timeout_ms / 1000 + 30)

    @property
    def _patience(self) -> RetryPolicy:
        """What every call to Kafka goes through: nothing is repeated once the run is to end."""
        return replace(self.outage, stopping=lambda: self.signals.count > 0)

    def _patiently(self, doing: str, work: Callable[[], T]) -> T:
        return self._patience(doing, work)

    def go(self) -> Result:
        """Run to the end. Raises what a start raises; what becomes of tasks is in the result."""
        began = time.monotonic()
        with self.signals.handled(), self._frames():
            self.parts(CreateInternalTopic, self._create_topics)
            with self._present():
                return self._warmed(began)

    def _create_topics(self) -> None:
        self._patiently("create topics", lambda: create_topics(self.ready, self.scene, self.note))

    def _warmed(self, began: float) -> Result:
        if self._frame is None:
            warm(self.spark, int(self.ready.config.get("tasks.max", "1")), lambda: self.signals.count > 0)
        board = DriverChannel(*driver_address(self.spark))
        try:
            return self._go(board, began)
        finally:
            board.close()

    @contextmanager
    def _present(self) -> Iterator[None]:
        """Others see that this run is alive. Raises ``Refused`` where another run has taken the connector over."""
        if self.presence is None:
            yield
            return
        if self.ready.take_over:
            hold, timeout = self.presence.hold_alone, max(self.timeout, LEAST_PATIENCE)
            self._patiently("join the group of the run", lambda: hold(timeout))
        else:
            self.presence.join()
        try:
            yield
        finally:
            self.presence.leave()

    @contextmanager
    def _frames(self) -> Iterator[None]:
        """The frame of a DataFrame's job is looked at before anything is written, and let go of at the end."""
        if not isinstance(self.ready.connector, DataFrameSource):
            yield
            return

        self._frame = open_dataframe(self.spark, self.ready, self.scene, self.patience, self._patience)
        self._frame.wanted = lambda: self.signals.count > 0
        try:
            yield
            for line in self._frame.notes:
                self.note(line)
        finally:
            self._frame.close()

    def _go(self, board: DriverChannel, began: float) -> Result:
        ready = self.ready
        prefix = words.RUN_PREFIX if ready.take_over else ""
        whose = (self.scene.kafka, ready.topics["status"], ready.name, str(board.address), prefix)
        statuses = self._patiently("read the statuses", lambda: StatusWriter(*whose))
        try:
            with self._taken_over() as taken:
                started = self.parts(StartTasks, lambda: self._start(taken, statuses))
                self._begun = len(started.tasks)
                run = self._run(started, board, statuses)
                try:
                    outcome = self.parts(RunTasks, run.run)
                except ConnectctlError as e:
                    _write_final_statuses(statuses, run, str(e))
                    raise
                if run.reason is None:
                    if self._members is not None:
                        self._members.remove(range(len(started.tasks)))
                    _write_final_statuses(statuses, run, started.failure)
                    statuses.flush()
                else:
                    # Whoever has the tasks by now tells of them, and is not to be fenced.
                    self._gone = True
        except TooManyTasks as e:
            statuses.connector(words.FAILED, str(e))
            raise
        finally:
            statuses.flush()
        failed = Outcome.FAILED if started.failure else outcome
        return Result(failed, run, time.monotonic() - began, started.failure)

    # ---------------------------------------------------------------------------------------------------- the start

    @property
    def _members(self) -> TaskMembers | None:
        """The tasks' members of a consumer group; None for a source."""
        ready = self.ready
        if ready.subscription is None:
            return None
        return TaskMembers(self.scene.target, ready.group, ready.name, ready.subscription, self.note)

    def _start(self, taken: ConfigTopicState | None, statuses: StatusWriter) -> _Started:
        ready = self.ready
        verdicts: list[tasks_max.TasksMaxResult] = []

        def choose(before: ConfigTopicState) -> list[dict[str, str]]:
            verdict = tasks_max.evaluate(ready.name, ready.config, ready.task_configs(), before.tasks)
            if refused := refusal(verdict):
                fail_tasks(statuses, verdict, len(before.tasks))
                raise refused
            if verdict.warning and not verdicts and verdict.warning not in ready.notes:
                self.note(f"warning: {verdict.warning}")
            verdicts.append(verdict)
            return [dict(task) for task in verdict.tasks]

        if taken is None:
            generation = self._leader.start(ready.name, ready.config, choose)
            tasks = [dict(task) for task in verdicts[-1].tasks]
        else:
            tasks = choose(taken)
            topic = ready.topics["config"]
            generation = Generation(topic, ready.name, taken.commit, taken.target_at)
            self._patiently("fence older tasks", lambda: self._fence(max(ready.before.transactional_ids, len(tasks))))
        return _Started(generation, tasks, verdicts[-1].failed)

    @property
    def _leader(self) -> Leader:
        scene, ready = self.scene, self.ready
        leader = Leader(scene.kafka, scene.calls, ready.group, ready.topics["config"], self.patience, self._patience)
        if not isinstance(ready.connector, TransformConnector):
            return leader
        return replace(leader, more_ids=PartitionIds(scene.target, scene.calls, ready.group, ready.name, self.note))

    def _fence(self, count: int) -> None:
        fence(self.scene.calls, self.ready.group, self.ready.name, count, self.patience)

    def _run(self, started: _Started, board: DriverChannel, statuses: StatusWriter) -> JobRun:
        ready, scene = self.ready, self.scene
        offsets = offsets_topic(ready)
        newest = [started.generation]
        work = TaskSpec(
            group=ready.group,
            connector=ready.name,
            path=ready.path,
            config=dict(ready.config),
            generation=started.generation,
            home=scene.kafka.client,
            target=scene.target.client,
            offsets=offsets,
            global_offsets=ready.topics["offsets"] if ready.dedicated_offsets_topic else None,
            delivery=ready.delivery,
            timeout=self.timeout,
            patience=self.patience,
            outage=self.outage.seconds,
            subscription=ready.subscription,
            tasks=len(started.tasks),
        )

        gap = LeaseGap(ready.subscription, self.note)

        def say(run: JobRun) -> None:
            statuses.connector(words.FAILED if started.failure else words.RUNNING, started.failure)
            for number, total in run.totals.items():
                statuses.task(number, total.state, total.trace, metrics(total))
            statuses.flush()
            board.messages.clear()
            gap.begin()

        def regain(why: str) -> str | None:
            if self.presence is None or ready.take_over:
                return why
            try:
                newest.append(self._regain(started.tasks, newest[-1], self.presence))
            except TakenOver as e:
                return str(e)
            return None

        there = executor_monitor(self.spark, self.note)
        longest = max(self.patience, self.outage.seconds)
        still = StallReport(ready.name, longest, self.scene.target.silent, self.note)

        def tell(run: JobRun) -> None:
            there.check()
            still.update(dict(board.messages), run.active)
            self._tell_unseen()
            gap.look(bool(board.messages))
            if ready.subscription is not None and run.has_enough(list(board.messages.values())):
                board.stop()  # another task may wait for one that has ended to leave the consumer group
            if run.leases_end(dict(board.messages)):
                board.end_leases()
            self.tell(run, board)

        run = JobRun(
            dict(enumerate(started.tasks)),
            ready.job.until,
            lambda tasks, terms: self._round(
                replace(work, generation=newest[-1], reached=run.reached, waited=run.waited, unwritten=run.unwritten),
                len(started.tasks),
                tasks,
                terms,
                board.address,
            ),
            stop_requested=lambda: self.signals.count > 0 or self._overtaken() is not None,
            overtaken=self._overtaken,
            stop=board.stop,
            stop_now=lambda: self.signals.count > 1,
            no_executors=lambda: there.none_left,
            on_progress=tell,
            on_round_end=say,
            regain=regain,
            note=self.note,
            is_sink=isinstance(ready.connector, SinkConnector),
            # The rows of a frame come in one go: a lease that ended before would have Spark read them all again.
            seconds=self.lease if self._frame is None else math.inf,
            reached=self._patiently(
                "list the end offsets of the offsets topics", lambda: self._reached(offsets, work.global_offsets)
            ),
        )
        statuses.drop_other_tasks(len(started.tasks))
        say(run)
        return run

    def _regain(self, tasks: list[dict[str, str]], ours: Generation, presence: Presence) -> Generation:
        """The tasks again, where who made them stale did not come through. Raises ``TakenOver``."""
        name, kafka, group = self.ready.name, self.scene.kafka, self.ready.group

        def workers() -> bool:
            return bool(kafka.group(group).members)

        return RegainTasks(
            self._leader, name, self.ready.config, tasks, ours, presence.others, workers, self._patience, self.note
        )()

    def _reached(self, own: str, behind: str | None) -> dict[str, KnownEnds]:
        found = {PRIMARY: current_ends(self.scene.target, own)}
        return found | ({GLOBAL: current_ends(self.scene.kafka, behind)} if behind else {})

    def _tell_unseen(self) -> None:
        """Say once that others cannot see this run."""
        if self.presence is not None and self.presence.problem is not None and not self._unseen:
            self._unseen = True
            self.note(f"warning: commands that change offsets cannot see this run: {self.presence.problem}")

    def _overtaken(self) -> str | None:
        """Who has a connector that this run took over, where it was taken for dead meanwhile."""
        other = self.presence.overtaken if self.presence is not None and self.ready.take_over else None
        return f"another connectctl run has taken over {self.ready.name}: {other}" if other else None

    def _round(
        self, work: TaskSpec, count: int, tasks: Mapping[int, Mapping[str, str]], terms: TaskLimits, address: Address
    ) -> Lease:
        if self._members is not None:
            self._members.settle(tasks)
        if self._frame is not None:
            return self._frame.round(work, count, tasks, terms, address)
        return SparkRound(self.spark, work, tasks, terms, address)

    # ------------------------------------------------------------------------------------------------- the take-over

    @contextmanager
    def _taken_over(self) -> Iterator[ConfigTopicState | None]:
        """What the workers' config topic says of the stopped connector, for as long as it is ours; None without workers.

        Afterwards the connector is as it was before, whatever happened here.
        """
        if not self.ready.take_over:
            yield None
            return
        assert self.scene.workers is not None
        timeout = max(self.timeout, LEAST_PATIENCE, self.outage.seconds)
        context = StepContext(self.scene.workers, timeout, facts=self._facts)
        name, verb = self.ready.name, self.ready.hand_back_action
        if verb is not None:
            self.note(f"{name} is stopped on its workers. If this run is killed: connectctl connectors {verb} {name}")
        try:
            if verb is not None:
                self.parts(StopOnWorkers, lambda: self._stop(context))
            taken = self._stopped(context)
            if self._members is not None:
                check_group_is_free(self._members, context.timeout)
            yield taken
        finally:
            if not self._gone and (verb is None or self._touched):
                self.parts(HandBack, lambda: self._hand_back(context, verb))

    def _stop(self, context: StepContext) -> None:
        name, self._touched = self.ready.name, True
        self._patiently(f"stop {name} on its workers", lambda: SetTargetState(name, "stop", "").apply(context))
        Await(name, State.STOPPED).apply(context)

    def _hand_back(self, context: StepContext, verb: str | None) -> None:
        """Fence what may be left of our own tasks, of which Spark may have lost sight, and let the workers' begin."""
        name = self.ready.name
        # The end that is wished for includes this; a second signal is one for an end on the spot.
        patiently = replace(self.outage, stopping=lambda: self.signals.count > 1)
        try:
            patiently("fence its tasks", lambda: self._fence(self._begun))
        finally:
            if verb is not None:
                patiently(f"{verb} {name} on its workers", lambda: SetTargetState(name, verb, "").apply(context))
                context.waits.pop(name, None)
                Await(name, _HAND_BACK[verb]).apply(context)

    def _facts(self) -> Facts:
        return read_facts(self.scene.kafka, self.ready.group, self.ready.topics["config"])

    def _stopped(self, context: StepContext) -> ConfigTopicState:
        """The connector as the config topic has it once it is stopped, and no worker has a task. Raises ``TimedOut``."""
        left = 0

        def stopped() -> ConfigTopicState | None:
            nonlocal left
            seen, rests = self._patiently(f"read the state of {self.ready.name}", lambda: self._seen(context))
            left = seen.committed_tasks
            if seen.target != STOPPED and self.ready.hand_back_action is None:
                raise Refused(
                    f"{self.ready.name} was started on its workers in the meantime (target state {seen.target})"
                )
            return seen if seen.target == STOPPED and not seen.committed_tasks and rests else None

        if (found := wait_until(stopped, context.timeout, PAUSE)) is None:
            raise TimedOut(f"{self.ready.name} still has {left} tasks on its workers")
        return found

    def _seen(self, context: StepContext) -> tuple[ConfigTopicState, bool]:
        """What the config topic has of the connector, and whether it rests."""
        return self._leader.read_state(self.ready.name), at_rest(context.read(self.ready.name))


def _write_final_statuses(statuses: StatusWriter, run: JobRun, failure: str | None) -> None:
    """The last statuses of a run."""
    statuses.connector(words.FAILED if failure else words.STOPPED, failure)
    for number, total in run.totals.items():
        state = words.FAILED if total.failure else words.UNASSIGNED
        statuses.task(number, state, total.trace, metrics(total))

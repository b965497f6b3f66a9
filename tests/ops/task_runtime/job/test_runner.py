"""A take-over from live workers: whatever becomes of the run, the connector is as it was; unless
somebody else has it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.connect.connector import State
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut, Unreachable
from connectctl.ops.core.executor import execute
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.attempt.task_attempt import TaskReport
from connectctl.ops.task_runtime.job import (
    environment,
    hand_back,
    job_context,
    rounds,
    runner,
    worker_takeover,
)
from connectctl.ops.task_runtime.job.config_topic_records import ConfigTopicState
from connectctl.ops.task_runtime.job.environment import Signals
from connectctl.ops.task_runtime.job.executor_monitor import ExecutorMonitor
from connectctl.ops.task_runtime.job.job_context import SparkJobContext
from connectctl.ops.task_runtime.job.job_file import Job
from connectctl.ops.task_runtime.job.prepare import PreparedJob
from connectctl.ops.task_runtime.job.run_request import RunRequest
from connectctl.ops.task_runtime.job.runner import JobResult, JobRunner
from connectctl.ops.task_runtime.job.scheduler import FinalStatus
from connectctl.ops.task_runtime.job.steps import (
    CreateInternalTopic,
    HandBack,
    RunTasks,
    StopOnWorkers,
)
from connectctl.ops.task_runtime.job.task_count import TooManyTasks
from connectctl.ops.task_runtime.spi.delivery_settings import delivery_settings
from connectctl.ops.task_runtime.task.retries import RetryPolicy
from fakes.locks import FakeLock
from fakes.rights import FakeRights

MODULES = (environment, hand_back, job_context, rounds, runner, worker_takeover)
STOPPED = ConfigTopicState({}, (), 2, 4, 5, 0, "STOPPED", 6)


class Stage:
    """Everything around a launch, with a trace of what was done to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.trace: list[str] = []
        self.standings = [STOPPED]
        self.resting = [True]
        self.spoken_to: tuple[Any, ...] = ()
        self.report = TaskReport(0, "ended", records=3, transactions=1)
        self.during: Callable[[], None] = lambda: None
        self.requests: list[str] = []
        self.fail_at = 0
        trace, stage = self.trace, self

        class Step:
            def __init__(self, name: str, what: Any, now: str = ""):
                self.what = str(what)

            def apply(self, context: Any) -> None:
                if self.what in ("stop", "pause", "resume"):  # the others look again by themselves
                    stage.request(self.what)
                trace.append(self.what)

        class Context(RunContext):
            def __init__(self, calls: Any, timeout: float, facts: Any = None):
                self.timeout = timeout

            def read(self, name: str) -> bool:
                return stage.resting.pop(0) if len(stage.resting) > 1 else stage.resting[0]

        class Statuses:
            def __init__(self, *args: Any):
                stage.request("read the statuses")
                stage.spoken_to = args

            def connector(self, state: str, why: str | None = None) -> None:
                trace.append(f"connector {state}")

            def task(
                self, task: int, state: str, why: str | None = None, metrics: Any = None
            ) -> None:
                trace.append(f"task {task} {state}")

            def drop_other_tasks(self, tasks: int) -> None:
                trace.append(f"only {tasks}")

            def flush(self) -> None:
                pass

        class Leader:
            def __init__(self, *args: Any, **more: Any):
                pass

            def read_state(self, name: str) -> ConfigTopicState:
                stage.request("look")
                return stage.standings.pop(0) if len(stage.standings) > 1 else stage.standings[0]

        class Round:
            lost, width = None, 1

            def __init__(self, *args: Any, **more: Any):
                self.reports = [stage.report]

            def start(self) -> None:
                trace.append("round")
                stage.during()

            def wait(self, seconds: float) -> bool:
                return True

        class Board:
            def __init__(self, *args: Any):
                self.address, self.messages = "h:1", dict[int, Any]()

            def begin_round(self) -> None:
                pass

            def stop(self) -> None:
                trace.append("hang up")

            def close(self) -> None:
                pass

        def fence(calls: Any, group: str, name: str, count: int, patience: float) -> None:
            stage.request("fence")
            trace.append(f"fence {count}")

        def fence_ids(calls: Any, ids: Any, patience: float) -> list[Any]:
            fence(calls, "g", "c", len(ids), patience)
            return []

        def reached_now(kafka: Any, topic: str) -> KnownEnds:
            stage.request("ends")
            return KnownEnds("id", (5,))

        for name, made in {
            "StepContext": Context,
            "at_rest": lambda rests: rests,
            "SetTargetState": Step,
            "Await": Step,
            "StatusWriter": Statuses,
            "Leader": Leader,
            "SparkRound": Round,
            "DriverChannel": Board,
            "fence": fence,
            "fence_ids": fence_ids,
            "requested_state": lambda seen: State.STOPPED,
            "create_topic": lambda ready, scene, topic, note: stage.request("create topics"),
            "current_ends": reached_now,
            "driver_address": lambda spark: ("h", None),
            "executor_monitor": lambda spark, note: ExecutorMonitor(lambda: 1, "local", note),
            "PAUSE": 0.0,
        }.items():
            for module in MODULES:
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, made)

    def request(self, what: str) -> None:
        """Kafka or a worker is asked; the request number ``fail_at`` is not answered."""
        self.requests.append(what)
        if len(self.requests) == self.fail_at:
            raise Unreachable("Kafka at h:1 does not answer", why=what)

    def launch(self, target: str = "STARTED", tasks: int = 1, most: int = 1) -> JobRunner:
        class Scene:
            kafka: Any = type("K", (), {"client": {}, "silent": lambda self: None})()
            target: Any = kafka
            calls: Any = None
            workers: Any = object()

        class Source:
            def start(self, configs: Any) -> None:
                pass

            def stop(self) -> None:
                pass

            def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
                return [{} for _ in range(tasks)]

            def refresh_seconds(self, configs: Any) -> None:
                return None

        path = "connectctl.ops.task_runtime.connectors.filestream:FileStreamSource"
        before = ConfigTopicState({}, ({}, {}, {}), 3, 4, 5, 3, target, 0)
        topics = {"config": "a", "offsets": "b", "status": "c"}
        source: Any = Source()
        config = {"tasks.max": str(most)}
        ready = PreparedJob(
            Job("c", config),
            config,
            path,
            source,
            "g",
            topics,
            {},
            None,
            True,
            delivery_settings({}),
            before,
            True,
        )
        scene: Any = Scene()
        nothing: Any = None
        return JobRunner(scene, ready, nothing, 1.0)


class Context(SparkJobContext):
    """The context of a run whose Spark is open."""

    @contextmanager
    def opened(self) -> Iterator[None]:
        with self.runner.opened():
            yield


def go(runner: JobRunner, lock: FakeLock | None = None) -> JobResult:
    """Execute the steps of a run by ``runner``, and return what its tasks came to."""
    ready = runner.ready
    clients = SimpleNamespace(note=lambda line: None, own_rights=FakeRights(secured=False))
    access = SimpleNamespace(clients=clients)
    planned: Any = SimpleNamespace(
        job=ready, scene=runner.scene, outage=runner.outage, refusal=None, access=access
    )
    context = Context(planned=planned)
    context.runner = runner
    verb = ready.hand_back_action
    tasks = RunTasks("c", "run c", request=RunRequest("job.yaml"), made_from={})
    steps: list[Step[Any]] = [CreateInternalTopic("t", "create the topic t")]
    steps += [StopOnWorkers("c", "stop c on its workers")] if verb else []
    steps += [tasks, *([HandBack("c", f"{verb} c", verb=verb)] if verb else [])]
    with TemporaryDirectory() as directory:
        journal = Journal(Path(directory))
        run = journal.begin_plan(Plan("run", "k1", tuple(steps), group_id="g"))
        try:
            execute(steps, context, journal, run, lock=lock or FakeLock())
        except ConnectctlError:
            if context.result is None:
                raise
    assert context.result is not None
    return context.result


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_a_running_connector_is_stopped_run_here_and_resumed(stage: Stage) -> None:
    result = go(stage.launch())
    assert (result.outcome, result.run.records) == (FinalStatus.ENDED, 3)
    changes = [step for step in stage.trace if not step.startswith(("connector", "task", "only"))]
    assert changes == ["stop", "STOPPED", "fence 3", "round", "fence 1", "resume", "RUNNING"]


def test_a_run_ends_well_whichever_of_its_requests_is_not_answered(stage: Stage) -> None:
    go(stage.launch())
    trace, count = list(stage.trace), len(stage.requests)
    asked = {"create topics", "read the statuses", "stop", "look", "fence", "ends", "resume"}
    assert set(stage.requests) == asked
    for number in range(1, count + 1):
        stage.trace.clear()
        stage.requests, stage.fail_at = [], number
        told: list[str] = []
        launch_ = stage.launch()
        launch_.outage = RetryPolicy(60, told.append, sleep=lambda seconds: None)
        assert go(launch_).outcome is FinalStatus.ENDED
        assert (stage.trace, len(told)) == (trace, 2)


def test_what_it_says_is_in_no_record_that_a_worker_would_show(stage: Stage) -> None:
    go(stage.launch())
    assert stage.trace.index("connector STOPPED") < stage.trace.index("resume")
    assert stage.spoken_to[-1] == "run-"


def test_tasks_that_still_end_on_their_workers_are_waited_for(stage: Stage) -> None:
    stage.resting = [False, False, True]
    go(stage.launch())
    assert len(stage.resting) == 1


def test_one_that_was_stopped_stays_stopped_and_one_that_was_paused_is_paused(stage: Stage) -> None:
    go(stage.launch("STOPPED"))
    assert not {"stop", "resume", "pause"} & set(stage.trace)
    stage.trace.clear()
    go(stage.launch("PAUSED"))
    assert stage.trace[-2:] == ["pause", "PAUSED"]


def test_tasks_of_the_workers_must_be_gone_before_ours_begin(stage: Stage) -> None:
    still = ConfigTopicState({}, ({},), 2, 4, 5, 1, "STOPPED", 6)
    stage.standings = [still, still, STOPPED]
    go(stage.launch())
    assert len(stage.standings) == 1


def test_a_connector_that_somebody_started_meanwhile_is_refused(stage: Stage) -> None:
    stage.standings = [ConfigTopicState({}, (), 2, 4, 5, 0, "STARTED", 9)]
    with pytest.raises(Refused, match="was started on its workers in the meantime"):
        go(stage.launch("STOPPED"))
    assert "round" not in stage.trace


def test_workers_that_do_not_let_go_are_waited_for_and_resumed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "LEAST_PATIENCE", 0.05)
    stage.standings = [ConfigTopicState({}, ({},), 2, 4, 5, 1, "STOPPED", 6)]
    launch_ = stage.launch()
    launch_.timeout = 0.05
    with pytest.raises(TimedOut, match="still has 1 task on its workers"):
        go(launch_)
    assert stage.trace[-2:] == ["resume", "RUNNING"]


def test_whatever_breaks_in_between_the_connector_is_handed_back(stage: Stage) -> None:
    def bang() -> None:
        raise ConnectctlError("bang")

    stage.during = bang
    with pytest.raises(ConnectctlError, match="bang"):
        go(stage.launch())
    assert stage.trace[-3:] == ["fence 1", "resume", "RUNNING"]
    assert "connector FAILED" in stage.trace


def test_a_connector_that_its_workers_have_again_is_left_alone(stage: Stage) -> None:
    stage.report = TaskReport(
        0, "stale", "c was started on the Connect cluster (target state STARTED)"
    )
    result = go(stage.launch())
    assert result.outcome is FinalStatus.TAKEN
    assert not {"resume", "fence 1", "connector STOPPED"} & set(stage.trace)


def test_too_many_tasks_are_not_run_and_say_so_where_no_worker_shows_it(stage: Stage) -> None:
    with pytest.raises(TooManyTasks, match="has generated 4 tasks, which is greater than 2"):
        go(stage.launch(tasks=4, most=2))
    assert "round" not in stage.trace
    assert ("connector FAILED" in stage.trace, stage.spoken_to[-1]) == (True, "run-")
    assert stage.trace[-2:] == ["resume", "RUNNING"]


def test_sigterm_ends_a_run_well_and_gives_the_signal_back(stage: Stage) -> None:
    before = signal.getsignal(signal.SIGTERM)
    stage.report = TaskReport(0, "stopped", records=1, transactions=1)
    stage.during = lambda: signal.raise_signal(signal.SIGTERM)
    assert go(stage.launch()).outcome is FinalStatus.STOPPED
    assert signal.getsignal(signal.SIGTERM) is before
    assert stage.trace[-2:] == ["resume", "RUNNING"]


def test_every_signal_is_a_wish() -> None:
    wishes = Signals()
    with wishes.handled():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert wishes.count == 2


def test_a_take_over_that_another_change_keeps_out_leaves_the_connector_alone(stage: Stage) -> None:
    lock = FakeLock(other=LockHolder("r", "anna@ops-1", "2026-01-01T10:31:00Z"))
    with pytest.raises(Refused, match="Another connectctl"):
        go(stage.launch(), lock)
    assert not {"stop", "resume", "round", "fence 0"} & set(stage.trace)

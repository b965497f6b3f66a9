"""A run whose tasks a start made stale: it has them again where that start did not come through,
and only there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from connectctl.ops.clients.kafka_protocol.run_presence import GONE
from connectctl.ops.connect.run_presence import Holder
from connectctl.ops.core.errors import NotAuthorized
from connectctl.ops.task_runtime.job import generation
from connectctl.ops.task_runtime.job.config_topic_records import (
    Generation,
    config_topic_state,
    count_record,
    task_set,
)
from connectctl.ops.task_runtime.job.stale_run import (
    UNOBSERVABLE,
    RegainTasks,
    TakenOver,
    replace_tasks,
)
from connectctl.ops.task_runtime.task import retries
from connectctl.ops.task_runtime.task.retries import RetryPolicy
from fakes.generations import CONFIG, Handle, World, tasks

OTHER = Holder("connectctl-run", "h")


@dataclass
class Stage:
    """A run that has its tasks, and time, in which things happen: at so many seconds ``then`` is
    called.
    """

    world: World
    ours: Generation
    time: float = 0.0
    then: dict[int, Callable[[Stage], None]] = field(default_factory=dict)
    alive: tuple[Holder, ...] = ()
    workers: bool = False
    wanted: bool = False
    hidden: bool = False
    lines: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for when in [when for when in self.then if when <= self.time]:
            self.then.pop(when)(self)

    def others(self) -> tuple[Holder, ...]:
        if self.hidden:
            raise NotAuthorized("Not authorized to check whether a connectctl run is running c")
        return self.alive

    def regain(self) -> Generation:
        patiently = RetryPolicy(
            60, self.lines.append, lambda: self.wanted, lambda: self.time, self.sleep
        )
        leader = self.world.leader()
        return RegainTasks(
            leader,
            "c",
            CONFIG,
            tasks(2),
            self.ours,
            self.others,
            lambda: self.workers,
            patiently,
            self.lines.append,
            lambda: self.time,
            self.sleep,
        )()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(generation, "TaskProducer", Handle)
    monkeypatch.setattr(generation, "PAUSE", 0.0)
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.0)
    world = World(known={f"g-c-{n}" for n in range(9)})
    return Stage(world, start(world, 2))


def start(world: World, count: int) -> Generation:
    return world.leader().start("c", CONFIG, lambda before: tasks(count))


def half_a_start(stage: Stage, count: int = 3) -> None:
    """A start that dies behind its task configs."""
    stage.world.epoch += 1
    stage.world.append(task_set("c", CONFIG | {"changed": "yes"}, tasks(count)))


def has_again(stage: Stage, made: Generation) -> None:
    found = config_topic_state(stage.world.log, "c")
    assert made.stale_because(stage.world.log) is None
    assert (found.tasks, found.config, found.task_count) == (tuple(tasks(2)), CONFIG, 2)


def test_a_start_that_died_between_its_task_configs_and_its_fencing_leaves_the_run_of_before_its_tasks(
    stage: Stage,
) -> None:
    half_a_start(stage)
    assert stage.ours.stale_because(stage.world.log)
    has_again(stage, stage.regain())
    assert stage.time >= GONE
    assert [line.split(":")[0] for line in stage.lines] == ["waiting", "c runs its tasks again"]


def test_what_the_dead_start_may_have_begun_is_fenced(stage: Stage) -> None:
    half_a_start(stage, 4)
    stage.world.trace.clear()
    stage.regain()
    assert [step for step in stage.world.trace if step.startswith("fence")] == [
        f"fence g-c-{n}" for n in range(4)
    ]


def test_a_starter_that_is_alive_is_waited_for_and_has_the_tasks_when_it_comes_through(
    stage: Stage,
) -> None:
    half_a_start(stage)
    stage.alive = (OTHER,)
    stage.then = {300: lambda s: s.world.append(count_record("c", 3))}
    with pytest.raises(TakenOver, match="already generated a new set"):
        stage.regain()
    assert stage.time >= 300


def test_a_starter_that_gives_up_after_a_while_leaves_them(stage: Stage) -> None:
    half_a_start(stage)
    stage.alive = (OTHER,)
    stage.then = {300: lambda s: setattr(s, "alive", ())}
    has_again(stage, stage.regain())
    assert stage.time >= 299 + GONE


def test_a_start_that_began_meanwhile_begins_the_wait_anew(stage: Stage) -> None:
    half_a_start(stage)
    stage.then = {10: half_a_start}
    has_again(stage, stage.regain())
    assert stage.time >= 9 + GONE


def test_of_two_runs_only_the_one_that_came_through_last_has_them_again(stage: Stage) -> None:
    newer = start(stage.world, 2)
    half_a_start(stage)
    # Each sees the other alive: who had them first must not wait.
    stage.alive = (OTHER,)
    with pytest.raises(TakenOver):
        stage.regain()
    assert stage.time == 0
    stage.alive, stage.ours = (), newer
    has_again(stage, stage.regain())


def test_a_start_that_comes_through_at_the_last_moment_keeps_them(stage: Stage) -> None:
    half_a_start(stage)

    initialise = Handle.initialise
    done: list[bool] = []

    def late(self: Handle, seconds: float) -> None:
        # Between the last look and our own lead: seen by the look that follows it.
        if not done:
            done.append(True)
            start(stage.world, 3)
        initialise(self, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handle, "initialise", late)
        with pytest.raises(TakenOver):
            stage.regain()
    assert config_topic_state(stage.world.log, "c").tasks == tuple(tasks(3))


@pytest.mark.parametrize("answers_lost", [False, True], ids=["requests lost", "answers lost"])
def test_they_are_regained_whichever_request_is_not_answered(
    stage: Stage, answers_lost: bool
) -> None:
    stage.world.answers_lost = answers_lost
    half_a_start(stage)
    stage.world.requests.clear()
    stage.ours = stage.regain()
    for number in range(1, len(stage.world.requests) + 1):
        half_a_start(stage)
        stage.world.requests, stage.world.fail_at = [], number
        stage.ours = stage.regain()
        has_again(stage, stage.ours)


def test_workers_that_live_have_the_connector(stage: Stage) -> None:
    half_a_start(stage)
    stage.workers = True
    with pytest.raises(TakenOver, match="group g has live workers"):
        stage.regain()


def test_a_connector_that_was_deleted_is_not_brought_back(stage: Stage) -> None:
    half_a_start(stage)
    stage.world.append([(b"connector-c", None)])
    with pytest.raises(TakenOver, match="was deleted"):
        stage.regain()


def test_where_runs_cannot_be_seen_the_wait_is_longer(stage: Stage) -> None:
    half_a_start(stage)
    stage.hidden = True
    has_again(stage, stage.regain())
    assert stage.time >= UNOBSERVABLE


def test_who_is_to_end_anyway_does_not_wait(stage: Stage) -> None:
    half_a_start(stage)
    stage.alive, stage.wanted = (OTHER,), True
    with pytest.raises(TakenOver, match="another start of c is in progress"):
        stage.regain()
    assert stage.time == 0


def test_tasks_of_the_newest_generation_are_replaced_by_others_which_fence_them(
    stage: Stage,
) -> None:
    newer = replace_tasks(stage.world.leader(), "c", CONFIG, stage.ours, tasks(3))
    state = stage.world.leader().read_state("c")
    assert (newer.commit, len(state.tasks), state.task_count) == (state.commit, 3, 3)
    assert state.fenced > newer.commit > stage.ours.commit


def test_tasks_that_another_start_has_replaced_are_not_replaced_again(stage: Stage) -> None:
    start(stage.world, 4)
    with pytest.raises(TakenOver, match="already generated a new set of task configs"):
        replace_tasks(stage.world.leader(), "c", CONFIG, stage.ours, tasks(3))
    assert len(stage.world.leader().read_state("c").tasks) == 4

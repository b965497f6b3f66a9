"""The leader's part: the order of its steps, what it fences, and that only the newest driver comes
through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut
from connectctl.ops.task_runtime.job import generation
from connectctl.ops.task_runtime.job.config_topic_records import (
    ConfigTopicState,
    config_topic_state,
    count_record,
    task_set,
)
from connectctl.ops.task_runtime.job.generation import ids_of
from connectctl.ops.task_runtime.task import retries
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    UnknownOutcome,
)
from fakes.generations import CONFIG, Handle, World, tasks

Tasks = Sequence[Mapping[str, str]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(generation, "TaskProducer", Handle)
    monkeypatch.setattr(generation, "PAUSE", 0.0)
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.0)
    return World(known={f"g-c-{n}" for n in range(9)})


def start(world: World, count: int, **more: Any) -> Any:
    return world.leader(**more).start("c", CONFIG, lambda before: tasks(count))


def test_a_new_connector_has_nobody_to_fence(world: World) -> None:
    made = start(world, 2)
    assert world.trace == ["initialise connect-cluster-g", "write set", "write count"]
    assert made.stale_because(world.log) is None


def test_old_and_new_ids_are_fenced_between_the_set_and_its_count(world: World) -> None:
    start(world, 3)
    world.trace.clear()
    made = start(world, 1)
    fenced = [f"fence g-c-{n}" for n in range(3)]
    assert world.trace == ["initialise connect-cluster-g", "write set", *fenced, "write count"]
    assert made.stale_because(world.log) is None
    assert config_topic_state(world.log, "c").task_count == 1


def test_ids_that_no_coordinator_knows_are_not_created(world: World) -> None:
    start(world, 2)
    world.known.clear()
    world.trace.clear()
    start(world, 2)
    assert not [step for step in world.trace if step.startswith("fence")]


def test_ids_that_cannot_be_fenced_leave_the_new_tasks_unstarted(world: World) -> None:
    start(world, 2)
    world.refuses = True
    with pytest.raises(
        ConnectctlError, match="Could not fence 2 of the 2 transactional ids of tasks of c"
    ):
        start(world, 2)
    found = config_topic_state(world.log, "c")
    assert found.fenced < found.commit


def test_a_doubt_begins_it_all_again_with_a_new_producer(world: World) -> None:
    world.breaks = [UnknownOutcome("no answer"), None, UnknownOutcome("no answer")]
    made = start(world, 1)
    assert world.trace.count("initialise connect-cluster-g") == 3
    assert made.stale_because(world.log) is None


def test_doubts_without_end_are_a_time_out(world: World) -> None:
    world.breaks = [UnknownOutcome("no answer")] * 1_000_000
    with pytest.raises(TimedOut, match="Could not start c"):
        start(world, 1, patience=0.05)


@pytest.mark.parametrize("answers_lost", [False, True], ids=["requests lost", "answers lost"])
def test_a_start_comes_through_whichever_of_its_requests_is_not_answered(
    world: World, answers_lost: bool
) -> None:
    older = start(world, 3)
    world.requests.clear()
    start(world, 3)
    steps = [
        "initialise",
        "partitions",
        "read",
        "EndTxn",
        "partitions",
        "read",
        "describe",
        "fence",
        "EndTxn",
    ]
    assert world.requests == [*steps, "partitions", "read"]
    world.answers_lost = answers_lost
    for number in range(1, len(world.requests) + 1):
        world.requests, world.told, world.trace, world.fail_at = [], [], [], number
        made = start(world, 2)
        assert made.stale_because(world.log) is None
        assert older.stale_because(world.log)
        older = made
        assert len(world.told) in (0, 2)


def test_another_driver_between_two_steps_is_met_with_a_new_generation(world: World) -> None:
    def other(world: World, step: str) -> None:
        if step == "set":
            world.between = lambda world, step: None
            world.epoch += 1  # it has initialised the leader's id
            world.append(task_set("c", CONFIG, tasks(4)))

    world.between = other
    made = start(world, 2)
    assert config_topic_state(world.log, "c").tasks == tuple(tasks(2))
    assert made.stale_because(world.log) is None


def test_one_who_is_fenced_again_and_again_gives_way(world: World) -> None:
    world.breaks = [Fenced("a newer producer")] * 99
    with pytest.raises(Refused, match="Another run or worker is the leader of group g"):
        start(world, 1)


def test_the_older_of_two_generations_is_stale(world: World) -> None:
    older, newer = start(world, 2), start(world, 2)
    assert older.stale_because(world.log)
    assert newer.stale_because(world.log) is None


def test_what_chooses_the_tasks_sees_what_stands_there_and_may_refuse_before_anything_is_written(
    world: World,
) -> None:
    world.append(task_set("c", CONFIG, tasks(3)))
    size = len(world.log)

    def choose(before: ConfigTopicState) -> Tasks:
        assert before.tasks == tuple(tasks(3))
        raise ConnectctlError("too many")

    with pytest.raises(ConnectctlError, match="too many"):
        world.leader().start("c", CONFIG, choose)
    assert len(world.log) == size


def test_an_open_transaction_of_others_on_the_config_topic_is_told(world: World) -> None:
    world.held_back = True
    with pytest.raises(TimedOut, match="Could not read configs to its end"):
        start(world, 1, patience=0.05)


@pytest.mark.parametrize(
    ("records", "new", "expected"),
    [
        ([], 3, 0),
        ([task_set("c", CONFIG, tasks(2))], 1, 2),
        ([task_set("c", CONFIG, tasks(2)), count_record("c", 5)], 1, 5),
        ([task_set("c", CONFIG, tasks(2)), count_record("c", 2)], 4, 4),
        ([count_record("c", 2)], 1, 2),
        ([task_set("c", CONFIG, tasks(0))], 1, 1),
    ],
)
def test_ids_of_the_old_count_and_of_the_new_one_are_fenced(
    records: Any, new: int, expected: int
) -> None:
    world = World()
    for each in records:
        world.append(each)
    assert ids_of(config_topic_state(world.log, "c"), new) == expected

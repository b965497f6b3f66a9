"""Task configurations that the order of the config topic takes away are found before a worker
restarts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from connectctl.ops.connect import config_topic
from connectctl.ops.connect.task_config_commits import (
    UNDER_WAY,
    TaskConfigOrder,
    lost_task_configs,
    task_configs_lost,
)
from connectctl.ops.kafka.records import ConsumerRecord

NOW = 1_000_000.0
CONFIG = {"properties": {"connector.class": "X", "tasks.max": "2"}}
OTHER = {"properties": {"connector.class": "X", "tasks.max": "3"}}
TASK = {"properties": {"task.class": "T"}}


def topic(*records: tuple[int, str, Any], age: float = 1000.0) -> list[ConsumerRecord]:
    return [
        ConsumerRecord(
            key.encode(),
            None if value is None else json.dumps(value).encode(),
            0,
            offset,
            int((NOW - age) * 1000),
        )
        for offset, key, value in records
    ]


def found(records: Sequence[ConsumerRecord]) -> list[TaskConfigOrder]:
    return list(lost_task_configs(records, NOW))


HEALTHY = topic(
    (0, "connector-x", CONFIG),
    (1, "task-x-0", TASK),
    (2, "task-x-1", TASK),
    (3, "commit-x", {"tasks": 2}),
)
COPY = topic((9, "connector-x", CONFIG))


def test_tasks_that_are_committed_behind_their_connector_are_safe() -> None:
    assert found(HEALTHY) == []


def test_a_copy_behind_the_commit_takes_the_tasks_with_the_next_compaction() -> None:
    assert found([*HEALTHY, *COPY]) == [TaskConfigOrder("x", 2, 3, 9, 0)]


def test_the_loss_is_told_since_the_copy_was_written() -> None:
    (order,) = found([*HEALTHY, *topic((9, "connector-x", CONFIG), age=90.0)])
    assert task_configs_lost(order, "cfg").since == NOW - 90.0


def test_once_the_earlier_copy_is_compacted_the_tasks_are_lost_at_the_next_start() -> None:
    (order,) = found([*HEALTHY[1:], *COPY])
    assert order == TaskConfigOrder("x", 2, 3, 9, -1)
    assert order.lost


def test_the_order_of_offsets_counts_and_not_that_of_reading() -> None:
    assert found([*COPY, *reversed(HEALTHY[1:])]) == [TaskConfigOrder("x", 2, 3, 9, -1)]


def test_tasks_that_are_published_again_are_safe() -> None:
    again = topic((10, "task-x-0", TASK), (11, "task-x-1", TASK), (12, "commit-x", {"tasks": 2}))
    assert found([*HEALTHY, *COPY, *again]) == []
    assert found([*COPY, *again]) == []


def test_a_stopped_connector_has_no_tasks_to_lose() -> None:
    assert found([*HEALTHY, *topic((4, "commit-x", {"tasks": 0})), *COPY]) == []


def test_a_connector_without_tasks_yet_has_none_to_lose() -> None:
    assert found(topic((0, "connector-x", CONFIG))) == []


@pytest.mark.parametrize(
    "deletion", [[], topic((8, "connector-x", None))], ids=["compacted away", "as a tombstone"]
)
def test_the_commit_of_a_deleted_namesake_is_not_of_this_connector(
    deletion: list[ConsumerRecord],
) -> None:
    old = HEALTHY if deletion else HEALTHY[1:]
    fresh = topic((10, "task-x-0", TASK), (11, "commit-x", {"tasks": 1}))
    assert found([*old, *deletion, *COPY, *fresh]) == []
    assert found([*old, *deletion]) == []


def test_a_namesake_whose_tasks_are_still_to_come_after_a_deletion_loses_nothing() -> None:
    assert found([*HEALTHY, *topic((8, "connector-x", None)), *COPY]) == []


def test_a_changed_configuration_has_a_moment_to_bring_its_tasks() -> None:
    changed = topic((9, "connector-x", OTHER), age=1.0)
    assert found([*HEALTHY, *changed]) == []
    assert found([*HEALTHY, *topic((9, "connector-x", OTHER), age=UNDER_WAY + 1)]) == [
        TaskConfigOrder("x", 2, 3, 9, 0)
    ]


def test_an_identical_configuration_brings_none_and_is_told_at_once() -> None:
    assert found([*HEALTHY, *topic((9, "connector-x", CONFIG), age=0.0)]) == [
        TaskConfigOrder("x", 2, 3, 9, 0)
    ]


def test_a_set_of_which_compaction_took_a_task_is_lost() -> None:
    assert found([HEALTHY[0], *HEALTHY[2:]]) == [TaskConfigOrder("x", 2, 3, 0, -1)]


def test_tasks_that_are_being_published_are_no_loss() -> None:
    assert found([*HEALTHY, *topic((5, "task-x-0", TASK), (6, "task-x-1", TASK))]) == []


@pytest.mark.parametrize("key", ["commit-x", "task-x-0", "connector-y", "session-key", "\udcff"])
def test_what_is_no_record_of_a_worker_is_passed_over(key: str) -> None:
    odd = ConsumerRecord(key.encode("utf-8", "surrogateescape"), b"{broken", 0, 8)
    assert found([*HEALTHY, odd]) == []


def test_connectors_with_dashes_and_numbers_in_their_names_are_kept_apart() -> None:
    records = topic(
        (0, "connector-x-1", CONFIG), (1, "task-x-1-0", TASK), (2, "commit-x-1", {"tasks": 1})
    )
    assert found([*records, *topic((3, "connector-x", CONFIG))]) == []


def test_the_finding_names_topic_offsets_and_cure() -> None:
    soon = task_configs_lost(TaskConfigOrder("x", 2, 3, 9, 0), "configs")
    lost = task_configs_lost(TaskConfigOrder("x", 2, 3, 9, -1), "configs")
    assert soon.id == lost.id == "TASK010"
    assert soon.message.startswith("After the next compaction")
    assert lost.message.startswith("A worker that starts has no task configurations")
    assert "connectors cure x" in str(soon.next_step)
    for finding in (soon, lost):
        assert "configs" in finding.message
        assert "offset 9" in finding.message


def test_task_configurations_are_not_read_for_the_order_of_their_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[bytes] = []

    def counted(text: bytes) -> Any:
        read.append(text)
        return json.loads(text)

    monkeypatch.setattr(config_topic, "read_json", counted)
    tasks = [(f"task-x-{n}", {"properties": {"n": str(n)}}) for n in range(50)]
    pairs = [("connector-x", CONFIG), *tasks, ("commit-x", {"tasks": 50}), ("connector-x", CONFIG)]
    assert [
        order.tasks for order in found(topic(*((n, *pair) for n, pair in enumerate(pairs))))
    ] == [50]
    assert len(read) == 3

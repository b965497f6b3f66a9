"""Which static members the driver takes out of its consumer group, and what it says where it
cannot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.task_runtime.job.group_members import LeaseGap, TaskMembers
from connectctl.ops.task_runtime.spi.subscription import subscription
from fakes.groupmembers import Group, member


class Kafka:
    """Two topics of two partitions each."""

    def topic_names(self) -> frozenset[str]:
        return frozenset({"in", "inner"})

    def partition_counts(self, names: Collection[str]) -> dict[str, int]:
        return dict.fromkeys(names, 2)


def members(
    group: Any, monkeypatch: pytest.MonkeyPatch, **config: str
) -> tuple[TaskMembers, list[str]]:
    @contextmanager
    def coordinator(self: TaskMembers) -> Iterator[Any]:
        if isinstance(group, Exception):
            raise group
        yield group

    monkeypatch.setattr(TaskMembers, "_coordinator", coordinator)
    notes: list[str] = []
    reads = subscription("c", config or {"topics": "in"})
    return TaskMembers(Kafka(), "g", "c", reads, notes.append), notes  # type: ignore[arg-type]


def test_members_of_tasks_that_are_over_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group()
    tasks, notes = members(group, monkeypatch)
    tasks.remove([0, 2])
    assert (group.removed, notes) == (["g-c-0", "g-c-2"], [])


def test_before_a_round_all_but_its_tasks_are_removed_and_nobody_elses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = [member(i) for i in ("g-c-x", "g-c-1-0", "g-other-1", None)]
    group = Group(member("g-c-0", 0), member("g-c-1", 1), member("g-c-2"), *others)
    tasks, _ = members(group, monkeypatch)
    tasks.settle([0, 1])
    assert group.removed == ["g-c-2"]


@pytest.mark.parametrize(
    ("group", "removed"),
    [
        (Group(member("g-c-0", 0), member("g-c-1")), ["g-c-0", "g-c-1"]),  # partition 1 is nobody's
        # and may be given yet
        (Group(member("g-c-0", 0), member("g-c-1"), state="PreparingRebalance"), []),
        (Group(member("g-c-0", 0), member("g-c-1", 1)), []),
        (Group(member("g-c-0", 0), member(None, 1)), []),
        (Group(), []),
    ],
)
def test_where_partitions_are_nobodys_and_the_group_is_at_rest_it_begins_anew(
    group: Group, removed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, _ = members(group, monkeypatch)
    tasks.settle([0, 1])
    assert group.removed == removed


def test_topics_of_a_pattern_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(member("g-c-0", 0, 1))
    tasks, _ = members(group, monkeypatch, **{"topics.regex": "in"})
    tasks.settle([0])
    assert group.removed == []
    tasks, _ = members(group, monkeypatch, **{"topics.regex": "in.*"})
    tasks.settle([0])
    assert group.removed == ["g-c-0"]


def test_a_group_that_is_not_there_has_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group()
    group.described = None
    tasks, notes = members(group, monkeypatch)
    tasks.settle([0])
    assert (group.removed, notes) == ([], [])


def test_dynamic_members_leave_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(member("g-c-2"))
    config = {"topics": "in", "consumer.override.group.protocol": "consumer"}
    tasks, notes = members(group, monkeypatch, **config)
    tasks.remove([2])
    tasks.settle([0])
    assert (group.removed, notes) == ([], [])


@pytest.mark.parametrize("group", [Group(refuses={"g-c-1": 30}), Unreachable("No broker answered")])
def test_what_cannot_be_removed_is_noted_with_what_it_costs(
    group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, notes = members(group, monkeypatch)
    tasks.remove([1])
    (note,) = notes
    assert "until their session times out (45 s)" in note


def test_a_gap_between_two_leases_that_a_session_does_not_outlast_is_noted_once() -> None:
    clock, notes = iter([0.0, 10.0, 20.0, 40.0, 60.0, 90.0]), list[str]()
    gap = LeaseGap(subscription("c", {"topics": "in"}), notes.append, lambda: next(clock))
    for working in (True, True, True):
        gap.begin()
        gap.end(False)
        gap.end(working)
        gap.end(True)
    assert len(notes) == 1
    assert "20.0 s passed between two leases" in notes[0]
    assert "60000 or more" in notes[0]

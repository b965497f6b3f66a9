"""Whose a transactional id is."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.transactional_ids import (
    TaskRef,
    TransactionalIdIndex,
    ambiguities,
    leader_id,
    may_be_task_id,
    of_connector,
    task_id,
)
from hypothesis import given
from hypothesis import strategies as st

SEEN = TransactionalIdIndex(
    {
        "a": frozenset({"b-c", "orders"}),
        "a-b": frozenset({"c"}),
        "connect": frozenset({"cluster-x"}),
        "x-0": frozenset({"y"}),
    }
)


@pytest.mark.parametrize(
    ("id", "owners"),
    [
        ("a-orders-0", [TaskRef("a", "orders", 0)]),
        ("a-orders-12", [TaskRef("a", "orders", 12)]),
        ("a-orders", []),
        ("a-orders-", []),
        ("a-orders-01", []),
        ("a-orders-x", []),
        ("a-orders-٣", []),
        ("a-orders-1-2", []),
        ("other-orders-0", []),
        ("a-b-c-3", [TaskRef("a", "b-c", 3), TaskRef("a-b", "c", 3)]),
        ("connect-cluster-x-0", [TaskRef("connect", "cluster-x", 0)]),
        ("a-orders-in_3", []),
    ],
)
def test_an_id_belongs_to_the_tasks_that_spell_it(id: str, owners: list[TaskRef]) -> None:
    assert list(SEEN.owners(id)) == owners


def test_an_id_of_two_clusters_is_warned_of() -> None:
    (finding,) = ambiguities(SEEN, ["a-b-c-3", "a-orders-0"])
    assert finding.id == "FENCE001"
    assert "task 3 of b-c in a and to task 3 of c in a-b" in finding.message


def test_a_task_may_have_the_id_of_another_groups_leader() -> None:
    finding = SEEN.ambiguity("connect-cluster-x-0")
    assert finding is not None
    assert "the leader of x-0" in finding.message
    assert not SEEN.is_leader("connect-cluster-x-0"), (
        "a connector that can be seen says that it is a task's"
    )
    assert SEEN.is_leader("connect-cluster-a")


def test_the_ids_of_a_connector_are_in_the_order_of_its_tasks() -> None:
    ids = ["a-orders-10", "a-orders-9", "a-orders-late-1", "a-orders-x", "a-orders-0"]
    assert of_connector(ids, "a", "orders") == ["a-orders-0", "a-orders-9", "a-orders-10"]


NAME = st.text(st.sampled_from("ab-0"), min_size=1, max_size=5)


@given(NAME, NAME, st.integers(0, 200))
def test_every_tasks_id_is_recognised(group: str, connector: str, task: int) -> None:
    directory = TransactionalIdIndex({group: frozenset({connector})})
    assert directory.owners(task_id(group, connector, task)) == (TaskRef(group, connector, task),)


@given(NAME, NAME, st.integers(0, 200), NAME, st.integers(0, 200))
def test_within_one_group_no_two_tasks_share_an_id(
    group: str, one: str, n: int, other: str, m: int
) -> None:
    if (one, n) != (other, m):
        assert task_id(group, one, n) != task_id(group, other, m)


def test_the_leaders_id_is_kafkas() -> None:
    assert leader_id("connect-prod") == "connect-cluster-connect-prod"


@pytest.mark.parametrize(
    ("id_", "may"),
    [
        ("g-c-0", True),
        ("a-b-c-12", True),
        ("open-0", False),
        ("g-c-01", False),
        ("orders-writer", False),
        ("g-c-", False),
    ],
)
def test_the_form_of_an_id_tells_whether_any_task_could_have_it(id_: str, may: bool) -> None:
    assert may_be_task_id(id_) is may

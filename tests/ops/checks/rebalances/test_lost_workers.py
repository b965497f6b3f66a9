"""GROUP006: a worker that was lost is told from one that was stopped in order."""

from __future__ import annotations

import pytest
from connectctl.ops.checks.history.records import History, StatusRecord
from connectctl.ops.checks.rebalances import rules
from connectctl.ops.checks.rebalances.lost import lost_workers
from connectctl.ops.checks.rebalances.observe import GroupFacts
from connectctl.ops.connect.connect_protocol import Assignment, ConnectGroup, Member
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.group_rounds import GroupRound
from connectctl.ops.core.rule import check

LEFT = 1000.0
ORDERS, TASK = ("orders", -1), ("orders", 0)
STARTED = [("a:1", "RUNNING", 500.0)]
MOVED = [*STARTED, ("b:1", "RUNNING", LEFT + 5)]
STOPPED = [*STARTED, ("a:1", "UNASSIGNED", LEFT - 2), ("b:1", "RUNNING", LEFT + 5)]
BALANCED_AWAY = [*STARTED, ("a:1", "UNASSIGNED", 600.0), ("b:1", "RUNNING", 601.0)]

Statuses = list[tuple[str, str, float]]


def history(members: list[list[str]], **parts: Statuses) -> History:
    """Return the history of a group whose generations have these members, the second of which began
    at ``LEFT``; of ``parts``, ``orders`` is the connector and ``task`` its task.
    """
    rounds = tuple(
        GroupRound(n, LEFT + 10 * (n - 1), each[0], dict.fromkeys(each, 7), {e: e for e in each})
        for n, each in enumerate(members)
    )
    named = {"orders": ORDERS, "task": TASK}
    statuses = {
        named[key]: tuple(
            StatusRecord(named[key], state, worker, at=at) for worker, state, at in records
        )
        for key, records in parts.items()
    }
    return History(statuses=statuses, rounds=rounds)


def group(*workers: str, state: str = "Stable", delay_ms: int = 0) -> ConnectGroup:
    assigned = Assignment("b:1", "http://b:1/", 7, False, (), (), delay_ms)
    members = (Member(each, "c", "/h", f"http://{each}/", 7, assigned) for each in workers)
    return ConnectGroup("g", state, "sessioned", tuple(members))


TWO_THEN_ONE = [["a:1", "b:1"], ["b:1"]]


@pytest.mark.parametrize(
    ("what_it_ran", "is_lost"),
    [
        ({"task": MOVED}, True),
        ({"task": STARTED}, True),
        ({"orders": MOVED, "task": MOVED}, True),
        ({"task": STOPPED}, False),
        ({"orders": STOPPED, "task": MOVED}, False),
        ({"task": BALANCED_AWAY}, False),
        ({"orders": MOVED, "task": BALANCED_AWAY}, True),
        ({"task": [("a:1", "FAILED", 500.0)]}, False),
        ({"task": [("b:1", "RUNNING", 500.0)]}, False),
        ({}, False),
    ],
)
def test_a_worker_that_wrote_of_no_end_was_lost(
    what_it_ran: dict[str, Statuses], is_lost: bool
) -> None:
    found = lost_workers(history(TWO_THEN_ONE, **what_it_ran), group("b:1"))
    assert [each.address for each in found] == ["a:1"] * is_lost


@pytest.mark.parametrize(
    ("members", "present"),
    [
        (TWO_THEN_ONE, group("b:1", state="PreparingRebalance")),
        (TWO_THEN_ONE, group("b:1", delay_ms=1000)),
        (TWO_THEN_ONE, group(state="Empty")),
        ([*TWO_THEN_ONE, ["a:1", "b:1"]], group("a:1", "b:1")),
        ([*TWO_THEN_ONE, ["b:1", "c:1"]], group("b:1", "c:1")),
        ([["b:1"], ["b:1"]], group("b:1")),
    ],
)
def test_it_is_not_lost_while_the_group_waits_and_once_it_is_whole(
    members: list[list[str]], present: ConnectGroup
) -> None:
    assert lost_workers(history(members, task=MOVED), present) == ()


def test_what_a_lost_worker_ran_is_named() -> None:
    past = history(TWO_THEN_ONE, orders=MOVED, task=MOVED)
    facts = GroupFacts("g", 1, LEFT + 60, past.rounds, lost=lost_workers(past, group("b:1")))
    (finding,) = check(rules, facts, Goal.NOW)
    assert (finding.id, finding.subject, finding.since) == ("GROUP006", "a:1", LEFT)
    assert "the 2 parts that it ran" in finding.message
    assert finding.evidence == ("orders, orders/0",)

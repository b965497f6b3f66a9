"""What hangs, what holds readers back, and what can be aborted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from connectctl.ops.connect.transactional_ids import TaskRef, TransactionalIdIndex
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Refused
from connectctl.ops.core.plan import Outcome
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import Problem
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.operations.fencing.snapshot import FenceAction, FenceSelection, FenceTarget
from connectctl.ops.operations.transactions.abort import EndContext, plan_abort_open
from connectctl.ops.operations.transactions.hanging import (
    hanging,
    matching,
    open_transactions,
    search,
)
from connectctl.ops.operations.transactions.lag import measure
from connectctl.ops.operations.transactions.listing import Criteria, find
from connectctl.ops.operations.transactions.write_marker import plan_abort_hanging
from fakes.coordinators import FakeCoordinators
from fakes.executing import performed

AT = TopicPartition("connect-offsets", 7)
OPEN = PartitionProducer(9, 4, 0, 1_000, 40)
KNOWN = Transaction("g-orders-0", "Ongoing", 9, 4, 60_000, 1_000, (AT,), 1)
DIRECTORY = TransactionalIdIndex({"g": frozenset({"orders"})})
ROLES = {"connect-offsets": "offsets"}


def calls(*transactions: Transaction, producer: PartitionProducer = OPEN) -> FakeCoordinators:
    return FakeCoordinators({t.id: t for t in transactions}, partitions={AT: (producer,)})


@pytest.mark.parametrize(
    ("known", "hangs"),
    [
        (KNOWN, False),
        (replace(KNOWN, state="PrepareAbort"), False),
        (replace(KNOWN, partitions=()), True),
        (replace(KNOWN, state="Empty", partitions=()), True),
        (replace(KNOWN, partitions=(TopicPartition("other", 0),)), True),
        (None, True),
    ],
)
def test_an_open_transaction_hangs_where_its_coordinator_does_not_know_it(
    known: Transaction | None, hangs: bool
) -> None:
    found = search(calls(*([known] if known else [])), None, ROLES)
    assert bool(found.found) is hangs
    assert [finding.id for finding in found.findings] == (["TXN001"] if hangs else [])


def test_a_hanging_transaction_on_the_offsets_topic_is_said_to_stop_connectors() -> None:
    (finding,) = search(calls(), None, ROLES).findings
    assert (
        finding.message
        == "A hanging transaction on the offsets topic stops connectors from starting."
    )
    assert (
        finding.next_step
        == "connectctl transactions abort --topic connect-offsets --partition 7 --start-offset 40"
    )


def test_what_ends_between_two_looks_does_not_hang() -> None:
    before = open_transactions({AT: (OPEN,)})
    assert hanging(before, {}, {}, open_transactions({AT: ()})) == []
    assert hanging(before, {}, {}, open_transactions({AT: (replace(OPEN, start_offset=99),)})) == []
    assert len(hanging(before, {}, {}, before)) == 1


def test_a_coordinator_that_is_silent_makes_nothing_hang() -> None:
    silent = calls()
    silent.problems = {2: Code.NO_ANSWER}
    found = search(silent, None, ROLES)
    assert found.found == ()
    assert [finding.id for finding in found.findings] == ["TXN003"]
    assert (
        hanging(
            open_transactions({AT: (OPEN,)}),
            {9: "x"},
            {"x": Code.NO_ANSWER},
            open_transactions({AT: (OPEN,)}),
        )
        == []
    )


def test_partitions_that_may_not_be_looked_at_are_told() -> None:
    seen = TopicPartition("seen", 0)
    found = search(
        FakeCoordinators(partitions={AT: Code.TOPIC_AUTHORIZATION_FAILED, seen: ()}), None, ROLES
    )
    assert [finding.id for finding in found.findings] == ["TXN002"]


def test_a_principal_that_may_look_at_nothing_gets_an_error_and_no_answer() -> None:
    blind = FakeCoordinators(partitions={AT: Code.TOPIC_AUTHORIZATION_FAILED})
    for topics in (None, [AT.topic]):
        with pytest.raises(NotAuthorized, match="Not authorized to read connect-offsets"):
            search(blind, topics, ROLES)


def test_a_hanging_transaction_is_aborted_by_a_marker() -> None:
    broker = calls()
    (found,) = search(broker, None, ROLES).found
    plan = plan_abort_hanging("c", found)
    assert (
        plan.steps[0].describe()
        == "abort the transaction of producer 9 that hangs on connect-offsets-7 since offset 40"
    )
    context = EndContext(broker, 10)
    assert [r.outcome for r in performed(plan.steps, context)] == [Outcome.DONE]
    assert [r.outcome for r in performed(plan.steps, context)] == [Outcome.ALREADY]
    assert matching([found], AT, 41, None) == []
    assert matching([found], AT, None, 9) == [found]


def test_an_open_transaction_is_aborted_by_its_id_unless_its_task_runs() -> None:
    running = (TaskRef("g", "orders", 0),)
    row = FenceTarget(KNOWN.id, FenceAction.FENCE, running, KNOWN, running)
    with pytest.raises(Refused, match="a running task would fail"):
        plan_abort_open(FenceSelection("c", 0, (row,)), force=False)
    with pytest.raises(Refused, match="no open transaction"):
        plan_abort_open(
            FenceSelection("c", 0, (replace(row, transaction=replace(KNOWN, state="Empty")),)),
            force=True,
        )
    # an option of fence
    unknown = Problem("TRANSACTIONAL_ID_NOT_FOUND", "Use --create to create it.")
    with pytest.raises(
        ConnectctlError, match=r"can be aborted: no coordinator knows this id\. See connectctl"
    ):
        plan_abort_open(
            FenceSelection(
                "c", 0, (replace(row, transaction=None, action=FenceAction.LEAVE, problem=unknown),)
            ),
            force=True,
        )
    broker = calls(KNOWN)
    broker.partitions[AT] = (replace(OPEN, start_offset=None),)
    plan = plan_abort_open(FenceSelection("c", 0, (row,)), force=True)
    (result,) = performed(plan.steps, EndContext(broker, 10))
    assert (result.outcome, result.detail) == (Outcome.DONE, "aborted (epoch 4 → 6)")


def test_lag_names_the_suspect_with_its_task_and_how_long_it_holds_the_topic() -> None:
    found = measure(calls(KNOWN), DIRECTORY, ROLES, now=301.0)
    (lag,) = found.partitions
    assert (lag.bounds.lag, lag.role) == (60, "offsets")
    assert lag.suspect is not None
    assert lag.suspect.transaction is not None
    assert lag.suspect.transaction.owner == TaskRef("g", "orders", 0)
    assert [(finding.id, finding.since) for finding in found.findings] == [("TXN004", 1.0)]
    assert measure(calls(KNOWN), DIRECTORY, ROLES, now=2.0).findings == (), "a moment is normal"


def test_lag_says_that_a_suspect_hangs() -> None:
    found = measure(calls(), DIRECTORY, ROLES, now=2.0)
    assert found.partitions[0].suspect is not None
    assert found.partitions[0].suspect.hangs
    assert "stops connectors from starting" in found.findings[0].message


def test_lists_are_filtered_by_state_time_prefix_and_connector() -> None:
    broker = calls(KNOWN, replace(KNOWN, id="other", state="Empty", started_ms=None, partitions=()))

    def names(**conditions: object) -> list[str]:
        criteria = Criteria(**conditions)  # type: ignore[arg-type]
        return [o.transaction.id for o in find(broker, DIRECTORY, criteria, "g", 11.0).found]

    assert names() == ["g-orders-0", "other"]
    assert names(states=("Empty",)) == ["other"]
    assert names(open_only=True) == ["g-orders-0"]
    assert names(longer_than=9.0) == ["g-orders-0"]
    assert names(longer_than=11.0) == []
    assert names(prefixes=("oth",)) == ["other"]
    assert names(connectors=("orders",)) == ["g-orders-0"]

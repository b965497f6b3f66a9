"""Which ids a wish means, and what the plan does with each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from connectctl.ops.connect import config_topic
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.transactional_ids import TaskRef, TransactionalIdIndex
from connectctl.ops.core.errors import BadInput, NotAuthorized, Refused
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import DESCRIBE_CLUSTER, Gap, Partial, Reason, describe_id
from connectctl.ops.operations.fencing.observe import (
    Configured,
    FencingSources,
    observe,
    refuse_running,
    task_id_ranges,
)
from connectctl.ops.operations.fencing.planning import (
    candidates,
    check,
    check_request,
    incomplete,
    refuse_denied,
    select,
)
from connectctl.ops.operations.fencing.snapshot import (
    FenceAction,
    FenceRequest,
    FenceSelection,
    FenceTarget,
    TaskIdRange,
)
from connectctl.ops.operations.fencing.steps import plan_fence, sentence
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import connect_group, records

CONFIG = records(
    ("connector-orders", {"properties": {"connector.class": "OrdersSource"}}),
    ("connector-audit", {"properties": {"connector.class": "AuditSink", "topics": "x"}}),
    ("task-orders-0", {"properties": {}}),
    ("commit-orders", {"tasks": 1}),
    ("tasks-fencing-orders", {"task-count": 3}),
    ("tasks-fencing-gone", {"task-count": 2}),
    ("connector-gone", None),
)


def empty(id: str) -> Transaction:
    return Transaction(id, "Empty", 1, 0, 60_000)


def describe_ids(
    asked: FenceRequest,
    calls: FakeCoordinators,
    group: ConnectGroup | None = None,
    failed: int | None = None,
) -> FenceSelection:
    groups = {"g": group or connect_group("g", w1=[("orders", -1), ("orders", 0)])}

    def running(of: ConnectGroup) -> frozenset[TaskRef]:
        return frozenset(TaskRef(of.id, c, n) for c, n in of.owners if n != failed)

    configured = Configured(config_topic.parse(CONFIG, "config"), task_id_ranges(CONFIG))
    sources = FencingSources(
        calls,
        "g",
        lambda name: groups.get(name) or connect_group(name),
        running,
        lambda: configured,
    )
    return select(observe(sources, asked), asked)


def ids(plan: FenceSelection) -> list[tuple[str, str]]:
    return [(row.id, row.action.value) for row in plan.rows]


def test_a_connector_reaches_as_far_as_record_configs_or_coordinators() -> None:
    known = {
        id: empty(id)
        for id in ("g-orders-0", "g-orders-2", "g-orders-7", "g-orders-late-1", "other-orders-0")
    }
    plan = describe_ids(FenceRequest(connectors=("orders",), force=True), FakeCoordinators(known))
    assert ids(plan) == [
        ("g-orders-0", "fence"),
        ("g-orders-1", "leave alone"),
        ("g-orders-2", "fence"),
        ("g-orders-7", "fence"),
    ]
    assert plan.rows[0].connector == "orders"
    assert [row.task for row in plan.rows] == [0, 1, 2, 7]


def test_a_deleted_connector_can_be_fenced_by_its_record() -> None:
    plan = describe_ids(
        FenceRequest(connectors=("gone",)), FakeCoordinators({"g-gone-1": empty("g-gone-1")})
    )
    assert ids(plan) == [("g-gone-0", "leave alone"), ("g-gone-1", "fence")]


def test_a_connector_without_any_trace_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(BadInput, match=r"Connector not found: ordres. Did you mean orders\?"):
        describe_ids(FenceRequest(connectors=("ordres",)), FakeCoordinators())


def test_a_sink_has_nothing_to_fence() -> None:
    with pytest.raises(BadInput, match="audit is a sink connector"):
        describe_ids(FenceRequest(connectors=("audit",)), FakeCoordinators())


def test_what_looks_like_a_sink_and_has_transactional_ids_is_a_transform_and_is_fenced() -> None:
    known = {id: empty(id) for id in ("g-audit-0", "g-audit-1")}
    plan = describe_ids(FenceRequest(connectors=("audit",), force=True), FakeCoordinators(known))
    assert ids(plan) == [("g-audit-0", "fence"), ("g-audit-1", "fence")]


def test_no_prefix_matches_a_leader() -> None:
    known = {
        id: empty(id) for id in ("connect-cluster-g", "connect-cluster-other", "connect-files-0")
    }
    plan = describe_ids(FenceRequest(prefixes=("connect-",)), FakeCoordinators(known))
    assert ids(plan) == [
        ("connect-files-0", "fence"),
        ("connect-cluster-g", "skip"),
        ("connect-cluster-other", "skip"),
    ]
    with_leader = describe_ids(
        FenceRequest(prefixes=("connect-",), leader=True), FakeCoordinators(known)
    )
    assert ("connect-cluster-g", "fence") in ids(with_leader)
    assert ("connect-cluster-other", "skip") in ids(with_leader)
    assert "FENCE003" in {finding.id for finding in with_leader.findings}


def test_a_leader_that_is_named_needs_the_flag_too() -> None:
    known = {"connect-cluster-g": empty("connect-cluster-g")}
    assert ids(describe_ids(FenceRequest(ids=("connect-cluster-g",)), FakeCoordinators(known))) == [
        ("connect-cluster-g", "skip")
    ]


def test_running_tasks_are_refused_and_failed_ones_are_not() -> None:
    calls = FakeCoordinators({"g-orders-0": empty("g-orders-0")})
    asked = FenceRequest(ids=("g-orders-0",))
    with pytest.raises(Refused, match="orders task 0") as refused:
        check(describe_ids(asked, calls), asked)
    assert refused.value.code == "running-tasks"
    check(describe_ids(asked, calls, failed=0), asked)
    check(describe_ids(asked, calls), FenceRequest(ids=("g-orders-0",), force=True))


def test_in_a_rebalance_nobody_knows_which_tasks_run_and_fencing_is_refused() -> None:
    calls = FakeCoordinators({"g-orders-0": empty("g-orders-0")})
    settled = connect_group("g", w1=[("orders", -1), ("orders", 0)])
    hidden = replace(
        settled, state="PreparingRebalance", members=(replace(settled.members[0], assignment=None),)
    )
    asked, given = FenceRequest(ids=("g-orders-0",)), [hidden]
    configured = Configured(config_topic.parse(CONFIG, "config"), task_id_ranges(CONFIG))
    sources = FencingSources(
        calls,
        "g",
        lambda name: given[-1],
        lambda group: frozenset(),
        lambda: configured,
        patience=0.0,
    )
    selection = select(observe(sources, asked), asked)
    with pytest.raises(
        Refused, match=r"a running task may use g-orders-0: group g: .* rebalancing.*--force"
    ):
        check(selection, asked)
    check(selection, replace(asked, force=True))
    with pytest.raises(Refused, match="a running task may use g-orders-0"):
        refuse_running(sources, selection.to_fence)
    given.append(connect_group("g", w1=[]))
    refuse_running(sources, selection.to_fence)
    given.append(settled)
    with pytest.raises(Refused, match="orders task 0"):
        refuse_running(
            replace(sources, running=lambda group: frozenset({TaskRef("g", "orders", 0)})),
            selection.to_fence,
        )


def test_a_task_of_another_cluster_with_the_same_id_runs_as_well() -> None:
    calls = FakeCoordinators({"g-b-c-0": empty("g-b-c-0")}, groups=frozenset({"g-b"}))
    groups = {
        "g": connect_group("g", w1=[("b-c", -1)]),
        "g-b": connect_group("g-b", w2=[("c", -1), ("c", 0)]),
    }
    sources = FencingSources(calls, "g", groups.__getitem__, lambda group: frozenset())
    asked = FenceRequest(ids=("g-b-c-0",))
    plan = select(observe(sources, asked), asked)
    assert plan.rows[0].running == (TaskRef("g-b", "c", 0),)
    assert [finding.id for finding in plan.findings] == ["FENCE001"]


def test_what_may_not_be_seen_is_not_touched() -> None:
    calls = FakeCoordinators(denied={"x": Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED})
    (row,) = rows = describe_ids(FenceRequest(ids=("x",), create=True), calls).rows
    with pytest.raises(NotAuthorized, match="Describe on TransactionalId x is missing"):
        refuse_denied(rows)
    refuse_denied([*rows, FenceTarget("y", FenceAction.FENCE)])
    assert row.action is FenceAction.CANNOT
    assert row.problem is not None
    assert row.problem.code == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


UNSEEN_GROUPS = (Gap("other groups of Connect workers", Reason.NOT_AUTHORIZED, DESCRIBE_CLUSTER),)


def test_ids_of_no_known_task_are_not_fenced_while_groups_are_not_seen() -> None:
    calls = FakeCoordinators({"other-a-0": empty("other-a-0")}, group_gaps=UNSEEN_GROUPS)
    asked = FenceRequest(ids=("other-a-0",))
    with pytest.raises(Refused, match="Describe on Cluster kafka-cluster is missing") as refused:
        check(describe_ids(asked, calls), asked)
    assert "--force overrides it: tasks that run with these ids fail" in str(refused.value)
    check(describe_ids(asked, calls), FenceRequest(ids=("other-a-0",), force=True))
    # Whose it is, and that it does not run, our own group tells.
    mine = FakeCoordinators({"g-orders-0": empty("g-orders-0")}, group_gaps=UNSEEN_GROUPS)
    check(
        describe_ids(FenceRequest(ids=("g-orders-0",)), mine, failed=0),
        FenceRequest(ids=("g-orders-0",)),
    )


def test_a_prefix_of_which_nothing_may_be_seen_is_not_fenced_in_silence() -> None:
    hidden = (Gap("transactional ids", Reason.NOT_AUTHORIZED, describe_id("x-")),)
    with pytest.raises(NotAuthorized, match="Describe on TransactionalId x-"):
        describe_ids(FenceRequest(prefixes=("x-",)), FakeCoordinators(gaps=hidden))
    plan = describe_ids(
        FenceRequest(prefixes=("x-",)), FakeCoordinators({"x-0": empty("x-0")}, gaps=hidden)
    )
    assert (ids(plan), plan.unlisted, [finding.id for finding in plan.findings]) == (
        [("x-0", "fence")],
        True,
        ["SIGHT001"],
    )
    unproven = (Gap("transactional ids", Reason.NOT_PROVEN, DESCRIBE_CLUSTER),)
    assert (
        describe_ids(FenceRequest(prefixes=("x-",)), FakeCoordinators(gaps=unproven)).unlisted
        is False
    )


def test_unknown_ids_are_created_only_when_wished() -> None:
    assert ids(describe_ids(FenceRequest(ids=("new",)), FakeCoordinators())) == [
        ("new", "leave alone")
    ]
    assert ids(describe_ids(FenceRequest(ids=("new",), create=True), FakeCoordinators())) == [
        ("new", "create")
    ]


def test_each_id_is_there_once_in_the_order_of_the_wish() -> None:
    asked = FenceRequest(("orders",), ("z", "a", "z", "g-orders-0"), ("a",))
    found, left = candidates(
        asked,
        "g",
        {"orders": TaskIdRange(2, 1)},
        ["a", "ab", "g-orders-5"],
        TransactionalIdIndex({}),
    )
    assert found == ("g-orders-0", "g-orders-1", "g-orders-5", "z", "a", "ab")
    assert left == {}


@pytest.mark.parametrize(
    ("asked", "group"),
    [
        (FenceRequest(), "g"),
        (FenceRequest(prefixes=("",)), "g"),
        (FenceRequest(connectors=("orders",)), None),
        (FenceRequest(leader=True), None),
    ],
)
def test_wishes_that_mean_nothing_are_bad_input(asked: FenceRequest, group: str | None) -> None:
    with pytest.raises(BadInput):
        check_request(asked, group)


def test_a_broker_that_does_not_list_its_ids_is_told() -> None:
    (finding,) = incomplete(
        Partial((), (Gap("broker 3", Reason.NO_ANSWER, None, "COORDINATOR_LOAD_IN_PROGRESS"),))
    )
    assert (finding.id, finding.subject) == ("FENCE004", "broker 3")


def test_the_plan_says_in_one_sentence_what_it_will_do() -> None:
    busy = Transaction("g-orders-0", "Ongoing", 1, 0, 1, 5, (TopicPartition("t", 0),))
    asked = FenceRequest(ids=("g-orders-0", "new"), force=True, create=True)
    plan = describe_ids(asked, FakeCoordinators({"g-orders-0": busy}))
    assert sentence(plan) == (
        "fence 2 transactional ids; this will abort 1 open transaction, create 1 unknown to the "
        "coordinators, fail 1 running task"
    )
    steps = plan_fence(plan, restart=("orders",), group_id="g").steps
    assert [type(step).__name__ for step in steps] == ["FenceIds", "AwaitFailed", "RestartFenced"]
    assert (
        plan.essence
        == describe_ids(asked, FakeCoordinators({"g-orders-0": empty("g-orders-0")})).essence
    )

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.connect.connector import (
    Connector,
    Owners,
    Status,
    cause_of,
    from_rest,
    owners_of,
    statuses_from_topic,
    verdict_of,
)
from fakes.kafkareads import connect_group, records
from hypothesis import given
from hypothesis import strategies as st

TRACE = """org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler
\tat org.apache.kafka.connect.runtime.errors.X.y(X.java:1)
Caused by: org.apache.kafka.connect.errors.DataException: Unknown magic byte!
\tat a.b.C.d(C.java:2)
\t... 3 more
"""
MAGIC = "org.apache.kafka.connect.errors.DataException: Unknown magic byte!"


def on(state: str, worker: str = "one:8083") -> Status:
    return Status(state, worker, TRACE if state == "FAILED" else None)


def connector(own: str | None, *tasks: str | None, target: str | None = None) -> Connector:
    statuses = {n: on(state) if state else None for n, state in enumerate(tasks)}
    return Connector("c", on(own) if own else None, statuses, target_state=target)


@pytest.mark.parametrize(
    ("given_connector", "verdict", "cause"),
    [
        (connector("RUNNING", "RUNNING", "RUNNING"), "RUNNING", None),
        (connector("RUNNING"), "RUNNING with 0 tasks", None),
        (
            connector("RUNNING", "RUNNING", "FAILED", "RUNNING"),
            "DEGRADED 1 of 3 tasks failed",
            MAGIC,
        ),
        (connector("RUNNING", "FAILED", "FAILED"), "FAILED 2 of 2 tasks failed", MAGIC),
        (connector("RUNNING", "FAILED"), "FAILED 1 of 1 task failed", MAGIC),
        (connector("FAILED"), "FAILED", MAGIC),
        (connector("FAILED", "RUNNING"), "FAILED with 1 of 1 task still running", MAGIC),
        (connector("STOPPED"), "STOPPED", None),
        (connector("STOPPED", "RUNNING"), "STOPPED with 1 of 1 task still running", None),
        (connector("PAUSED", "PAUSED"), "PAUSED", None),
        (connector("PAUSED", "PAUSED", "RUNNING"), "PAUSED with 1 of 2 tasks still running", None),
        (connector("RUNNING", "RUNNING", "UNASSIGNED"), "DEGRADED 1 of 2 tasks unassigned", None),
        (connector("RUNNING", "RUNNING", None), "DEGRADED 1 of 2 tasks unassigned", None),
        (
            connector("RUNNING", "UNASSIGNED", "UNASSIGNED"),
            "UNASSIGNED 2 of 2 tasks unassigned",
            None,
        ),
        (connector("RUNNING", "RESTARTING"), "UNASSIGNED 1 of 1 task restarting", None),
        (connector("RUNNING", "PAUSED"), "UNASSIGNED 1 of 1 task paused", None),
        (connector("UNASSIGNED"), "UNASSIGNED", None),
        (connector("RESTARTING", "RESTARTING"), "UNASSIGNED now RESTARTING", None),
        (
            connector("UNASSIGNED", "RUNNING"),
            "DEGRADED with 1 of 1 task still running, but the connector instance: UNASSIGNED",
            None,
        ),
        (connector(None), "UNASSIGNED no status yet", None),
        (connector(None, target="STOPPED"), "STOPPED", None),
        (connector("RUNNING", "RUNNING", target="STOPPED"), "RUNNING asked to be STOPPED", None),
    ],
)
def test_many_statuses_make_one_verdict(
    given_connector: Connector, verdict: str, cause: str | None
) -> None:
    found = verdict_of(given_connector)
    assert (str(found), found.cause) == (verdict, cause)


RUNS = connector("RUNNING", "RUNNING")


@pytest.mark.parametrize(
    ("owners", "verdict"),
    [
        ({("c", -1): "one:8083", ("c", 0): "one:8083"}, "RUNNING"),
        ({("c", -1): "one:8083"}, "UNASSIGNED 1 of 1 task unassigned"),
        ({("c", -1): "one:8083", ("c", 0): "two:8083"}, "UNASSIGNED 1 of 1 task unassigned"),
        (
            {("c", -1): "two:8083", ("c", 0): "two:8083"},
            "UNASSIGNED assigned to two:8083, which has not reported on it, last seen RUNNING on "
            "one:8083",
        ),
        ({}, "UNASSIGNED not assigned to a worker, last seen RUNNING on one:8083"),
    ],
)
def test_a_status_counts_only_from_the_worker_that_has_the_part(
    owners: dict[tuple[str, int], str], verdict: str
) -> None:
    assert str(verdict_of(RUNS, Owners(owners))) == verdict


def test_a_stopped_connector_stays_stopped_while_every_worker_is_down() -> None:
    assert str(verdict_of(connector("STOPPED", target="STOPPED"), Owners({}))) == "STOPPED"


def test_owners_are_addresses_and_unknown_during_a_rebalance() -> None:
    assert owners_of(connect_group(one=[("c", -1), ("c", 0)])) == Owners(
        {("c", -1): "one:8083", ("c", 0): "one:8083"}
    )
    assert owners_of(connect_group(state="PreparingRebalance", one=[("c", 0)])) is None
    assert owners_of(None) is None


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        (TRACE, MAGIC),
        ("java.lang.RuntimeException\n\tat X\n", "java.lang.RuntimeException"),
        ("", None),
        (None, None),
    ],
)
def test_the_innermost_cause_is_what_is_told(trace: str | None, cause: str | None) -> None:
    assert cause_of(Status("FAILED", trace=trace)) == cause


@given(
    st.lists(
        st.sampled_from(
            ["RUNNING", "FAILED", "PAUSED", "UNASSIGNED", "RESTARTING", "DESTROYED", None]
        )
    )
)
def test_no_connector_is_called_running_unless_every_task_runs(states: list[str | None]) -> None:
    verdict = verdict_of(connector("RUNNING", *states))
    assert (verdict.state == "RUNNING") == all(state == "RUNNING" for state in states)


def rest(tasks: list[int], statuses: list[dict[str, Any]]) -> dict[str, Any]:
    own = {"state": "RUNNING", "worker_id": "one:8083"}
    info = {
        "config": {"connector.class": "X"},
        "tasks": [{"connector": "c", "task": n} for n in tasks],
        "type": "source",
    }
    return {"status": {"connector": own, "tasks": statuses, "type": "source"}, "info": info}


def test_tasks_are_those_of_the_configs_not_those_with_a_status() -> None:
    task = {"id": 3, "state": "RUNNING", "worker_id": "one:8083", "trace": ""}
    found = from_rest("c", rest([0, 1], [task, task | {"id": 0}]))
    assert found.tasks == {0: Status("RUNNING", "one:8083"), 1: None}
    assert (found.type, found.config) == ("source", {"connector.class": "X"})


def test_the_status_topic_gives_the_newest_status_of_each_part() -> None:
    old = {"state": "RUNNING", "trace": None, "worker_id": "one:8083", "generation": 1}
    new = {"state": "FAILED", "trace": "boom", "worker_id": "two:8083", "generation": 2}
    found = statuses_from_topic(
        records(
            ("status-connector-a-b", old),
            ("status-task-a-b-0", old),
            ("status-task-a-b-0", new),
            ("status-task-a-b-1", old),
            ("status-task-a-b-1", None),
            ("status-topic-t:connector-a-b", {"topic": {}}),
            ("no status", {}),
        )
    )
    assert found == {
        ("a-b", -1): Status("RUNNING", "one:8083"),
        ("a-b", 0): Status("FAILED", "two:8083", "boom"),
    }


class Counted(dict[tuple[str, int], str]):
    """Parts that count how often all of them are gone through."""

    passes = 0

    def items(self) -> Any:
        self.passes += 1
        return super().items()


def test_the_parts_of_a_cluster_are_gone_through_once_however_many_connectors_ask() -> None:
    parts = Counted({(f"c{n}", task): f"w{task}:8083" for n in range(50) for task in (1, -1)})
    owners = Owners(parts)
    assert {owners.of(f"c{n}") for n in range(50)} == {("w-1:8083", "w1:8083")}
    assert owners.parts("c7") == {-1: "w-1:8083", 1: "w1:8083"}
    assert (owners.of("x"), owners.parts("x"), parts.passes) == ((), {}, 1)

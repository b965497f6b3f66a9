"""FAIL001 to FAIL005 on statuses as the status topic retains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from connectctl.ops.checks.failures import rules
from connectctl.ops.checks.failures.observe import FailureFacts, PartPast
from connectctl.ops.checks.history.records import ConfigRecord, StatusRecord
from connectctl.ops.connect.config_topic import COMMIT, CONNECTOR
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.health import UnhealthyComponent
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.rule import check

NOW = 1_000_000.0
REFUSED = "org.x.ConnectException: failed\nCaused by: java.net.ConnectException: port 5432 refused"
FIRST = "java.lang.IllegalStateException: the slot is gone"


def part(
    *statuses: tuple[float, str],
    connector: str = "orders",
    task: int = 0,
    state: str | None = None,
    cause: str | None = "port 5432 refused",
    traces: Mapping[int, str] | None = None,
    **more: Any,
) -> PartPast:
    """A part with statuses so many seconds ago; ``state`` is what is wrong now."""
    records = tuple(
        StatusRecord(
            (connector, task), each, "w:1", (traces or {}).get(n, REFUSED), 1, NOW - ago, n
        )
        for n, (ago, each) in enumerate(statuses)
    )
    now = UnhealthyComponent(connector, task, state, cause) if state else None
    return PartPast(connector, task, now, records, **more)


def found(*parts: PartPast, **more: Any) -> dict[str, Finding]:
    facts = FailureFacts(parts, NOW, **more)
    return {finding.id: finding for finding in check(rules, facts, Goal.NOW)}


def test_tasks_that_failed_of_one_cause_are_one_finding_since_the_first() -> None:
    tasks = [
        part((9 - n, "FAILED"), task=n, state="FAILED", cause=f"offset {n} of orders-{n} is gone")
        for n in range(3)
    ]
    finding = found(*tasks)["FAIL001"]
    assert (finding.subject, finding.since) == ("orders", NOW - 9)
    assert finding.message.startswith("orders/0, orders/1, orders/2 FAILED: offset 0")


def test_connectors_that_failed_of_one_cause_are_one_finding() -> None:
    several = [
        part((9, "FAILED"), connector=name, state="FAILED") for name in ("orders", "users", "items")
    ]
    every = found(*several)
    assert every.keys() == {"FAIL002"}
    assert every["FAIL002"].subject == "3 connectors"
    assert "orders, users, items FAILED: port 5432 refused" in every["FAIL002"].message


def test_statuses_without_a_trace_are_no_common_cause() -> None:
    several = [part(connector=name, state="FAILED", cause=None) for name in ("orders", "users")]
    assert found(*several).keys() == {"FAIL001"}


LOOP = ((900.0, "FAILED"), (600.0, "RUNNING"), (500.0, "FAILED"), (400.0, "RUNNING"))


def test_a_part_that_fails_again_and_again_is_told_with_its_first_trace() -> None:
    every = found(
        part(*LOOP, (100, "FAILED"), (50, "RUNNING"), traces={0: FIRST}),
    )
    assert every.keys() == {"FAIL003"}, "it runs at this moment"
    finding = every["FAIL003"]
    assert "failed 3 times within 13 minutes" in finding.message
    assert (finding.since, finding.evidence[0].endswith("first: " + FIRST)) == (NOW - 900, True)


@pytest.mark.parametrize(
    ("ago", "ids"), [(100.0, {"FAIL003"}), (1190.0, {"FAIL003"}), (1210.0, set[str]())]
)
def test_a_part_has_recovered_once_it_runs_longer_than_ever_between_its_failures(
    ago: float, ids: set[str]
) -> None:
    past = [(ago + 800, "FAILED"), (ago + 400, "FAILED"), (ago, "FAILED"), (ago - 1, "RUNNING")]
    assert found(part(*past)).keys() == ids


def test_two_failures_are_no_loop() -> None:
    assert found(part(*LOOP)) == {}


@pytest.mark.parametrize(
    ("ago", "more", "ids"),
    [
        (300.0, {}, {"FAIL004"}),
        (30.0, {}, set[str]()),
        (300.0, {"delay": 300.0}, set[str]()),
        (300.0, {"settled": False}, set[str]()),
    ],
)
def test_a_part_is_unassigned_for_long_only_after_a_start_and_the_groups_delay(
    ago: float, more: dict[str, Any], ids: set[str]
) -> None:
    waiting = part((ago, "UNASSIGNED"), state="UNASSIGNED", cause="no status yet", worker="w:1")
    every = found(waiting, **more)
    assert every.keys() == ids
    assert all("log of w:1" in (finding.next_step or "") for finding in every.values())


def test_a_part_that_ran_until_its_worker_went_has_no_time_since_when_it_is_unassigned() -> None:
    lost = part((9_000.0, "RUNNING"), state="UNASSIGNED", cause="not assigned to a worker")
    asked = part((9_000.0, "RUNNING"), state="UNASSIGNED", asked_at=NOW - 400, task=1)
    assert found(lost)["FAIL004"].since is None
    assert found(asked)["FAIL004"].since == NOW - 400


def test_a_part_without_a_time_is_not_called_unassigned_for_long() -> None:
    assert found(part(state="UNASSIGNED")) == {}


def records(kinds: Sequence[str]) -> dict[str, tuple[ConfigRecord, ...]]:
    return {
        "orders": tuple(
            ConfigRecord(kind, "orders", None, b"{}", NOW - 500 + n, n)
            for n, kind in enumerate(kinds)
        )
    }


def test_sets_of_task_configurations_that_no_configuration_explains_are_told() -> None:
    assert found(part(), records=records([COMMIT] * 5)).keys() == {"FAIL005"}
    assert found(part(), records=records([CONNECTOR, COMMIT] * 5)) == {}


def test_a_part_that_always_starts_slowly_is_not_reported_before_twice_that_time() -> None:
    past = ((9_000.0, "UNASSIGNED"), (8_600.0, "RUNNING"))
    for ago, ids in ((700.0, set[str]()), (900.0, {"FAIL004"})):
        assert found(part(*past, (ago, "UNASSIGNED"), state="UNASSIGNED")).keys() == ids

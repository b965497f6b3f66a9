"""The retained records of the workers' topics, and the timeline of them."""

from __future__ import annotations

import json
from typing import Any

from connectctl.ops.checks.history.records import (
    History,
    config_records,
    status_records,
    times_by_connector,
)
from connectctl.ops.checks.history.timeline import of_connector, timeline
from connectctl.ops.checks.patients import Kind, patients
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.kafka.records import ConsumerRecord, KeyTimes


def records(*pairs: tuple[str, dict[str, Any] | None]) -> list[ConsumerRecord]:
    """Records of one partition, a second apart."""
    return [
        ConsumerRecord(
            key.encode(), None if value is None else json.dumps(value).encode(), 0, n, n * 1000
        )
        for n, (key, value) in enumerate(pairs)
    ]


def config(**properties: str) -> dict[str, Any]:
    return {"properties": properties}


def status(state: str, worker: str = "a:1") -> dict[str, Any]:
    return {"state": state, "worker_id": worker, "generation": 3, "trace": "x"}


HISTORY = History(
    statuses=status_records(
        records(
            ("status-connector-orders", status("RUNNING")),
            ("garbage", {}),
            ("status-task-orders-0", status("RUNNING")),
            ("status-task-orders-0", status("FAILED")),
            ("status-task-orders-0", status("RUNNING", "b:1")),
            ("status-task-orders-0", None),
        )
    ),
    configs=config_records(
        records(
            ("session-key", {"key": "k", "algorithm": "a"}),
            ("connector-orders", config(url="a", password="one")),
            ("task-orders-0", config(url="a")),
            ("commit-orders", {"tasks": 1}),
            ("connector-orders", config(url="a", password="two")),
            ("commit-orders", {"tasks": 1}),
            ("commit-orders", {"tasks": 2}),
            ("target-state-orders", {"state": "PAUSED", "state.v2": "STOPPED"}),
            ("connector-orders", None),
            ("connector-orders", {"properties": 5}),
        )
    ),
)


def test_statuses_are_in_order_with_a_tombstone_as_no_state() -> None:
    states = [each.state for each in HISTORY.statuses["orders", 0]]
    assert states == ["RUNNING", "FAILED", "RUNNING", None]
    assert (HISTORY.statuses["orders", 0][1].generation, HISTORY.statuses["orders", 0][1].at) == (
        3,
        3.0,
    )


def test_the_timeline_has_changes_in_the_order_of_time_without_values() -> None:
    every = timeline(HISTORY, ["orders"])
    assert [(each.at, each.text) for each in every] == [
        (0.0, "runs on a:1"),
        (1.0, "configured"),
        (2.0, "runs on a:1"),
        (3.0, "tasks: 1"),
        (3.0, "FAILED on a:1"),
        (4.0, "configuration changed: password"),
        (4.0, "runs on b:1, a:1 before"),
        (6.0, "tasks: 2, 1 before"),
        (7.0, "target state STOPPED"),
        (8.0, "deleted"),
    ]
    assert [each.at for each in of_connector(every, "orders", 2)] == [7.0, 8.0]
    assert timeline(HISTORY, ["users"]) == ()


def test_times_of_source_offsets_are_by_connector() -> None:
    one, two = b'["orders",{"t":1}]', b'["users",{"t":1}]'
    topics = [
        KeyTimes("own", {one: (5_000,)}),
        KeyTimes("global", {one: (1_000, 9_000), two: (7_000,)}),
    ]
    found = times_by_connector(topics)
    assert found == {"orders": {one: (1.0, 5.0, 9.0)}, "users": {two: (7.0,)}}


def finding(id: str, severity: Severity, subject: str, since: float | None = None) -> Finding:
    return Finding(id, severity, subject, "m", since=since)


def test_patients_are_worst_first_and_their_findings_in_the_order_in_which_they_began() -> None:
    every = patients(
        [
            finding("A001", Severity.WARNING, "orders"),
            finding("A002", Severity.ERROR, "orders/0", since=9.0),
            finding("A003", Severity.ERROR, "orders/0", since=5.0),
            finding("TOPIC001", Severity.WARNING, "orders"),
            finding("A004", Severity.ERROR, "a:1"),
            finding("A005", Severity.INFO, "orders/x"),
            finding("A006", Severity.WARNING, "orders task 0"),
        ],
        "g",
        ["a:1"],
        ["orders"],
    )
    assert [(each.kind, each.name, [f.id for f in each.findings]) for each in every] == [
        (Kind.WORKER, "a:1", ["A004"]),
        (Kind.TASK, "orders/0", ["A003", "A002", "A006"]),
        (Kind.CLUSTER, "g", ["TOPIC001", "A005"]),
        (Kind.CONNECTOR, "orders", ["A001"]),
    ]


def test_a_finding_masks_its_evidence_and_has_its_beginning_in_json() -> None:
    one = Finding(
        "A001", Severity.ERROR, "s", "m", since=0.0, evidence=("jdbc:x://u:secret@h/d is gone",)
    )
    data = one.as_json()
    assert data["since"] == "1970-01-01T00:00:00.000Z"
    assert "secret" not in data["evidence"][0]

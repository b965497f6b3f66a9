"""Statuses in Connect's own bytes, and as they are read back."""

from __future__ import annotations

from connectctl.ops.connect.connector import statuses_from_topic
from connectctl.ops.connect.internal_topics import classify
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.task_runtime.job.status_topic import (
    RUN_PREFIX,
    TaskStatus,
    connector_key,
    statuses_from,
    task_key,
    value,
)


def test_a_status_has_connects_bytes() -> None:
    expected = b'{"state":"RUNNING","trace":null,"worker_id":"10.0.0.1:7000","generation":6,"version":null}'
    assert value("RUNNING", "10.0.0.1:7000", 6) == expected
    assert (connector_key("a-b"), task_key("a-b", 3)) == (
        b"status-connector-a-b",
        b"status-task-a-b-3",
    )


def test_what_a_run_says_beside_live_workers_is_none_of_their_statuses() -> None:
    records = [ConsumerRecord(connector_key("a", RUN_PREFIX), value("RUNNING", "h:1", 0), 0, 0)]
    assert connector_key("a", RUN_PREFIX) == b"run-status-connector-a"
    assert statuses_from(records, "a", RUN_PREFIX)[None].state == "RUNNING"
    assert statuses_from(records, "a") == {}
    assert statuses_from_topic(records) == {}
    assert classify("t", records).role is None


def test_what_is_written_is_read_as_a_worker_reads_it() -> None:
    records = [
        ConsumerRecord(connector_key("a"), value("RUNNING", "h:1", 2), 0, 0),
        ConsumerRecord(task_key("a", 0), value("FAILED", "h:1", 2, "boom"), 0, 1),
    ]
    found = statuses_from_topic(records)
    assert found["a", -1].state == "RUNNING"
    assert (found["a", 0].state, found["a", 0].trace, found["a", 0].worker) == (
        "FAILED",
        "boom",
        "h:1",
    )


def test_a_tasks_metrics_are_one_more_member_and_a_worker_reads_past_it() -> None:
    record = ConsumerRecord(
        task_key("a", 0), value("RUNNING", "h:1", 2, metrics={"transaction-size-max": 7}), 0, 1
    )
    assert statuses_from([record], "a")[0].metrics == {"transaction-size-max": 7}
    assert statuses_from_topic([record])["a", 0].state == "RUNNING"


def test_the_newest_status_of_each_part_counts_and_a_tombstone_is_none() -> None:
    records = [
        ConsumerRecord(connector_key("a"), value("RUNNING", "h:1", 2), 0, 0, 1000),
        ConsumerRecord(connector_key("a"), value("STOPPED", "h:1", 2), 0, 1, 2000),
        ConsumerRecord(task_key("a", 0), value("RUNNING", "h:1", 2), 1, 7, 1000),
        ConsumerRecord(task_key("a", 1), value("RUNNING", "h:1", 2), 2, 3, 1000),
        ConsumerRecord(task_key("a", 1), None, 2, 4, 3000),
        ConsumerRecord(task_key("a-1", 0), value("FAILED", "h:1", 2), 2, 5, 1000),
        ConsumerRecord(b"status-topic-t:connector-a", b"{}", 3, 0, 1000),
        ConsumerRecord(task_key("a", 2), b"{", 3, 1, 1000),
    ]
    assert statuses_from(records, "a") == {
        None: TaskStatus("STOPPED", "h:1", None, 2, 2.0),
        0: TaskStatus("RUNNING", "h:1", None, 2, 1.0),
    }

"""What is said of a FAILED task whose producer had an old epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from connectctl.ops.connect.fenced_task_diagnosis import (
    FailedTask,
    explain,
    may_be_fenced,
    round_failed,
)
from connectctl.ops.connect.transactional_ids import TaskRef
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction

TRACE = (
    "org.apache.kafka.connect.errors.ConnectException: The task orders-0 was unable to finish "
    "writing records to Kafka before its producer transaction expired.\nCaused by: "
    "org.apache.kafka.common.errors.InvalidProducerEpochException: Producer attempted to produce "
    "with an old epoch.\n"
)


def task(
    failed: float | None = 100.0, committed: float | None = 50.0, round_: float | None = 52.0
) -> FailedTask:
    return FailedTask(TaskRef("g", "orders", 0), "g-orders-0", TRACE, failed, committed, round_)


def state(name: str) -> Transaction:
    return Transaction("g-orders-0", name, 1, 9, 60_000)


def test_a_commit_that_meets_the_fence_leaves_another_trace() -> None:
    # Seen on a 4.3.1 worker whose task was fenced as it committed.
    assert may_be_fenced(
        "Caused by: org.apache.kafka.common.errors.InvalidTxnStateException: The producer "
        "attempted a …"
    )


def test_a_commit_that_fails_as_unknown_was_fenced_if_no_transaction_is_left() -> None:
    # Seen on a 4.3.1 worker whose commit arrived while the coordinator fenced its producer.
    trace = (
        "Caused by: org.apache.kafka.common.KafkaException: Unhandled error in EndTxnResponse: …"
    )
    failed = replace(task(), trace=trace)
    assert may_be_fenced(trace)
    found = {name: explain(failed, state(name)) for name in ("Empty", "Ongoing", "CompleteAbort")}
    assert {name for name, finding in found.items() if finding is not None} == {"Empty"}


def test_a_trace_of_something_else_is_left_alone() -> None:
    assert not may_be_fenced("java.net.ConnectException: refused")
    assert not may_be_fenced(None)
    assert round_failed("x: Failed to perform zombie fencing\n")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("Empty", "its producer was fenced, by a tool"),
        ("CompleteAbort", "open for longer than 60000 ms and was aborted"),
        ("Ongoing", "fenced by another producer, which uses its id now (Ongoing)"),
        ("CompleteCommit", "fenced by another producer, which uses its id now (CompleteCommit)"),
    ],
)
def test_the_coordinators_state_tells_what_happened(found: str, words: str) -> None:
    finding = explain(task(), state(found))
    assert finding is not None
    assert words in finding.message


@pytest.mark.parametrize(
    ("failed", "committed", "round_", "leader"),
    [
        (51.0, 50.0, 52.0, True),
        (52.5, 50.0, 52.0, True),
        (60.0, 50.0, 52.0, False),
        (60.0, 50.0, None, False),
        (60.0, 50.0, 40.0, True),
        (40.0, 50.0, 52.0, False),
    ],
)
def test_the_leader_fences_between_a_commit_and_the_end_of_its_round(
    failed: float, committed: float, round_: float | None, leader: bool
) -> None:
    finding = explain(task(failed, committed, round_), state("Empty"))
    assert finding is not None
    assert ("by the leader" in finding.message) is leader


def test_what_cannot_be_seen_is_not_guessed() -> None:
    assert explain(task(), Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) is None
    finding = explain(task(failed=None), state("Empty"))
    assert finding is not None
    assert "by a tool" not in finding.message
    expired = explain(task(), Code.TRANSACTIONAL_ID_NOT_FOUND)
    assert expired is not None
    assert "expired at the coordinator" in expired.message

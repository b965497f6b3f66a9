"""The diagnosis of a task whose producer was fenced, which Connect reports as an expired
transaction.

Source: ``ExactlyOnceWorkerSourceTask`` of 4.3.1 wraps ``InvalidProducerEpochException`` in "unable
to finish writing records to Kafka before its producer transaction expired", and advises to raise
``transaction.timeout.ms``. With transaction version 2 a fenced producer gets the same exception, so
that the message alone does not distinguish the two. The coordinator's state does: a transaction
that expired was aborted by the coordinator and leaves CompleteAbort; only InitProducerId leads to
Empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeGuard

from connectctl.ops.connect.transactional_ids import TaskRef
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction

OLD_EPOCH = Rule("FENCE007", Severity.ERROR)
_RACE = "Unhandled error in EndTxnResponse"
"""What a task reports, with 4.3.1, whose commit reaches the coordinator while it fences the
producer (UNKNOWN_SERVER_ERROR). It is not proof: the coordinator must know a newer epoch without
transactions.
"""
_SIGNS = (
    "before its producer transaction expired",
    "InvalidProducerEpochException",
    "ProducerFencedException",
    "InvalidTxnStateException",
    "There is a newer producer with the same transactionalId",
    _RACE,
)
_ROUND_FAILED = ("Failed to perform zombie fencing", "Failed to perform round of zombie fencing")
_ROUND_NOT_REACHED = (
    "Failed to perform preflight check for task",
    "IO Error trying to forward REST request",
)
"""Messages of Worker, ExactlyOnceWorkerSourceTask and RestClient when a restarting leader received
no request.
"""
MARGIN = 1.0
"""Seconds by which broker and worker clocks, and the time of writing a status, may differ."""


@dataclass(frozen=True)
class FailedTask:
    """A FAILED task. Times are in seconds since the epoch, None where they are unknown.

    ``committed_at`` is when the leader committed the connector's newest task configs, ``round_at``
    when its last round of fencing ended, which is later: zombies are fenced in between.
    """

    owner: TaskRef
    id: str
    trace: str
    failed_at: float | None = None
    committed_at: float | None = None
    round_at: float | None = None
    others: tuple[TaskRef, ...] = ()


def may_be_fenced(trace: str | None) -> bool:
    """Return whether a fenced producer may have caused a stack trace."""
    return trace is not None and any(sign in trace for sign in _SIGNS)


def round_failed(trace: str | None) -> bool:
    """Return whether a stack trace reports that the leader could not finish a round of fencing."""
    return trace is not None and any(sign in trace for sign in _ROUND_FAILED)


def round_missed(trace: str | None) -> bool:
    """Return whether a round of fencing failed, or its request did not reach the leader; workers
    repeat neither.
    """
    return round_failed(trace) or (
        trace is not None and any(sign in trace for sign in _ROUND_NOT_REACHED)
    )


def has_expired(found: Transaction | Code) -> TypeGuard[Transaction]:
    """Return whether the coordinator aborted the transaction of a failed task after its time-out.
    Only InitProducerId leaves another state.
    """
    return isinstance(found, Transaction) and found.state == "CompleteAbort"


def explain(task: FailedTask, found: Transaction | Code) -> Finding | None:
    """Return FENCE007, why a task failed by its producer's epoch; None if nothing is known beyond
    the trace.
    """
    if not may_be_fenced(task.trace):
        return None
    if isinstance(found, Code):
        if found is not Code.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        return _finding(
            task,
            "its transactional id expired at the coordinator, and its producer with it",
            Severity.WARNING,
        )
    if _RACE in task.trace and found.state != "Empty":
        return None
    if has_expired(found):
        what = (
            f"its transaction was open for longer than {found.timeout_ms} ms and was aborted "
            "by the coordinator"
        )
        return _finding(
            task, f"{what}; raise transaction.timeout.ms, as Connect advises", Severity.INFO
        )
    if found.state == "Empty":
        return _finding(
            task, f"its producer was fenced{_by(task)}; no transaction expired", Severity.WARNING
        )
    others = f", as {' and '.join(map(str, task.others))} may" if task.others else ""
    what = (
        "its producer was fenced by another producer, which uses its id now "
        f"({found.state}){others}; none expired"
    )
    return _finding(task, what, Severity.ERROR)


def _by(task: FailedTask) -> str:
    """Return who fenced the producer, by the times: the leader fences only between a commit and the
    end of its round.
    """
    if task.failed_at is None:
        return ""
    tool = (
        ", by a tool (connectctl fence, Admin.fenceProducers) or another producer that was "
        "only initialised"
    )
    if task.committed_at is None or task.failed_at < task.committed_at - MARGIN:
        return tool
    if task.round_at is None:
        return tool
    if task.round_at < task.committed_at or task.failed_at <= task.round_at + MARGIN:
        when = f"{datetime.fromtimestamp(task.committed_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
        return f" by the leader, in its round of fencing for the task configs of {when}"
    return tool


def _finding(task: FailedTask, what: str, severity: Severity) -> Finding:
    subject = f"{task.owner.connector} task {task.owner.task}"
    hint = f"connectctl connectors restart {task.owner.connector} --only-failed"
    message = f"Actual cause: {what}."
    return OLD_EPOCH.found(subject, message, hint, severity=severity, since=task.failed_at)

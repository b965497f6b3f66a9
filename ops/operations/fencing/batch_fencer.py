"""Fences many ids at once: requests to all coordinators in parallel, with retries after a backoff,
until a timeout.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

from connectctl.ops.clients.protocols import TransactionCalls
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import (
    FenceAttempt,
    Fenced,
    InitProducerIdResponse,
    Problem,
    after_answer,
    after_describe,
    out_of_time,
)
from connectctl.ops.kafka.transactions import Transaction, task_timeout
from connectctl.ops.operations.fencing.snapshot import (
    FenceAction,
    FenceOutcome,
    FenceTarget,
    IdResult,
)

FIRST_PAUSE = 0.02
MAX_PAUSE = 1.0
MIN_REQUEST_TIMEOUT = 2.0
"""Seconds: the minimum timeout of one request to a coordinator."""
_NO_REQUEST = {
    FenceAction.LEAVE: FenceOutcome.UNKNOWN,
    FenceAction.SKIP: FenceOutcome.SKIPPED,
    FenceAction.CANNOT: FenceOutcome.FAILED,
}
_EXPIRED = "The coordinators no longer know the id: it expired after the plan was made."


@dataclass
class BatchFencer:
    """Fencing of ``rows`` until ``deadline`` (of ``now``). Its results can be read at any time,
    from any thread.

    ``held`` are the open transactions that were observed, with their producers and partitions.
    ``on_result`` is called with each result when it is final, possibly from another thread.
    """

    calls: TransactionCalls
    rows: Sequence[FenceTarget]
    timeout: float
    on_result: Callable[[IdResult], None] = lambda result: None
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    results: dict[str, IdResult] = field(default_factory=dict)
    held: dict[str, tuple[Transaction, ...]] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    _pending: dict[str, FenceAttempt] = field(default_factory=dict)
    _before: dict[str, Transaction | None] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def _rows(self) -> dict[str, FenceTarget]:
        return {row.id: row for row in self.rows}

    def run(self) -> None:
        deadline = self.now() + self.timeout
        for row in self.rows:
            if (result := without_request(row)) is not None:
                self.results[row.id] = result
            else:
                self._pending[row.id] = FenceAttempt(row.transaction)
        ready = self._describe_first()
        pause = FIRST_PAUSE
        while self._pending:
            self._send(ready, deadline)
            remaining = deadline - self.now()
            if not self._pending or remaining <= 0:
                break
            self.sleep(min(remaining, pause * random.uniform(0.5, 1.5)))
            pause = min(pause * 2, MAX_PAUSE)
            ready = self._describe_again()
        for id, attempt in list(self._pending.items()):
            self._finish(id, out_of_time(attempt, self.timeout))

    def interrupted(self) -> None:
        """Set the result of every id that has none, after an interruption."""
        with self._lock:
            for row in self.rows:
                if row.id in self.results:
                    continue
                outcome = FenceOutcome.FAILED if row.id in self.sent else FenceOutcome.SKIPPED
                message = (
                    "Interrupted after the request may have been sent. Check the state: "
                    "connectctl transactions show."
                    if row.id in self.sent
                    else "Interrupted before the request was sent."
                )
                self.results[row.id] = _result(
                    row, outcome, problem=Problem("interrupted", message)
                )

    def _describe_first(self) -> list[str]:
        """Refresh the plan's epochs, which can change with every commit; return the ids to
        fence.
        """
        ids = list(self._pending)
        found = self._described(ids)
        for id in ids:
            description = found.get(id, Code.NO_ANSWER)
            if isinstance(description, Transaction):
                self._pending[id] = FenceAttempt(description)
            elif (
                description is Code.TRANSACTIONAL_ID_NOT_FOUND
                and self._rows[id].action is FenceAction.FENCE
            ):
                # It expired since the plan was made; InitProducerId would create it.
                del self._pending[id]
                self.results[id] = _result(
                    self._rows[id],
                    FenceOutcome.UNKNOWN,
                    problem=Problem(description.name, _EXPIRED),
                )
        self._before = {id: attempt.seen for id, attempt in self._pending.items()}
        return list(self._pending)

    def _describe_again(self) -> list[str]:
        """Describe the pending ids, finish those that are done, and return the ids to fence
        again.
        """
        ready = []
        found = self._described(list(self._pending))
        for id, attempt in list(self._pending.items()):
            ask, next_state = after_describe(attempt, found.get(id, Code.NO_ANSWER))
            if not isinstance(next_state, FenceAttempt):
                self._finish(id, next_state)
                continue
            self._pending[id] = next_state
            ready += [id] if ask else []
        return ready

    def _described(self, ids: Sequence[str]) -> Mapping[str, Transaction | Code]:
        if not ids:
            return {}
        try:
            found = self.calls.describe(ids)
        except ConnectctlError:
            return {}
        for id, description in found.items():
            if isinstance(description, Transaction):
                self._remember(id, description)
        return found

    def _remember(self, id: str, transaction: Transaction) -> None:
        known = self.held.get(id, ())
        if transaction.is_open and transaction.partitions and transaction not in known:
            self.held[id] = (*known, transaction)

    def _send(self, ids: Sequence[str], deadline: float) -> None:
        remaining = deadline - self.now()
        if not ids or remaining <= 0:
            return
        timeouts = {id: task_timeout(self._pending[id].seen) for id in ids}
        self.sent |= timeouts.keys()
        try:
            self.calls.fence(
                timeouts,
                min(remaining, max(MIN_REQUEST_TIMEOUT, self.timeout / 3)),
                self._on_answer,
            )
        except ConnectctlError as e:
            for id in ids:
                if id in self._pending:
                    self._finish(id, Problem(e.code, str(e)))

    def _on_answer(self, id: str, answer: InitProducerIdResponse) -> None:
        next_state = after_answer(self._pending[id], answer, id)
        if isinstance(next_state, FenceAttempt):
            self._pending[id] = next_state
        else:
            self._finish(id, next_state)

    def _finish(self, id: str, end: Fenced | Problem) -> None:
        row, before = self._rows[id], self._before[id]
        producer, epoch = (before.producer_id, before.epoch) if before else (None, None)
        if isinstance(end, Fenced):
            known = {"epoch_before": epoch, "epoch_after": end.epoch, "aborted": end.aborted}
            result = _result(row, FenceOutcome.FENCED, producer_id=end.producer_id, **known)
        else:
            result = _result(
                row, FenceOutcome.FAILED, producer_id=producer, epoch_before=epoch, problem=end
            )
        with self._lock:
            self.results.setdefault(id, result)
        del self._pending[id]
        self.on_result(result)


def fence_ids(
    calls: TransactionCalls,
    ids: Iterable[str],
    timeout: float,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[IdResult]:
    """Fence each of ``ids`` that a coordinator knows, and return the results of those that
    failed.
    """
    fencer = BatchFencer(
        calls, [FenceTarget(id_, FenceAction.FENCE) for id_ in ids], timeout, now=now, sleep=sleep
    )
    fencer.run()
    return [result for result in fencer.results.values() if result.outcome is FenceOutcome.FAILED]


def without_request(row: FenceTarget) -> IdResult | None:
    """Return the result of an id without a request; None for an id to fence."""
    outcome = _NO_REQUEST.get(row.action)
    return None if outcome is None else _result(row, outcome, problem=row.problem)


def _result(row: FenceTarget, outcome: FenceOutcome, **more: Any) -> IdResult:
    return IdResult(row.id, outcome, row.connector, row.task, **more)

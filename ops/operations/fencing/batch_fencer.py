"""Fences many ids at once: all coordinators together, what is not final again after a pause, until done or out of time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import Caught, Chase, Problem, after_answer, after_look, out_of_time
from connectctl.ops.kafka.transactions import Transaction, task_timeout
from connectctl.ops.operations.fencing.snapshot import Action, Fate, IdResult, Row

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Answer, TransactionCalls

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
LEAST_PATIENCE = 2.0
"""Seconds that a coordinator has at least to answer one request."""
_WITHOUT_REQUEST = {Action.LEAVE: Fate.UNKNOWN, Action.SKIP: Fate.SKIPPED, Action.CANNOT: Fate.FAILED}
_EXPIRED = "No coordinator knows the id any more: it expired after the plan was made."


@dataclass
class Campaign:
    """Fencing of ``rows`` until ``deadline`` (of ``now``). Its results can be read at any time, from any thread.

    ``held`` are the partitions of the transactions that were open, with the producer that held them. ``told`` hears of
    each result when it is final; it may be called from another thread.
    """

    calls: TransactionCalls
    rows: Sequence[Row]
    timeout: float
    told: Callable[[IdResult], None] = lambda result: None
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    results: dict[str, IdResult] = field(default_factory=dict)
    held: dict[str, tuple[Transaction, ...]] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    _chases: dict[str, Chase] = field(default_factory=dict)
    _before: dict[str, Transaction | None] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def _rows(self) -> dict[str, Row]:
        return {row.id: row for row in self.rows}

    def run(self) -> None:
        """Fence; returns when every id has a result."""
        deadline = self.now() + self.timeout
        for row in self.rows:
            if (result := without_request(row)) is not None:
                self.results[row.id] = result
            else:
                self._chases[row.id] = Chase(row.transaction)
        ready = self._look_first()
        pause = FIRST_PAUSE
        while self._chases:
            self._ask(ready, deadline)
            left = deadline - self.now()
            if not self._chases or left <= 0:
                break
            self.sleep(min(left, pause * random.uniform(0.5, 1.5)))
            pause = min(pause * 2, LONGEST_PAUSE)
            ready = self._look_again()
        for id, chase in list(self._chases.items()):
            self._finish(id, out_of_time(chase, self.timeout))

    def interrupted(self) -> None:
        """Give every id without a result the one it has when the person ends it all."""
        with self._lock:
            for row in self.rows:
                if row.id in self.results:
                    continue
                fate = Fate.FAILED if row.id in self.sent else Fate.SKIPPED
                message = (
                    "Interrupted, and its request may have been sent: connectctl transactions show tells what came of it."
                    if row.id in self.sent
                    else "Interrupted before it was asked for."
                )
                self.results[row.id] = _result(row, fate, problem=Problem("interrupted", message))

    def _look_first(self) -> list[str]:
        """Bring the plan's epochs up to date, which move with every commit, and give the ids to ask for."""
        ids = list(self._chases)
        found = self._described(ids)
        for id in ids:
            seen = found.get(id, Code.NO_ANSWER)
            if isinstance(seen, Transaction):
                self._chases[id] = Chase(seen)
            elif seen is Code.TRANSACTIONAL_ID_NOT_FOUND and self._rows[id].action is Action.FENCE:
                # It expired since the plan was made; to ask for it would create it.
                del self._chases[id]
                self.results[id] = _result(self._rows[id], Fate.UNKNOWN, problem=Problem(seen.name, _EXPIRED))
        self._before = {id: chase.seen for id, chase in self._chases.items()}
        return list(self._chases)

    def _look_again(self) -> list[str]:
        """Look at the ids that are left, settle those that are done by now, and give those to ask for again."""
        ready = []
        found = self._described(list(self._chases))
        for id, chase in list(self._chases.items()):
            ask, then = after_look(chase, found.get(id, Code.NO_ANSWER))
            if not isinstance(then, Chase):
                self._finish(id, then)
                continue
            self._chases[id] = then
            ready += [id] if ask else []
        return ready

    def _described(self, ids: Sequence[str]) -> Mapping[str, Transaction | Code]:
        if not ids:
            return {}
        try:
            found = self.calls.describe(ids)
        except ConnectctlError:
            return {}
        for id, seen in found.items():
            if isinstance(seen, Transaction):
                self._remember(id, seen)
        return found

    def _remember(self, id: str, seen: Transaction) -> None:
        known = self.held.get(id, ())
        if seen.is_open and seen.partitions and seen not in known:
            self.held[id] = (*known, seen)

    def _ask(self, ids: Sequence[str], deadline: float) -> None:
        left = deadline - self.now()
        if not ids or left <= 0:
            return
        timeouts = {id: task_timeout(self._chases[id].seen) for id in ids}
        self.sent |= timeouts.keys()
        try:
            self.calls.fence(timeouts, min(left, max(LEAST_PATIENCE, self.timeout / 3)), self._heard)
        except ConnectctlError as e:
            for id in ids:
                if id in self._chases:
                    self._finish(id, Problem(e.code, str(e)))

    def _heard(self, id: str, answer: Answer) -> None:
        then = after_answer(self._chases[id], answer)
        if isinstance(then, Chase):
            self._chases[id] = then
        else:
            self._finish(id, then)

    def _finish(self, id: str, end: Caught | Problem) -> None:
        row, before = self._rows[id], self._before[id]
        producer, epoch = (before.producer_id, before.epoch) if before else (None, None)
        if isinstance(end, Caught):
            known = {"epoch_before": epoch, "epoch_after": end.epoch, "aborted": end.aborted}
            result = _result(row, Fate.FENCED, producer_id=end.producer_id, **known)
        else:
            result = _result(row, Fate.FAILED, producer_id=producer, epoch_before=epoch, problem=end)
        with self._lock:
            self.results.setdefault(id, result)
        del self._chases[id]
        self.told(result)


def fence_ids(
    calls: TransactionCalls,
    ids: Iterable[str],
    timeout: float,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[IdResult]:
    """Fence each of ``ids`` that a coordinator knows; gives the results of those that could not be fenced."""
    campaign = Campaign(calls, [Row(id_, Action.FENCE) for id_ in ids], timeout, now=now, sleep=sleep)
    campaign.run()
    return [result for result in campaign.results.values() if result.fate is Fate.FAILED]


def without_request(row: Row) -> IdResult | None:
    """The result of an id for which nothing is asked; None for one that is to be fenced."""
    fate = _WITHOUT_REQUEST.get(row.action)
    return None if fate is None else _result(row, fate, problem=row.problem)


def _result(row: Row, fate: Fate, **more: Any) -> IdResult:
    return IdResult(row.id, fate, row.connector, row.task, **more)

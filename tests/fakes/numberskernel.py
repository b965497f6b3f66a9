"""A source of numbers in the exactly-once kernel, and what it did in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import (
    END,
    Event,
    ProducerRecord,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.transactional_producer import Fenced, UnknownOutcome

KEY = b'["c",{"f":1}]'


@dataclass
class Log:
    """What a broker would hold for one transactional id; ``fail`` raises at the call with that
    number.
    """

    committed: list[bytes] = field(default_factory=list)
    offset: bytes | None = None
    commits: int = 0
    epoch: int = 0
    calls: int = 0
    fail: dict[int, Callable[[], Exception]] = field(default_factory=dict)
    commit_anyway: bool = False
    trace: list[str] = field(default_factory=list)
    leftover: Callable[[Sequence[str]], str | None] = lambda topics: None

    def count(self, what: str) -> Exception | None:
        self.calls += 1
        self.trace.append(what)
        return self.fail.pop(self.calls)() if self.calls in self.fail else None


class FakeHandle:
    """An instance that ends when a newer one is initialised; a commit in doubt may have happened
    all the same.
    """

    id = "g-c-0"
    timeout_ms = 60_000
    overdue = False
    bumps_epoch = False
    whose: bool | None = False

    def expired(self) -> bool | None:
        return self.whose

    def __init__(self, log: Log):
        self._log = log
        self._epoch = -1
        self._open: list[Any] = []
        self._is_open = False

    def initialise(self, patience: float) -> None:
        self._raise("initialise")
        self._log.epoch += 1
        self._epoch = self._log.epoch

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        return self._log.leftover(topics)

    def begin(self) -> None:
        self._raise("begin")
        self._open, self._is_open = [], True

    def send(self, step: TransactionBatch) -> None:
        self._raise("send")
        self._open += [record.value for record in step.records]

    def send_offsets(self, topic: str, offsets: Any) -> None:
        self._raise("offsets")
        self._open.append(dict(offsets))

    def commit(self, patience: float) -> None:
        self._is_open = False
        error = self._log.count("commit")
        if self._epoch != self._log.epoch:
            raise Fenced("a newer one")
        if error is None or self._log.commit_anyway:
            for item in self._open:
                if isinstance(item, dict):
                    self._log.commits += 1
                    self._log.offset = item.get(KEY, self._log.offset)
                else:
                    self._log.committed.append(item)
        if error is not None:
            raise error

    def abort(self, patience: float) -> None:
        self._is_open = False
        self._raise("abort")
        self._open = []

    def unusable_because(self) -> str | None:
        return None

    def discard(self) -> None:
        if self._is_open:
            with suppress(UnknownOutcome, Fenced, ConnectctlError):
                self.abort(1)
        self._log.trace.append("drop")

    def _raise(self, what: str) -> None:
        if error := self._log.count(what):
            raise error
        if what != "initialise" and self._epoch != self._log.epoch:
            raise Fenced("a newer one")


class FakeStore:
    def __init__(self, log: Log):
        self._log = log
        self._value: bytes | None = None
        self._commits = 0

    def refresh(self, patience: float) -> None:
        if error := self._log.count("read"):
            raise error
        self._value, self._commits = self._log.offset, self._log.commits

    def position(self, key: bytes) -> tuple[int, int] | None:
        return (0, self._commits) if self._value is not None else None

    def value(self, key: bytes) -> bytes | None:
        return self._value

    def known(self) -> frozenset[bytes]:
        return frozenset()


class Numbers:
    """Supplies the numbers up to ``last``, two in a step, from behind the stored offset."""

    def __init__(self, last: int):
        self._last = last
        self._next = 0
        self.confirmed = 0

    def resume(self, stored: Any) -> None:
        value = stored.value(KEY)
        self._next = int(value) + 1 if value is not None else 0

    def next(self) -> Event:
        return self.batch() or END

    def batch(self) -> TransactionBatch | None:
        """The next numbers; None at the end."""
        numbers = range(self._next, min(self._next + 2, self._last + 1))
        if not numbers:
            return None
        self._next = numbers[-1] + 1
        records = [ProducerRecord("t", None, str(n).encode()) for n in numbers]
        return TransactionBatch(records=records, offsets={KEY: str(numbers[-1]).encode()})

    def final_batch(self) -> TransactionBatch | None:
        return None

    def committed(self, step: TransactionBatch) -> None:
        self.confirmed += step.size


def kernel(log: Log, **more: Any) -> AttemptLoop:
    offsets: Any = {"store": FakeStore(log)} | {
        name: more.pop(name) for name in ("store", "history") if name in more
    }
    made: Any = {
        "open_producer": lambda: FakeHandle(log),
        "ledger": SourceOffsetsLedger("offsets", **offsets),
    }
    return AttemptLoop(**made | {"sleep": lambda seconds: None} | more)

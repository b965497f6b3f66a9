"""One fenced transactional task: everything that makes its delivery exactly-once, in one place.

The protocol, of which KIP-618's task is the model:

1. check that this generation of task configurations is the newest; else end as STALE;
2. initialise a producer of the transactional id: from here on no older instance can commit;
3. check the generation again, because the initialisation may have waited for long;
4. read the committed offsets to an end taken after 2, and let the supply begin there;
5. per transaction: records and their offsets together, then the commit; go on only behind a commit that is certain;
6. end between two transactions.

After any doubt the instance is thrown away and it all begins at 1 with a new one: whether the last transaction was
committed is read from the topic, never guessed. A task that is fenced ends, and never initialises again: two attempts of
one task would fence each other for ever. Any initialisation is followed by a reading.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectctl.ops.errors import ConnectctlError, TimedOut, Unreachable
from connectctl.ops.runtime.handle import Doubt, Fenced, Handle
from connectctl.ops.runtime.step import Counts, Ended, How, Step, Supply

if TYPE_CHECKING:
    from connectctl.ops.runtime.committed import Store
    from connectctl.ops.runtime.secondary import Secondary

IDLE_PAUSE = 0.02
"""Seconds between two looks at a supply that has nothing."""
ABORT_PATIENCE = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
MOST_DOUBTS_KEPT = 100

REMEDIES = (
    "Give it more time (producer.override.transaction.timeout.ms, up to the broker's transaction.max.timeout.ms), let it "
    "poll fewer records at once, or commit more often (transaction.boundary=poll, a shorter "
    "transaction.boundary.interval.ms)."
)


@dataclass(frozen=True)
class Kernel:
    """What a task works with.

    ``open_handle`` makes an instance of the task's producer, ``topic`` is its primary offsets topic and ``store`` reads it.
    ``stale`` says why this generation is not the newest any more, None while it is. ``patience`` is in seconds, for each
    request and for the whole time without a transaction. ``strict`` takes a new epoch for every transaction.
    """

    open_handle: Callable[[], Handle]
    topic: str
    store: Store
    secondary: Secondary | None = None
    stale: Callable[[], str | None] = lambda: None
    stopped: Callable[[], bool] = lambda: False
    patience: float = 30.0
    strict: bool = False
    counts: Counts = field(default_factory=Counts)
    sleep: Callable[[float], None] = time.sleep

    def run(self, supply: Supply) -> Ended:
        """Carry the supply's records over until it ends, is stopped, or another one takes over.

        Raises ``ConnectctlError`` where only a person can help, ``TimedOut`` where doubts did not end within ``patience``.
        """
        failing_since: float | None = None
        pause = FIRST_PAUSE
        while True:
            before = self.counts.transactions
            try:
                ended = self._instance(supply)
                if ended is not None:
                    return ended
                failing_since = None
                continue
            except Fenced as e:
                return self._end(How.FENCED, str(e))
            except (Doubt, TimedOut, Unreachable) as e:
                if len(self.counts.doubts) < MOST_DOUBTS_KEPT:
                    self.counts.doubts.append(str(e))
                now = time.monotonic()
                if failing_since is None or self.counts.transactions > before:
                    failing_since, pause = now, FIRST_PAUSE
                if now - failing_since > self.patience:
                    raise _given_up(self.patience, e) from e
            if self.stopped():
                return self._end(How.STOPPED)
            self.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _instance(self, supply: Supply) -> Ended | None:
        """The life of one instance of the producer; None where another one is to follow."""
        if why := self.stale():
            return self._end(How.STALE, why)
        handle = self.open_handle()
        try:
            handle.initialise(self.patience)
            self.counts.instances += 1
            if why := self.stale():
                return self._end(How.STALE, why)
            self.store.refresh(self.patience)
            supply.resume(self.store)
            return self._work(handle, supply)
        finally:
            handle.drop()

    def _work(self, handle: Handle, supply: Supply) -> Ended | None:
        while True:
            if self.stopped():
                return self._end(How.STOPPED)
            step = supply.step()
            if step is not None:
                self._transact(handle, supply, step)
                if self.strict:
                    return None
            elif supply.ended:
                return self._end(How.ENDED)
            else:
                self.sleep(IDLE_PAUSE)
            if why := handle.doubt():
                raise Doubt(why)

    def _transact(self, handle: Handle, supply: Supply, step: Step) -> None:
        if step.abort:
            self._discard(handle, step)
        else:
            self._commit(handle, step)
        supply.committed(step)

    def _discard(self, handle: Handle, step: Step) -> None:
        handle.begin()
        handle.send(step)
        handle.abort(self.patience)
        self.counts.aborted += 1
        if step.offsets:
            self._commit(handle, Step(offsets=step.offsets))

    def _commit(self, handle: Handle, step: Step) -> None:
        if self.secondary is not None:
            # A tombstone that only the primary had would let the secondary's value come back (KAFKA-15018).
            self.secondary.write_tombstones(step.offsets)
        handle.begin()
        try:
            handle.send(step)
            handle.send_offsets(self.topic, step.offsets)
        except BaseException:
            # No commit was asked for, so it can be aborted; else readers would wait until its time-out.
            with suppress(Doubt, Fenced, ConnectctlError):
                handle.abort(ABORT_PATIENCE)
            raise
        try:
            handle.commit(self.patience)
        except Fenced as e:
            if handle.overdue:
                timeout = f"{handle.timeout_ms / 1000:g} s"
                raise Fenced(f"{e}; its transaction was open for longer than {timeout}. {REMEDIES}") from e
            raise
        self.counts.commit(step.size)
        if self.secondary is not None:
            self.secondary.write_values(step.offsets)

    def _end(self, how: How, why: str | None = None) -> Ended:
        return Ended(how, self.counts, why)


def _given_up(patience: float, last: Exception) -> TimedOut:
    return TimedOut(
        f"The task got no transaction through for {patience:g} s",
        why=str(last),
        next_step="Look at the brokers, and start it again: it goes on from what is committed.",
    )

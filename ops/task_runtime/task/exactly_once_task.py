"""One fenced transactional task: everything that makes its delivery exactly-once, in one place.

The protocol, of which KIP-618's task is the model:

1. check that this generation of task configurations is the newest; else end as STALE;
2. initialise a producer of the transactional id: from here on no older instance can commit;
3. check the generation again, because the initialisation may have waited for long;
4. read the committed offsets as they are after 2 (``ledger``), and let the supply begin there, unless they lack what this
   task has committed itself; write to no topic where a broker has left an older transaction of the task open;
5. per transaction: records and their offsets together, then the commit; continue only behind a commit that is certain;
6. end between two transactions.

After any doubt the instance is thrown away and it all begins at 1 with a new one: whether the last transaction was
committed is read from the topic, never guessed. A task that is fenced ends, and never initialises again: two attempts of
one task would fence each other for ever. Any initialisation is followed by a reading.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut, Unreachable
from connectctl.ops.task_runtime.spi.latency_meter import OpenPolls
from connectctl.ops.task_runtime.spi.latency_pace import REST
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    RecordSource,
    TaskResult,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.rejected_records import RejectedRecord
from connectctl.ops.task_runtime.task.transactional_producer import Expired, Fenced, TaskProducer, UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.task.ledger import Ledger

IDLE_PAUSE = REST
"""Seconds between two looks at a supply that has nothing."""
ABORT_PATIENCE = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
SUSPENDED = 2
"""Times ``patience`` that no call waits for Kafka: one that took longer was suspended with its process."""
MOST_DOUBTS_KEPT = 100
MOST_EXPIRED = 3
"""Transactions one after the other that ran into their time-out, of which a supply may make each smaller. They end a task
where that lasts longer than an outage of brokers may: brokers that are restarted make transactions slow, too."""

REMEDIES = (
    "Increase producer.override.transaction.timeout.ms (at most transaction.max.timeout.ms of the brokers), let it "
    "poll fewer records at once, or commit more often (transaction.boundary=poll, a shorter "
    "transaction.boundary.interval.ms)."
)

RUN_AGAIN = "Check the brokers, then run it again: it resumes from the committed offsets."


@dataclass(frozen=True)
class ExactlyOnceTask:
    """What a task works with.

    ``open_producer`` creates a producer of the task, ``ledger`` has its offsets. ``stale_because`` says why this generation
    is no longer the newest, None while it is. ``patience`` is in seconds, for each request and for the whole time without a
    transaction, where ``outage`` is not longer. ``strict`` takes a new epoch for every
    transaction, where the producer's transactions have not one each by themselves.
    """

    open_producer: Callable[[], TaskProducer]
    ledger: Ledger
    stale_because: Callable[[], str | None] = lambda: None
    stopped: Callable[[], bool] = lambda: False
    patience: float = 30.0
    strict: bool = False
    stats: TaskStats = field(default_factory=TaskStats)
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    checked_topics: set[str] = field(default_factory=set)
    """Topics in which nothing older of the task is open."""
    remedies: str = REMEDIES
    """What a person can do about transactions that run into their time-out."""
    visible_when_sent: bool = False
    """Whether readers see records before the commit: there are no transactions, and what is sent is waited for."""
    outage: float = 0.0
    batch_size_fits: Callable[[Collection[str]], bool] = lambda topics: True
    """Whether the producer's batches are small enough for these topics."""
    send_one_by_one: Callable[[], bool] = lambda: False
    """Whether ``open_producer`` gives instances from now on that name a record which is refused, and did not before."""

    def run(self, source: RecordSource) -> TaskResult:
        """Carry the supply's records over until it ends, is stopped, or another one takes over.

        Raises ``ConnectctlError`` where only a person can help, ``TimedOut`` where doubts did not end within ``patience``.
        """
        doing = self.stats.progress
        pause = FIRST_PAUSE
        longest = max(self.patience, self.outage)
        expired, slow = 0, 0.0
        while True:
            before = self.stats.transactions
            try:
                ended = self._run_producer(source)
                if ended is not None:
                    return ended
                continue
            except Fenced as e:
                return self._end(EndReason.FENCED, str(e))
            except (NotAuthorized, RejectedRecord) as e:
                if isinstance(e, NotAuthorized) or not self.send_one_by_one():
                    raise  # which no waiting mends
                continue
            except (UnknownOutcome, TimedOut, Unreachable) as e:
                self.checked_topics.clear()
                if len(self.stats.doubts) < MOST_DOUBTS_KEPT:
                    self.stats.doubts.append(str(e))
                first = doing.failed(str(e), SUSPENDED * self.patience)
                if first or self.stats.transactions > before:
                    pause, expired = FIRST_PAUSE, 0
                if isinstance(e, Expired):
                    slow = slow + doing.waited if expired else 0.0
                    expired += 1
                    doing.restart()
                    if expired >= MOST_EXPIRED and slow >= longest:
                        what = "Timed out waiting for a commit of the task"
                        raise ConnectctlError(
                            what, why=str(e), next_step=self.remedies, code="transaction-timeout"
                        ) from e
                if not first and doing.waited > longest:
                    raise TimedOut(
                        f"No transaction committed for {longest:g} s", why=str(e), next_step=RUN_AGAIN
                    ) from e
            if self.stopped():
                return self._end(EndReason.STOPPED)
            self.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _run_producer(self, source: RecordSource) -> TaskResult | None:
        """The life of one instance of the producer; None where another one is to follow."""
        doing = self.stats.progress
        with doing.asking("read the config topic"):
            why = self.stale_because()
        if why:
            return self._end(EndReason.STALE, why)
        handle = self.open_producer()
        try:
            with doing.asking("initialise its producer"):
                handle.initialise(self.patience)
            self.stats.instances += 1
            self.stats.meter.forget()
            if why := self.stale_because():
                return self._end(EndReason.STALE, why)
            with doing.asking("read the committed offsets"):
                self.check_topics(handle, self.ledger.topics)
                stored = self.ledger.refresh(self.patience)
            source.resume(stored)
            return self._loop(handle, source)
        except _BatchTooLarge:
            return None
        finally:
            handle.discard()

    def _loop(self, producer: TaskProducer, source: RecordSource) -> TaskResult | None:
        transaction = TaskTransaction(self, producer)
        self.ledger.open(lambda: transaction.commit_open(source))
        while True:
            step = None if self.stopped() else source.next_batch()
            if step is not None:
                transaction.add(source, step)
            elif self.stopped() or source.ended:
                how = EndReason.ENDED if source.ended else EndReason.STOPPED
                transaction.finish(source)
                return self._end(how)
            else:
                self.stats.progress.recovered()
                self.sleep(IDLE_PAUSE)
            if transaction.begun:
                continue
            if self.strict and not producer.bumps_epoch and step is not None and (step.size or step.offsets):
                return None
            if why := producer.unusable_because():
                raise UnknownOutcome(why)

    def check_topics(self, producer: TaskProducer, topics: set[str]) -> None:
        """Raises ``UnknownOutcome`` where an older transaction of the task is open in one of ``topics``."""
        if new := topics - self.checked_topics:
            if not self.batch_size_fits(new):
                raise _BatchTooLarge
            if why := producer.open_older_transaction(sorted(new)):
                raise UnknownOutcome(why)
            self.checked_topics.update(new)

    def _end(self, how: EndReason, why: str | None = None) -> TaskResult:
        return TaskResult(how, self.stats, why)


class _BatchTooLarge(Exception):
    """The producer's batches are too large for a topic that the task had not written to before."""


class TaskTransaction:
    """The transaction of a task that is open, or the next one; ``size`` counts the records that are in it."""

    def __init__(self, task: ExactlyOnceTask, producer: TaskProducer):
        self._task = task
        self._producer = producer
        self.begun = False
        self.size = 0
        self._polls = OpenPolls()

    def add(self, source: RecordSource, batch: TransactionBatch) -> None:
        """Put ``batch`` into it, and end it where the step says so. A transaction without anything is none at all."""
        if batch.size:
            polled = self._task.now() if batch.polled is None else batch.polled
            self._task.check_topics(self._producer, batch.topics)
            self._send(lambda: self._producer.send(batch))
            self.size += batch.size
            self._polls.add(polled, batch.size)
            if self._task.visible_when_sent:
                self._see()
        if batch.more:
            return
        if batch.abort and self.begun:
            self._producer.abort(self._task.patience)
            self._task.stats.aborted += 1
            self._task.stats.meter.discard(self.size)
            self._close()
        if self.begun or batch.offsets:
            with self._task.stats.meter.committing():
                self._commit(batch.offsets)
        source.committed(batch)

    def finish(self, source: RecordSource) -> None:
        """Give it its last end; abort what has none, so that readers need not wait for its time-out."""
        self.commit_open(source)
        if self.begun:
            self._producer.abort(ABORT_PATIENCE)
            self.begun = False

    def commit_open(self, source: RecordSource) -> None:
        """Commit what the source has given, where that is a good end."""
        if step := source.final_batch():
            self.add(source, step)

    def _commit(self, offsets: Any) -> None:
        ledger = self._task.ledger
        ledger.before(offsets)
        self._send(lambda: ledger.write(self._producer, offsets))
        try:
            with self._task.stats.progress.asking("commit a transaction"):
                self._producer.commit(self._task.patience)
        except Fenced as e:
            raise self._explained(e) from e
        self._task.stats.progress.recovered()
        self._task.stats.commit(self.size)
        self._see()
        self._close()
        ledger.after(offsets)

    def _see(self) -> None:
        """Readers can see its records."""
        self._task.stats.latency.committed(self._polls.took(self._task.now()))
        self._polls.clear()

    def _close(self) -> None:
        self.begun, self.size = False, 0
        self._polls.clear()

    def _send(self, send: Callable[[], None]) -> None:
        if not self.begun:
            self._producer.begin()
            self.begun = True
        try:
            with self._task.stats.progress.asking("write its records"):
                send()
        except Fenced as e:
            raise self._explained(e) from e
        except BaseException:
            # No commit was asked for, so it can be aborted; else readers would wait until its time-out.
            with suppress(UnknownOutcome, Fenced, ConnectctlError):
                self._producer.abort(ABORT_PATIENCE)
            raise

    def _explained(self, fenced: Fenced) -> Fenced | Expired:
        """What ``fenced`` was, where it may have been the coordinator that lost its patience."""
        if not self._producer.overdue:
            return fenced
        slow = (
            f"its transaction was open for longer than transaction.timeout.ms of {self._producer.timeout_ms / 1000:g} s"
        )
        expired = self._producer.expired()
        if expired:
            return Expired(slow)
        return fenced if expired is not None else Fenced(f"{fenced}; {slow}. {self._task.remedies}")

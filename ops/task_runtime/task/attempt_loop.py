"""The only loop of a task's attempts, which implements exactly-once delivery: of sources, transforms
and sinks.

Each of these is a body, which returns events; the loop handles one after the other, and calls no
body during a call of it. The protocol, modelled on KIP-618's task:

1. check that this generation of task configurations is the newest; else end as STALE;
2. initialise a producer of the transactional id: from then on no older instance can commit;
3. check the generation again, because the initialisation may have taken long;
4. read the committed offsets after 2 (``ledger``), and start the body there, unless they lack
   commits of this task; write to no topic in which a broker has left an older transaction of the
   task open. The offsets of a consumer group are those of a member, which waits for pending ones
   (KIP-447);
5. per transaction: records and their offsets together, then the commit; continue only after a
   confirmed commit;
6. end between two transactions. A transaction that is open at the end, or when anything raises, is
   aborted as its producer is discarded, in one place, unless its commit was requested.

After any unknown outcome the producer is discarded and a new one begins at 1: whether the last
transaction was committed is read from the topic, never assumed. A fenced task ends, and never
initialises again: two attempts of one task would fence each other forever. Every initialisation is
followed by a read of the offsets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut, Unreachable
from connectctl.ops.task_runtime.spi.latency_meter import OpenPolls
from connectctl.ops.task_runtime.spi.latency_pace import REST
from connectctl.ops.task_runtime.spi.transaction_batch import (
    END,
    EndReason,
    Event,
    Read,
    RecordSource,
    TaskResult,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.rejected_records import RejectedRecord
from connectctl.ops.task_runtime.task.transactional_producer import (
    Expired,
    Fenced,
    PollIntervalExceeded,
    Rebalancing,
    TaskProducer,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.task.ledger import Ledger

IDLE_PAUSE = REST
"""Seconds between two polls without records."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
SUSPENDED = 2
"""A call that took longer than this multiple of ``patience`` was suspended with its process."""
MOST_DOUBTS_KEPT = 100
MOST_EXPIRED = 3
"""Consecutive transactions that timed out; a source may make each smaller. They fail a task if this
lasts longer than an outage of brokers may: restarting brokers also make transactions slow.
"""

LONGER = (
    "Increase producer.override.transaction.timeout.ms (at most transaction.max.timeout.ms "
    "of the brokers)"
)
REMEDIES = (
    f"{LONGER}, let it poll fewer records at once, or commit more often "
    "(transaction.boundary=poll, a shorter transaction.boundary.interval.ms)."
)

RUN_AGAIN = "Check the brokers, then run it again: it resumes from the committed offsets."


@dataclass(frozen=True)
class AttemptLoop:
    """The loop of a task, with its context.

    ``open_producer`` creates a producer of the task, ``ledger`` has its offsets. ``stale_because``
    returns why this generation is no longer the newest, None while it is. ``patience`` is in
    seconds, for each request and for the whole time without a transaction, unless ``outage`` is
    longer. ``strict`` initialises a new epoch for every transaction, unless the producer's
    transactions have one each.
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
    """Topics in which no older transaction of the task is open."""
    remedies: str = REMEDIES
    """Remedies for transactions that time out."""
    visible_when_sent: bool = False
    """True if records are readable before the commit: without transactions, a send waits for
    acknowledgements.
    """
    outage: float = 0.0
    batch_size_fits: Callable[[Collection[str]], bool] = lambda topics: True
    """Return whether the producer's batches are small enough for these topics."""
    send_one_by_one: Callable[[], bool] = lambda: False
    """Switch ``open_producer`` to instances that name a rejected record. Return whether earlier
    instances did not.
    """

    def run(self, source: RecordSource) -> TaskResult:
        """Write the records of ``source``, or those of a transform or sink, until it ends, is
        stopped, or another task takes over.

        Raises ``ConnectctlError`` if the user must act, ``TimedOut`` if nothing was committed
        within ``patience``.
        """
        doing = self.stats.progress
        pause = FIRST_PAUSE
        longest = max(self.patience, self.outage)
        expired, slow = 0, 0.0
        while True:
            before = self.stats.transactions
            try:
                ended = self._attempt(source)
                if ended is not None:
                    return ended
                continue
            except (Fenced, PollIntervalExceeded) as e:
                return self._end(
                    EndReason.FENCED if isinstance(e, Fenced) else EndReason.SLOW, str(e)
                )
            except (NotAuthorized, RejectedRecord) as e:
                if isinstance(e, NotAuthorized) or not self.send_one_by_one():
                    raise  # waiting does not help
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
                        f"Nothing committed for {longest:g} s",
                        why=str(e),
                        next_step=RUN_AGAIN,
                    ) from e
            if self.stopped():
                return self._end(EndReason.STOPPED)
            self.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _attempt(self, source: RecordSource) -> TaskResult | None:
        """Run with one producer. Return None if the task continues with a new one."""
        doing = self.stats.progress
        with doing.asking("read the config topic"):
            why = self.stale_because()
        if why:
            return self._end(EndReason.STALE, why)
        producer = self.open_producer()
        try:
            with doing.asking("initialise its producer"):
                producer.initialise(self.patience)
            self.stats.instances += 1
            self.stats.meter.forget()
            if why := self.stale_because():
                return self._end(EndReason.STALE, why)
            with doing.asking("read the committed offsets"):
                self.check_topics(producer, self.ledger.topics)
                stored = self.ledger.refresh(self.patience)
            source.resume(stored)
            return self._transactions(producer, source)
        except _BatchTooLarge:
            return None
        finally:
            producer.discard()

    def _transactions(self, producer: TaskProducer, source: RecordSource) -> TaskResult | None:
        transaction = TaskTransaction(self, producer, source)
        while True:
            stopped = self.stopped()
            event = END if stopped else source.next()
            transaction.handle(event)
            if event is END:
                return self._end(EndReason.STOPPED if stopped else EndReason.ENDED)
            if transaction.begun:
                continue
            if (
                self.strict
                and not producer.bumps_epoch
                and isinstance(event, TransactionBatch)
                and (event.size or event.offsets)
            ):
                return None
            if why := producer.unusable_because():
                raise UnknownOutcome(why)

    def check_topics(self, producer: TaskProducer, topics: set[str]) -> None:
        """Raise ``UnknownOutcome`` if an older transaction of the task is open in one of
        ``topics``.
        """
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
    """The open transaction of a task, or the next one; ``size`` is the number of its records."""

    def __init__(self, task: AttemptLoop, producer: TaskProducer, source: RecordSource):
        self._task = task
        self._producer = producer
        self._source = source
        self.begun = False
        self.size = 0
        self._polls = OpenPolls()

    def handle(self, event: Event) -> None:
        """Do what ``event`` of the source means. At the end, what is left is committed."""
        if isinstance(event, TransactionBatch):
            self._add(event)
        elif isinstance(event, Read):
            self._task.stats.progress.recovered()
            if not event.fresh:
                self._task.sleep(IDLE_PAUSE)
        else:
            while (batch := self._source.final_batch()) is not None:
                self._add(batch)

    def _add(self, batch: TransactionBatch) -> None:
        """Add ``batch``, and end the transaction unless ``batch.more``. An empty transaction is not
        begun.
        """
        if batch.size:
            polled = self._task.now() if batch.polled is None else batch.polled
            self._task.check_topics(self._producer, batch.topics)
            self._send(lambda: self._producer.send(batch))
            if batch.read is None:
                self._polls.add(polled, batch.size)
            if self._task.visible_when_sent:
                self._record_latency()
        self.size += batch.size if batch.read is None else batch.read
        if batch.more:
            return
        if batch.abort and self.begun:
            self._producer.abort(self._task.patience)
            self._task.stats.aborted += 1
            self._task.stats.meter.discard(self.size)
            self._close()
        if self.begun or batch.offsets:
            try:
                with self._task.stats.meter.committing():
                    self._commit(batch.offsets)
            except Rebalancing as e:
                if batch.refused is None:
                    raise
                self._producer.abort(self._task.patience)
                self._close()
                batch.refused(e)
                return
        self._source.committed(batch)

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
        self._record_latency()
        self._close()
        ledger.after(offsets)

    def _record_latency(self) -> None:
        """Measure the latency of its records, which are now readable."""
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

    def _explained(self, fenced: Fenced) -> Fenced | Expired:
        """Return the cause of ``fenced``, with remedies if it may be a transaction timeout; the
        coordinator may not say.
        """
        producer = self._producer
        if not producer.overdue:
            return fenced
        slow = (
            "its transaction was open for longer than transaction.timeout.ms of "
            f"{producer.timeout_ms / 1000:g} s"
        )
        expired = producer.expired()
        if expired:
            return Expired(slow)
        if expired is None:
            return Fenced(f"{fenced}; {slow}. {self._task.remedies}")
        return fenced

"""``run_sink``: a sink's task under the real loop, with its topics and its consumer group in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from connectctl.ops.core.errors import TimedOut
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer_settings import MOST_RECORDS
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.spi.connector import RetriableError
from connectctl.ops.task_runtime.spi.error_settings import error_settings
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkConnector, SinkRecord, SinkTask
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord
from connectctl.ops.task_runtime.task.at_least_once import GroupCommits
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from connectctl.ops.task_runtime.testing.faults import Crash, FailAt, Fault, Faults
from connectctl.ops.task_runtime.testing.memory_consumer import (
    Given,
    Log,
    MemoryConsumer,
    committed_offsets,
    log_of,
)
from connectctl.ops.task_runtime.testing.memory_kafka import TIMEOUT_MS, MemoryKafka, MemoryProducer
from connectctl.ops.task_runtime.testing.prepare import task_configs, whole_config
from connectctl.ops.task_runtime.testing.results import SinkRun, failing, keep
from connectctl.ops.task_runtime.transforms.chain import transformation_chain

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

PATIENCE = 30.0
LONGEST_RETRIES = 86_400.0
"""Seconds on the clock of the run, which moves on only while there is nothing else to do."""


def run_sink(
    connector: type[SinkConnector],
    config: Mapping[str, str],
    topics: Mapping[str, Sequence[Given]],
    *,
    offsets: Mapping[TopicPartition, int] | None = None,
    fail_at: FailAt | None = None,
    partitions: Mapping[str, int] | None = None,
    batch: int = MOST_RECORDS,
    name: str = "connector",
    expect_failure: bool = False,
) -> SinkRun:
    """Run a sink on the records of ``topics`` without a cluster, until all of them are committed.

    ``config`` is validated as ``connectctl run`` does; ``topics`` is set if it is missing. One task
    has all partitions, and receives ``batch`` records at a time, after the converters of
    ``config``. Offsets are committed after each ``put``, and once more when the task is stopped; a
    pause that the task requests takes no time. After a failure a new task starts at the committed
    offsets, and receives the records after them again.

    ``offsets`` are those of the next records, committed by an earlier run, ``partitions`` the
    numbers of partitions of output topics, by default one. Raises what the connector or the task
    raises, or returns a run with the state FAILED if ``expect_failure`` is true.
    """
    kafka = MemoryKafka(
        Faults(fail_at or {}), partitions or {}, group=committed_offsets(offsets or {})
    )
    run = SinkRun()
    complete = whole_config(connector, {"topics": ",".join(topics), **config}, name)
    with failing(run, expect_failure):
        task = task_configs(connector, complete)[0]
        _SinkAttempts(connector, complete, task, log_of(topics), kafka, run, batch).run()
    keep(run, kafka)
    return run


class _Letters:
    """``DeadLetters`` in a list."""

    def __init__(self, into: list[ProducerRecord]):
        self.send: Callable[[ProducerRecord], None] = into.append

    def flush(self) -> None:
        """All are there."""

    discard = flush


class _Commits(GroupCommits):
    """Commits through the consumer."""

    def __init__(self, kafka: MemoryKafka, id_: str):
        super().__init__(cast("Kafka", kafka), id_, timeout_ms=TIMEOUT_MS)
        self._memory = kafka

    def initialise(self, patience: float) -> None:
        """What is committed can be read from now on."""
        self._memory.in_doubt = False


@dataclass
class _SinkAttempts:
    """A task, over all failures."""

    connector: type[SinkConnector]
    config: Mapping[str, str]
    task: Mapping[str, str]
    log: Log
    kafka: MemoryKafka
    result: SinkRun
    batch: int

    def __post_init__(self) -> None:
        self._current: SinkTask

    def run(self) -> None:
        killed: list[SinkTask] = []
        try:
            while not self._attempt(killed):
                pass
        finally:
            for task in killed:  # which was not stopped while that could have had an effect
                with suppress(Exception):
                    task.stop()

    def _attempt(self, killed: list[SinkTask]) -> bool:
        """Run one process; return whether it reached its end."""
        kafka, exactly_once = self.kafka, self.connector.exactly_once
        errors = RecordErrors(
            error_settings(self.config),
            self.config["name"],
            0,
            _Letters(self.result.dead_letters),
            self.result.notes.append,
        )
        body = WorkerSinkTask(
            self._open,
            self.task,
            reading_converters({**self.connector.default_converters, **self.config}),
            errors,
            interval=0.0,
            transactional=exactly_once,
            note=self.result.notes.append,
            most=self.batch,
            now=kafka.now,
            longest_poll=0.0,
            chain=transformation_chain(self.config),
        )
        kind = MemoryProducer if exactly_once else _Commits

        def stopped() -> bool:
            if kafka.seconds > LONGEST_RETRIES:
                raise TimedOut(
                    f"put still raised RetriableError after {LONGEST_RETRIES:g} s",
                    why=self.result.notes[-1],
                )
            return not body.has_more

        with closing(GroupLedger(lambda: MemoryConsumer(kafka, self.log), PATIENCE)) as ledger:
            loop = AttemptLoop(
                lambda: kind(kafka, "testing-0"),
                ledger,
                stopped=stopped,
                sleep=lambda seconds: None,
            )
            try:
                loop.run(body)
            except Crash:
                killed.append(self._current)
                return False
            except BaseException:
                with suppress(Exception):  # the first failure is the one to report
                    body.close()
                raise
        body.close()
        # As at the end of a lease: what became of the last commit is for the next task to find out.
        return not kafka.in_doubt

    def _open(self) -> SinkTask:
        self.result.starts += 1
        task = self._current = self.connector.task()
        put = task.put

        def counted(records: Sequence[SinkRecord]) -> None:
            if records and self.kafka.faults.next("put") is Fault.PUT:
                raise RetriableError(
                    f"connectctl.testing: {Fault.PUT} {self.kafka.faults.seen['put']}"
                )
            put(records)

        vars(task)["put"] = counted
        return task

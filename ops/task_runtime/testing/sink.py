"""``run_sink``: a sink's task under the real loop of sink tasks, with its topics and its consumer
group in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from connectctl.ops.core.errors import TimedOut
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.group.consumer_settings import MOST_RECORDS
from connectctl.ops.task_runtime.spi.connector import RetriableError
from connectctl.ops.task_runtime.spi.error_settings import error_settings
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkConnector, SinkRecord, SinkTask
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord
from connectctl.ops.task_runtime.task.sink_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from connectctl.ops.task_runtime.task.transactional_commit import TransactionalCommit
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from connectctl.ops.task_runtime.testing.faults import Crash, FailAt, Fault, Faults
from connectctl.ops.task_runtime.testing.memory_consumer import (
    Given,
    Log,
    MemoryConsumer,
    committed_offsets,
    log_of,
)
from connectctl.ops.task_runtime.testing.memory_kafka import MemoryKafka, MemoryProducer
from connectctl.ops.task_runtime.testing.prepare import task_configs, whole_config
from connectctl.ops.task_runtime.testing.results import SinkRun, failing, keep

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
        """Run one process, or one member of the group; return whether it reached its end."""
        task, consumer = self._open(), MemoryConsumer(self.kafka, self.log)
        converters = reading_converters({**self.connector.default_converters, **self.config})
        worker = WorkerSinkTask(
            task,
            consumer,
            self.task,
            converters,
            RecordErrors(
                error_settings(self.config),
                self.config["name"],
                0,
                _Letters(self.result.dead_letters),
                self._note,
            ),
            interval=0.0,
            commit=self._commit(task, consumer),
            note=self._note,
            now=self.kafka.now,
        )
        try:
            worker.start(PATIENCE)
            while consumer.has_more or worker.redelivering:
                worker.iterate(0.0, self.batch)
                if self.kafka.seconds > LONGEST_RETRIES:
                    raise TimedOut(
                        f"put still raised RetriableError after {LONGEST_RETRIES:g} s",
                        why=self.result.notes[-1],
                    )
            worker.settle(PATIENCE)
            worker.close()
        except Crash:
            killed.append(task)
            return False
        except UnknownOutcome:
            with suppress(Exception):
                worker.close()
            return False
        except BaseException:
            with suppress(Exception):  # the first failure is the one to report
                worker.close()
            raise
        finally:
            self.result.notes.extend(converters.warnings())
        return True

    def _note(self, line: str) -> None:
        self.result.notes.append(line)

    def _commit(self, task: SinkTask, consumer: MemoryConsumer) -> Callable[[GroupOffsets], None]:
        if not self.connector.exactly_once:
            return consumer.commit
        producer = MemoryProducer(self.kafka, "testing-0")
        return TransactionalCommit(producer, consumer, task, PATIENCE)

    def _open(self) -> SinkTask:
        self.result.starts += 1
        task: SinkTask = self.connector.task()
        put = task.put

        def counted(records: Sequence[SinkRecord]) -> None:
            if records and self.kafka.faults.next("put") is Fault.PUT:
                raise RetriableError(
                    f"connectctl.testing: {Fault.PUT} {self.kafka.faults.seen['put']}"
                )
            put(records)

        vars(task)["put"] = counted
        return task

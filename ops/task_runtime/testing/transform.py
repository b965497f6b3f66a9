"""``run_transform``: a transform under the real loop of exactly-once tasks, with its topics and its
group in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer_settings import MOST_RECORDS
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.spi.delivery_settings import group_delivery
from connectctl.ops.task_runtime.spi.error_settings import error_settings
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.spi.subscription import input_topics
from connectctl.ops.task_runtime.spi.transform import OUTPUT, Transform, connector_of
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.transform_output import OutputSettings
from connectctl.ops.task_runtime.task.transform_source import TransformSource
from connectctl.ops.task_runtime.testing.faults import Crash, FailAt, Faults
from connectctl.ops.task_runtime.testing.memory_consumer import (
    Given,
    Log,
    MemoryConsumer,
    committed_offsets,
    log_of,
)
from connectctl.ops.task_runtime.testing.memory_kafka import (
    MemoryKafka,
    MemoryPlainProducer,
    MemoryProducer,
)
from connectctl.ops.task_runtime.testing.prepare import task_configs, whole_config
from connectctl.ops.task_runtime.testing.results import GroupRun, failing, keep

PATIENCE = 30.0


def run_transform(
    transform: type[Transform] | Callable[[Any], Any],
    config: Mapping[str, str],
    topics: Mapping[str, Sequence[Given]],
    *,
    offsets: Mapping[TopicPartition, int] | None = None,
    fail_at: FailAt | None = None,
    partitions: Mapping[str, int] | None = None,
    batch: int = MOST_RECORDS,
    name: str = "connector",
    expect_failure: bool = False,
) -> GroupRun:
    """Run a transform, a class or a function of DataFrames, on the records of ``topics`` until all
    of them are committed.

    ``config`` is validated as ``connectctl run`` does; ``topics`` is set where it is missing. One
    task has all partitions, and is given ``batch`` records at a time; each batch is a transaction
    with its output and the group's offsets. After a failure a new task starts at the committed
    offsets. With ``guarantee: at-least-once`` there are no transactions.

    ``offsets`` are those of the next records, committed by an earlier run, ``partitions`` how many
    partitions a topic of the output has, one if not given. Raises what the transform raises, or
    gives a run with the state FAILED where ``expect_failure`` is true.
    """
    kind = connector_of(transform)
    if kind is None:
        raise BadInput("A transform is a subclass of Transform, or a function of DataFrames")
    kafka, run = (
        MemoryKafka(
            Faults(fail_at or {}), partitions or {}, group=committed_offsets(offsets or {})
        ),
        GroupRun(),
    )
    complete = whole_config(kind, {"topics": ",".join(topics), **config}, name)

    def opened() -> Transform:
        run.starts += 1
        return kind.task()

    def attempt(task: Mapping[str, str], log: Log) -> bool:
        """Run one process; return whether it reached its end."""
        output = OutputSettings(
            complete.get(OUTPUT, "").strip() or None, set(input_topics(complete)).__contains__
        )
        # The clock does not move while there are records: each batch is due at once.
        delivery = group_delivery(complete)
        source = TransformSource(opened, task, output, 0.0, batch, TaskMeter(), kafka.now)
        source.handle_errors(error_settings(complete), complete["name"], 0, run.notes.append)
        producer = MemoryProducer if delivery.exactly_once else MemoryPlainProducer
        with closing(GroupLedger(lambda: MemoryConsumer(kafka, log), PATIENCE)) as ledger:
            loop = AttemptLoop(
                lambda: producer(kafka, "testing-0"),
                ledger,
                stopped=lambda: not source.has_more,
                sleep=lambda seconds: None,
            )
            try:
                loop.run(source)
            except Crash:
                return False
            finally:
                with suppress(Exception):
                    source.close()
        return True

    with failing(run, expect_failure):
        task, log = task_configs(kind, complete)[0], log_of(topics)
        while not attempt(task, log):
            pass
    keep(run, kafka)
    return run

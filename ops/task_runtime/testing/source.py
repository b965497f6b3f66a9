"""``run_source``: the tasks of a source connector under the real loop of exactly-once tasks, with
Kafka in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from connectctl.ops.connect.offset_rules import format_problems, stored_form
from connectctl.ops.connect.source_keys import SourceKey, connect_json, decode_json, parse_key
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.connector import (
    Batch,
    RetriableError,
    SourceConnector,
    SourceContext,
    SourceTask,
)
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.delivery_settings import delivery_settings
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.task.at_least_once import boundaries_of
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.source_conversion import source_conversion
from connectctl.ops.task_runtime.testing.faults import Crash, FailAt, Fault, Faults
from connectctl.ops.task_runtime.testing.memory_kafka import (
    MemoryKafka,
    MemoryOffsets,
    MemoryPlainProducer,
    MemoryProducer,
)
from connectctl.ops.task_runtime.testing.prepare import OFFSETS_TOPIC, task_configs, whole_config
from connectctl.ops.task_runtime.testing.results import Commit, SourceRun, failing

MOST_POLLS = 1000
TIMEOUT = 30.0


def run_source(
    connector: type[SourceConnector],
    config: Mapping[str, str],
    *,
    offsets: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]] = (),
    fail_at: FailAt | None = None,
    partitions: Mapping[str, int] | None = None,
    polls: int = MOST_POLLS,
    name: str = "connector",
    expect_failure: bool = False,
) -> SourceRun:
    """Run a source connector without a cluster, and return what it committed.

    ``config`` is validated, the connector is started, returns its task configurations and is
    stopped, as ``connectctl run`` does. Then its tasks run one after the other, on this thread:
    each until a poll returns nothing or it is ``finished``, or for at most ``polls`` polls. The
    loop is that of a real task: transactions begin and end by ``transaction.boundary``, offsets are
    committed with the records, and after a failure a new task starts after the committed records.
    With ``exactly.once.source.support=disabled`` there are no transactions: records exist when they
    are sent, offsets follow, and after a failure some records are sent again. Keys and values go
    through the converters of ``config``. The producer of a real task encodes records, and writes
    them to one of the topic's ``partitions``; a topic that is not in ``partitions`` has one
    partition.

    ``offsets`` are source partitions with the offsets committed by an earlier run, of the types
    that Connect stores. Raises ``BadInput`` for other types, and what the connector or a task
    raises, or returns a run with the state FAILED if ``expect_failure`` is true. A record that
    Kafka refuses is such an error: one that is too large, or for a partition that the topic does
    not have.
    """
    kafka = MemoryKafka(
        Faults(fail_at or {}), partitions or {}, dict(_stored(name, p, o) for p, o in offsets)
    )
    run = SourceRun()
    complete = whole_config(connector, config, name)
    with failing(run, expect_failure):
        for task in task_configs(connector, complete):
            _TaskRun(connector, complete, task, kafka, run, polls).run()
    run.occasions = kafka.faults.seen
    run.commits = [
        Commit(records, list(_pairs(committed))) for records, committed in kafka.transactions
    ]
    run.offsets = [(p, o) for p, o in _pairs(kafka.source_offsets) if o is not None]
    return run


@dataclass(eq=False)
class _TaskRun:
    """One task, over all crashes."""

    connector: type[SourceConnector]
    config: Mapping[str, str]
    task: Mapping[str, str]
    kafka: MemoryKafka
    result: SourceRun
    polls: int

    def __post_init__(self) -> None:
        self._idle = False
        self._current: SourceTask
        self._killed: list[SourceTask] = []
        self._delivery = delivery_settings(self.config)
        context = SourceContext(
            self.config["name"], self.task, self._delivery, OFFSETS_TOPIC, TIMEOUT
        )
        if self.connector.supply(context) is not None:
            raise BadInput(
                f"{self.connector.__name__} supplies its records in bulk, and run_source runs "
                "tasks that are polled",
                next_step="Test it on a cluster (connectctl sandbox up).",
            )

    def run(self) -> None:
        try:
            while not self._attempt():
                pass
        finally:
            for task in self._killed:  # which were not stopped while that could have had an effect
                with suppress(Exception):
                    task.stop()

    def _attempt(self) -> bool:
        """Run one process; return whether it reached its end."""
        delivery, kafka = self._delivery, self.kafka
        made, meter = converters(self.config), TaskMeter()
        source = PolledSource(
            self._open,
            self.config["name"],
            self.task,
            lambda: boundaries_of(replace(delivery, latency=None)),
            made,
            OFFSETS_TOPIC,
            meter,
            source_conversion(self.config, made, 0, OFFSETS_TOPIC, meter, self.result.notes.append),
        )
        kind = MemoryProducer if delivery.exactly_once else MemoryPlainProducer
        loop = AttemptLoop(
            lambda: kind(kafka, "testing-0", delivery.properties),
            SourceOffsetsLedger(OFFSETS_TOPIC, MemoryOffsets(kafka)),
            stopped=lambda: self._idle or self.polls <= 0,
            sleep=lambda seconds: None,
            strict=delivery.strict,
            visible_when_sent=not delivery.exactly_once,
        )
        try:
            loop.run(source)
        except Crash:
            self._killed.append(self._current)
            return False
        except BaseException:
            with suppress(Exception):  # the first failure is the one to report
                source.close()
            raise
        source.close()
        # As at the end of a lease: what became of the last commit is for the next task to find out.
        return not kafka.in_doubt

    def _open(self) -> SourceTask:
        self.result.starts += 1
        self._idle = False
        task: SourceTask = self.connector.task()
        poll = task.poll

        def counted() -> Batch | None:
            self.polls -= 1
            if self.kafka.faults.next("poll") is Fault.POLL:
                raise RetriableError(
                    f"connectctl.testing: {Fault.POLL} {self.kafka.faults.seen['poll']}"
                )
            batch = poll()
            self._idle = not batch
            return batch

        vars(task)["poll"] = counted
        self._current = task
        return task


def _stored(
    name: str, partition: Mapping[str, Any], offset: Mapping[str, Any]
) -> tuple[bytes, bytes]:
    problems = [
        *format_problems("the partition", partition),
        *format_problems("the offset", offset),
    ]
    if problems:
        raise BadInput(
            f"Connect does not store {offset!r} for {partition!r}", why="; ".join(problems)
        )
    return _json([name, stored_form(partition)]), _json(stored_form(offset))


def _json(value: Any) -> bytes:
    return connect_json(value).encode()


def _pairs(
    offsets: Mapping[bytes, bytes | None],
) -> Iterable[tuple[dict[str, Any], dict[str, Any] | None]]:
    for raw, value in offsets.items():
        key = parse_key(raw)
        assert isinstance(key, SourceKey)
        yield (
            dict(key.partition or {}),
            None if value is None else dict(decode_json(value.decode())[0]),
        )

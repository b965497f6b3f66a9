"""Builds the parts of a transform's or sink's task: its consumer group member and its body."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.group.member import TaskMember
from connectctl.ops.task_runtime.group.stable_offsets import StableOffsets
from connectctl.ops.task_runtime.spi.error_settings import error_settings
from connectctl.ops.task_runtime.spi.plugins import connector_class
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkConnector
from connectctl.ops.task_runtime.spi.transform import OUTPUT, TransformConnector
from connectctl.ops.task_runtime.task.at_least_once import GroupCommits, GroupIdempotentProducer
from connectctl.ops.task_runtime.task.dead_letters import DeadLetterProducer
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from connectctl.ops.task_runtime.task.transform_output import OutputSettings
from connectctl.ops.task_runtime.task.transform_source import TransformSource
from connectctl.ops.task_runtime.transforms.chain import transformation_chain

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.attempt.shared_clients import SharedClients
    from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
    from connectctl.ops.task_runtime.spi.subscription import Subscription
    from connectctl.ops.task_runtime.spi.transaction_batch import TaskRecordSource, TaskStats

FROM_RECORDS = 500
"""``max.poll.records`` from which columns are faster than single records; 500 is the default.
Measured over a whole task with 256-byte records of four partitions, in microseconds of processor
time for each: 500 in a poll 10.6 against 14.2, 2000 8.9 against 18.9, 5000 8.5 against 17.7. Below,
a poll costs more than its records.
"""


def group_ledger(
    spec: TaskSpec, shared: SharedClients, task: int, stats: TaskStats, stopped: Callable[[], bool]
) -> GroupLedger:
    opened = member_factory(spec, shared, task, stats, stopped)
    return GroupLedger(opened, spec.patience)


def member_factory(
    spec: TaskSpec, shared: SharedClients, task: int, stats: TaskStats, stopped: Callable[[], bool]
) -> Callable[[], TaskMember]:
    """Return a factory of a task's members, with the task's transactional id as
    ``group.instance.id``.
    """
    reads = _reads(spec)
    id_ = task_id(spec.group, spec.connector, task)
    others = [task_id(spec.group, spec.connector, n) for n in range(spec.tasks) if n != task]

    def opened() -> TaskMember:
        stable = StableOffsets(
            shared.target,
            reads.consumer.group,
            others,
            stats.progress.waits,
            stopped,
            limit=spec.pending,
            stale_because=shared.stale_because,
        )
        arguments = (
            shared.target,
            reads.consumer,
            reads.patterns,
            id_,
            stable,
            stopped,
            stats.assign,
        )
        return TaskMember(
            *arguments,
            shared.stale_because,
            waits_for_topics=spec.endless,
            patience=spec.patience,
            asking=stats.progress.asking,
        )

    return opened


def writes_columns(spec: TaskSpec) -> bool:
    """Whether a transform's output is passed to the producer as columns, which is not faster for
    small polls.
    """
    kind = connector_class(spec.path)
    return (
        issubclass(kind, TransformConnector)
        and kind.task.columnar
        and bool(spec.config.get(OUTPUT, "").strip())
        and _reads(spec).consumer.most_records >= FROM_RECORDS
        and spec.delivery.exactly_once
    )


def group_producer(spec: TaskSpec) -> type[TaskProducer]:
    """Return the producer class for a transform or a sink."""
    if spec.delivery.exactly_once:
        return TaskProducer
    is_sink = issubclass(connector_class(spec.path), SinkConnector)
    return GroupCommits if is_sink else GroupIdempotentProducer


def group_source(
    spec: TaskSpec, shared: SharedClients, task: int, config: Mapping[str, str], stats: TaskStats
) -> TaskRecordSource:
    """Return the body of a sink's or transform's task."""
    kind = connector_class(spec.path)
    if issubclass(kind, SinkConnector):
        return sink_source(kind, spec, shared, task, config, stats)
    return transform_source(spec, task, config, stats)


def sink_source(
    kind: type[SinkConnector],
    spec: TaskSpec,
    shared: SharedClients,
    task: int,
    config: Mapping[str, str],
    stats: TaskStats,
) -> WorkerSinkTask:
    note = stats.lines.append
    letters = DeadLetterProducer(shared.target, task_id(spec.group, spec.connector, task))
    return WorkerSinkTask(
        kind.task,
        config,
        reading_converters({**kind.default_converters, **spec.config}),
        RecordErrors(error_settings(spec.config), spec.connector, task, letters, note, stats.sink),
        spec.delivery.interval,
        spec.delivery.exactly_once,
        note,
        _reads(spec).consumer.most_records,
        chain=transformation_chain(spec.config),
    )


def transform_source(
    spec: TaskSpec, task: int, config: Mapping[str, str], stats: TaskStats
) -> TransformSource:
    reads, kind = _reads(spec), connector_class(spec.path)
    assert issubclass(kind, TransformConnector)
    topic, columns = spec.config.get(OUTPUT, "").strip() or None, writes_columns(spec)
    output = OutputSettings(topic, lambda topic: _is_input(reads, topic), columns)
    most = reads.consumer.most_records
    source = TransformSource(kind.task, config, output, spec.delivery.interval, most, stats.meter)
    source.handle_errors(error_settings(spec.config), spec.connector, task, stats.lines.append)
    return source


def _reads(spec: TaskSpec) -> Subscription:
    assert spec.subscription is not None
    return spec.subscription


def _is_input(reads: Subscription, topic: str) -> bool:
    return topic in reads.topics or (
        reads.regex is not None and re.fullmatch(reads.regex, topic) is not None
    )

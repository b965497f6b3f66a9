"""``write_exactly_once``: a DataFrame into a topic, each row once, whatever Spark repeats.

Every Spark task is a task of a connector, with its transactional id and in its generation; the
offsets go into the connector's own offsets topic in the same transactions. So it may be called
again with the same rows, from a retried stage, a replayed micro-batch or a new application: rows at
or before the committed offset are skipped.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.brokers import Brokers
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.spark.session import require_context
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.connect.transactional_ids import task_id_prefix
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.core.wait import observe_until
from connectctl.ops.kafka.topics import KnownEnds, furthest
from connectctl.ops.kafka.visibility import Observation, Reason, whole
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.fencing.batch_fencer import fence_ids
from connectctl.ops.task_runtime.attempt.control_channel import driver_address
from connectctl.ops.task_runtime.attempt.newest_attempt import AttemptRegistry
from connectctl.ops.task_runtime.attempt.shared_clients import PRIMARY
from connectctl.ops.task_runtime.attempt.task_attempt import FAILED
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.dataframe import column_conversion
from connectctl.ops.task_runtime.dataframe.batch_round import (
    BATCH,
    local_property,
    query_of,
    written_by,
)
from connectctl.ops.task_runtime.dataframe.generation_start import start_of
from connectctl.ops.task_runtime.dataframe.micro_batch import HASH, ONE_PARTITION, MicroBatch
from connectctl.ops.task_runtime.dataframe.partition_registry import PartitionRegistry
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.dataframe.retry_fenced import until_through
from connectctl.ops.task_runtime.dataframe.task import FrameReport, Writing
from connectctl.ops.task_runtime.dataframe.validate import (
    check_columns,
    check_committed,
    check_records,
)
from connectctl.ops.task_runtime.job.config_topic_records import Generation
from connectctl.ops.task_runtime.job.generation import Leader, check_fenced
from connectctl.ops.task_runtime.job.internal_topics import REPLICAS, default_topics
from connectctl.ops.task_runtime.job.preconditions import brokers_verify
from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets, current_ends
from connectctl.ops.task_runtime.task.retries import NO_RETRIES, RetryPolicy

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.kafka.transactions import Listing
    from pyspark.sql import DataFrame

ROWS_PER_TRANSACTION = 200_000
TRANSACTION_TIMEOUT_MS = 20_000
REMEDIES = (
    "Increase transaction_timeout_ms of the Target (at most transaction.max.timeout.ms of the "
    "brokers), or decrease rows_per_transaction."
)
REQUEST_TIMEOUT = 60.0
FENCING_PATIENCE = 30.0
LISTING_PAUSE = 0.5
_TAKEN = (EndReason.FENCED, EndReason.STALE)


@dataclass(frozen=True)
class Target:
    """The target of rows. ``client`` are librdkafka's properties, with ``bootstrap.servers``.

    ``partition`` and ``offset`` are columns: those of a source partition, and one that only grows
    within a source partition. So are ``value``, ``key``, ``timestamp`` (milliseconds) and
    ``headers`` (as Spark's Kafka sink takes them). ``tasks`` is how many tasks share the source
    partitions. ``config_topic`` has the group's generations of tasks; it is ``<group_id>-configs``
    by default, and created if it is missing, like the offsets topic.

    A transaction has ``rows_per_transaction``, or fewer if they are large or the network is slow,
    and is aborted by its coordinator after ``transaction_timeout_ms`` milliseconds: readers wait
    for this time for a task that died. While Kafka does not respond, driver and tasks wait for
    ``patience`` seconds.

    Executors receive ``client``, with its secrets, and the names of the columns, pickled. A
    ``Target`` opens nothing.

    ``key_converter`` and ``value_converter`` are converters, named as on a worker; ``value`` may be
    a column of any type then, such as a struct. ``converter_configs`` are their properties, such as
    ``value.converter.schema.registry.url``. Text and bytes are written as they are without one.

    With ``partitioned`` the frame is written in its own partitions, without a shuffle: each source
    partition has to be in one of them. A task that detects another distribution ends with one line.
    """

    client: Mapping[str, Any]
    group_id: str
    connector: str
    topic: str
    offsets_topic: str
    partition: str | Sequence[str] = ()
    offset: str = ""
    value: str = "value"
    key: str | None = None
    timestamp: str | None = None
    headers: str | None = None
    key_converter: str | None = None
    value_converter: str | None = None
    converter_configs: Mapping[str, str] = field(default_factory=dict)
    tasks: int = 2
    partitioned: bool = False
    config_topic: str | None = None
    rows_per_transaction: int = ROWS_PER_TRANSACTION
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    patience: float = 300.0

    @property
    def timeout(self) -> float:
        """Seconds for one request."""
        return min(self.patience, REQUEST_TIMEOUT)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Return the columns that make a source partition; a single name is one column, and not its
        letters.
        """
        return (self.partition,) if isinstance(self.partition, str) else tuple(self.partition)

    @property
    def columns(self) -> FrameColumns:
        return FrameColumns(
            self.partition_columns,
            self.offset,
            self.value,
            self.key,
            self.timestamp,
            self.headers,
            column_conversion.properties(
                self.key_converter, self.value_converter, self.converter_configs
            ),
        )


@dataclass(frozen=True)
class Written:
    """The result over all tasks. ``late`` are rows at or before the committed offset that a stream
    dropped; ``fenced`` are tasks that another writer of the same connector has fenced.
    """

    sent: int = 0
    skipped: int = 0
    late: int = 0
    transactions: int = 0
    fenced: tuple[int, ...] = ()
    problems: tuple[str, ...] = field(default_factory=tuple)


def write_exactly_once(df: DataFrame, target: Target) -> Written:
    """Write ``df`` to ``target``: rows at or before the committed offset of their source partition
    are skipped.

    For a stream that is a loss, because its rows may have offsets before the committed ones. Pass a
    ``StreamWriter`` (``ops/task_runtime/dataframe/stream_writer.py``) to ``foreachBatch``. Called
    within ``foreachBatch``, on its thread, this writes as one with ``late="refuse"`` does: a batch
    that was written is skipped, rows of any other that would be skipped are refused. Another thread
    does not know the batch, and skips.

    Raises ``BadInput`` for a column that is missing or does not fit and for a frame of Spark
    Connect, ``Refused`` for a group with live workers or offsets of other columns,
    ``ConnectctlError`` if a task failed or was fenced: the committed rows remain, and the next call
    resumes after them.
    """
    require_context(df)
    return write(df, target, batch_of(df, target))


def batch_of(df: DataFrame, target: Target) -> MicroBatch | None:
    """Return the micro-batch that is being written where this is called within ``foreachBatch``;
    None where it is not.
    """
    query, number = query_of(df), local_property(df, BATCH)
    if query is None or number is None or target.partitioned or not target.offset:
        return None
    return MicroBatch(query, int(number), target.tasks)


def write(df: DataFrame, target: Target, batch: MicroBatch | None) -> Written:
    """Write a frame, or the one that is ``batch``; see ``write_exactly_once`` and
    ``StreamWriter``.
    """
    columns = target.columns
    if batch is not None and not batch.ordered:
        check_records(df.dtypes, columns)
        columns = replace(columns, partition=(ONE_PARTITION,), offset=HASH)
    else:
        check_columns(df.dtypes, columns)
    columns = column_conversion.with_schemas(columns, df.schema.fields)
    dtypes, key = df.dtypes, sharing_key(target)
    started, during = start_of(
        df.sparkSession, lambda: generation_of(target, dtypes), lambda: _reached.get(key, {})
    )
    claims = PartitionRegistry(*driver_address(df.sparkSession)) if target.partitioned else None
    # In a session of the caller's Spark may run copies of tasks, and stages anew.
    attempts = AttemptRegistry(*driver_address(df.sparkSession))
    writing = Writing(
        spec_of_task(target),
        target.topic,
        columns,
        target.rows_per_transaction,
        claims.address if claims is not None else None,
        remedies=REMEDIES,
        batch=batch,
        attempts=attempts.address,
        start=started.address,
    )

    def once(active: Collection[int] | None) -> list[FrameReport]:
        reports = during(lambda: written_by(df, writing, target.tasks, active))
        with _lock:
            _reached[key] = reduce(
                furthest, (report.reached for report in reports), _reached.get(key, {})
            )
        return reports

    try:
        reports = until_through(once, None if batch is None else batch.late)
    finally:
        started.close()
        attempts.close()
        if claims is not None:
            claims.close()
    written = _written(reports)
    if written.problems or written.fenced:
        forget(target)
        raise _incomplete(target, written, reports)
    return written


def _written(reports: Sequence[FrameReport]) -> Written:
    return Written(
        sent=sum(report.records for report in reports),
        skipped=sum(report.skipped for report in reports),
        late=sum(report.late for report in reports),
        transactions=sum(report.transactions for report in reports),
        fenced=tuple(sorted(report.task for report in reports if report.reason in _TAKEN)),
        problems=tuple(
            f"task {report.task}: {report.detail}" for report in reports if report.reason == FAILED
        ),
    )


def _incomplete(
    target: Target, written: Written, reports: Sequence[FrameReport]
) -> ConnectctlError:
    """Return the error of a frame that was not written, with the advice to call again only if that
    may help.
    """
    why = "; ".join(written.problems)
    next_step: str | None = (
        "Call it again with the same rows: it resumes from the committed offsets."
    )
    if not why:
        why = (
            f"tasks {', '.join(map(str, written.fenced))} were fenced by another writer of "
            f"{target.connector}"
        )
        details = sorted(
            {report.detail for report in reports if report.reason in _TAKEN and report.detail}
        )
        why = f"{why} ({'; '.join(details)})" if details else why
    elif not all(report.retriable for report in reports if report.reason == FAILED):
        next_step = None
    codes = {report.code for report in reports if report.reason == FAILED}
    return ConnectctlError(
        f"DataFrame write incomplete: {written.sent} rows committed to {target.topic}",
        why=why,
        next_step=next_step,
        code=codes.pop() if len(codes) == 1 else None,
    )


def spec_of_task(target: Target) -> TaskSpec:
    """Return the specification of tasks before their generation has started: until then no topic
    has it.
    """
    return TaskSpec(
        group=target.group_id,
        connector=target.connector,
        path="",
        config={},
        generation=Generation("", target.connector, -1),
        home=dict(target.client),
        target=dict(target.client),
        offsets=target.offsets_topic,
        global_offsets=None,
        delivery=DeliverySettings(Boundary.POLL, 0.0, target.transaction_timeout_ms),
        timeout=target.timeout,
        patience=target.timeout,
        outage=target.patience,
    )


# -------------------------------------------------------------------------------------- generations

_Sharing = tuple[Any, ...]
_begun: dict[_Sharing, tuple[_Sharing, Generation]] = {}
_reached: dict[_Sharing, Mapping[str, KnownEnds]] = {}
"""The known ends of the offsets topics, from one call to the next."""
_lock = threading.Lock()


def sharing_key(target: Target) -> _Sharing:
    where = str(target.client.get("bootstrap.servers"))
    return where, target.group_id, target.connector, target.offsets_topic, target.config_topic


def forget(target: Target) -> None:
    with _lock:
        _begun.pop(sharing_key(target), None)


def generation_of(target: Target, dtypes: list[tuple[str, str]]) -> Generation:
    """Return a generation of tasks for this call: a new one, or that of the last call from this
    process.

    The last one is used if the source partitions are distributed in the same way: hashed by the
    same columns of the same types over as many tasks. Then a source partition has the same task,
    and so the same transactional id, in both calls. A remaining task of the former call is fenced
    by the task that initialises after it, or fences that one and skips what it has committed. Each
    task verifies that no newer generation exists: it reads the config topic to its end before and
    after it initialises. A frame that is written in its own partitions may have others each time:
    it has a new generation for each call.
    """
    kinds = dict(dtypes)
    sharing = (
        target.tasks,
        target.topic,
        *((name, kinds[name]) for name in (*target.partition_columns, target.offset) if name),
    )
    with _lock:
        known = None if target.partitioned else _begun.get(sharing_key(target))
        if known is None or known[0] != sharing:
            _begun.pop(sharing_key(target), None)
            patiently, fresh = (
                RetryPolicy(target.patience, logging.getLogger("connectctl").warning),
                set[str](),
            )
            known = (
                sharing,
                patiently(
                    f"start the tasks of {target.connector}", lambda: _begin(target, dtypes, fresh)
                ),
            )
            if not target.partitioned:
                _begun[sharing_key(target)] = known
    return known[1]


def _begin(target: Target, dtypes: list[tuple[str, str]], fresh: set[str]) -> Generation:
    """Return a new generation. It may be called again where it failed: ``fresh`` remembers topics
    that were not there at first.
    """
    kafka = Kafka(dict(target.client), timeout=target.timeout)
    if members := kafka.group(target.group_id).members:
        raise Refused(
            f"Group {target.group_id} has live workers; writing would fence their leader",
            why=f"the group has {counted(len(members), 'worker')}",
            next_step="Use a separate group_id for the Target.",
            code="live-workers",
        )
    with closing(Brokers(dict(target.client), timeout=target.timeout)) as brokers:
        brokers_verify(brokers)
    config_topic = default_topics(target.group_id, {"config": target.config_topic})["config"]
    existing = those_that_exist(kafka, target.offsets_topic, config_topic)
    fresh |= {target.offsets_topic, config_topic} - existing
    if target.offsets_topic in existing:
        committed = CommittedOffsets(kafka, target.offsets_topic, target.connector)
        committed.refresh(target.timeout)
        if target.offset:
            check_committed(target.connector, committed, dtypes, target.columns)
    for topic, partitions in {config_topic: 1, target.offsets_topic: 25}.items():
        if topic not in existing:
            kafka.create_topic(topic, partitions, REPLICAS, {"cleanup.policy": "compact"})
    config, tasks = configs_of(target)
    with closing(TransactionClient(dict(target.client), timeout=target.timeout)) as calls:
        topics = {"offsets": target.offsets_topic}
        leader = Leader(
            kafka, calls, target.group_id, config_topic, target.timeout, NO_RETRIES, topics=topics
        )
        generation = leader.start(target.connector, config, lambda before: tasks)
        if config_topic in fresh:
            # What wrote before there was this topic is known to the coordinators alone.
            fence_listed(target, calls)
        _reached[sharing_key(target)] = {PRIMARY: current_ends(kafka, target.offsets_topic)}
        return generation


def configs_of(target: Target) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the connector's and its tasks' configurations, as ``connectctl run`` would have them
    for a frame.
    """
    named = {
        "topic": target.topic,
        "partition.columns": ",".join(target.partition_columns),
        "offset.column": target.offset,
        "value.column": target.value,
        "key.column": target.key or "",
        "timestamp.column": target.timestamp or "",
        "headers.column": target.headers or "",
    }
    for name, converter in (("key", target.key_converter), ("value", target.value_converter)):
        named |= {} if converter is None else {f"{name}.converter": converter}
    config = {
        "name": target.connector,
        "connector.class": "DataFrameSource",
        "tasks.max": str(target.tasks),
        **named,
    }
    return config, [{**named, "task.id": str(n)} for n in range(target.tasks)]


def fence_listed(target: Target, calls: TransactionCalls) -> None:
    """End every producer of a task of the connector that the coordinators know."""
    prefix = task_id_prefix(target.group_id, target.connector)
    ids = {
        id_ for id_ in _listed(calls, prefix, target.timeout) if id_.removeprefix(prefix).isdigit()
    }
    # One that is just committing is not fenced by the first request: the campaign asks until its
    # epoch has moved.
    check_fenced(
        fence_ids(calls, sorted(ids), FENCING_PATIENCE),
        f"{len(ids)} transactional ids of older tasks of {target.connector}",
    )


def _listed(calls: TransactionCalls, prefix: str, patience: float) -> set[str]:
    """Return the ids with ``prefix`` of all coordinators; one that is still loading does not list
    its own.
    """

    def answered(listed: Observation[tuple[Listing, ...]]) -> bool:
        return all(gap.reason is not Reason.NO_ANSWER for gap in listed.gaps)

    listed = observe_until(
        lambda: calls.listed(prefixes=[prefix]), answered, patience, LISTING_PAUSE
    )
    return {each.id for each in whole(listed, "the transactional ids of older tasks", proven=False)}

"""``write_exactly_once``: a DataFrame into a topic, each row once, whatever Spark repeats.

Every Spark task is a task of a connector, with its transactional id; the offsets go into the connector's own offsets topic
in the same transactions. So it may be called again with the same rows, from a retried stage, a replayed micro-batch or a
new application: rows at or before the committed offset are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.errors import BadInput, ConnectctlError
from connectctl.ops.model.ownership import task_id
from connectctl.ops.runtime.rows import OFFSET_TYPES, Columns, rows_of

if TYPE_CHECKING:
    from connectctl.ops.edges.contract import TransactionCalls
    from pyspark.sql import DataFrame

RESULT = "task int, how string, sent long, skipped long, transactions long, error string"
ROWS_PER_TRANSACTION = 20_000
TRANSACTION_TIMEOUT_MS = 20_000
FENCING_PATIENCE = 30.0
LISTING_PAUSE = 0.5


@dataclass(frozen=True)
class Target:
    """Where rows go, and as whom. ``client`` are librdkafka's properties, with ``bootstrap.servers``.

    ``partition`` and ``offset`` are columns: what makes a source partition, and what only grows within one. ``tasks`` is
    how many tasks share the source partitions; ``known_tasks`` how many an earlier writing had, if it had more.
    """

    client: Mapping[str, Any]
    group_id: str
    connector: str
    topic: str
    offsets_topic: str
    partition: Sequence[str]
    offset: str
    value: str = "value"
    key: str | None = None
    tasks: int = 2
    known_tasks: int = 0
    rows_per_transaction: int = ROWS_PER_TRANSACTION
    patience: float = 60.0

    @property
    def columns(self) -> Columns:
        """The names in the offsets topic."""
        return Columns(tuple(self.partition), self.offset)


@dataclass(frozen=True)
class Written:
    """What came of it, over all tasks. ``fenced`` are tasks that another writer of the same connector has fenced."""

    sent: int = 0
    skipped: int = 0
    transactions: int = 0
    fenced: tuple[int, ...] = ()
    problems: tuple[str, ...] = field(default_factory=tuple)


def write_exactly_once(df: DataFrame, target: Target) -> Written:
    """Write ``df`` to ``target``; as ``foreachBatch`` too: ``lambda df, _: write_exactly_once(df, target)``.

    Raises ``BadInput`` for a column that is missing or cannot be an offset, ``ConnectctlError`` where a task failed or was
    fenced: what is committed by then stays, and the next call goes on behind it.
    """
    _check(df, target)
    _fence(target)
    wanted = [*target.partition, target.offset, *([target.key] if target.key else []), target.value]
    shared = df.select(*wanted).repartition(target.tasks, *target.partition)
    ordered = shared.sortWithinPartitions(*target.partition, target.offset)
    answers = ordered.mapInArrow(_task_of(target), RESULT).collect()
    written = Written(
        sent=sum(row.sent for row in answers),
        skipped=sum(row.skipped for row in answers),
        transactions=sum(row.transactions for row in answers),
        fenced=tuple(sorted(row.task for row in answers if row.how == "fenced")),
        problems=tuple(row.error for row in answers if row.error),
    )
    if written.problems or written.fenced:
        why = (
            "; ".join(written.problems) or f"tasks {', '.join(map(str, written.fenced))} were fenced by another writer"
        )
        raise ConnectctlError(
            f"The DataFrame is not written to {target.topic} whole: {written.sent} rows are committed",
            why=why,
            next_step="Call it again with the same rows: it goes on from what is committed.",
        )
    return written


def _check(df: DataFrame, target: Target) -> None:
    have = dict(df.dtypes)
    for name in filter(None, [*target.partition, target.offset, target.key, target.value]):
        if name not in have:
            raise BadInput(f"The DataFrame has no column {name}", next_step=f"It has {', '.join(have)}.")
    kind = have[target.offset]
    if kind not in ("tinyint", "smallint", "int", "bigint", "string"):
        kinds = " or ".join(t.__name__ for t in OFFSET_TYPES)
        raise BadInput(
            f"The column {target.offset} is a {kind} and cannot be a source offset",
            next_step=f"Give one of whole numbers or text ({kinds}), such as unix_micros(time).",
        )


def _fence(target: Target) -> None:
    """End every older producer, so that no task of an earlier writing still sends a source partition that has moved."""
    from connectctl.ops.edges.transactions import Transactions
    from connectctl.ops.fence.campaign import Campaign
    from connectctl.ops.fence.snapshot import Action, Fate, Row

    calls = Transactions(dict(target.client), timeout=target.patience)
    try:
        prefix = task_id(target.group_id, target.connector, 0).removesuffix("0")
        listed = _listed(calls, prefix, target.patience)
        ids = {id_ for id_ in listed if id_.removeprefix(prefix).isdigit()} | {
            f"{prefix}{n}" for n in range(target.known_tasks)
        }
        # One that is just committing is not fenced by the first request: the campaign asks until its epoch has moved.
        campaign = Campaign(calls, [Row(id_, Action.FENCE) for id_ in sorted(ids)], FENCING_PATIENCE)
        campaign.run()
    finally:
        calls.close()
    failed = {r.id: r.problem for r in campaign.results.values() if r.fate is Fate.FAILED}
    if failed:
        why = ", ".join(f"{id_}: {problem.code if problem else 'FAILED'}" for id_, problem in sorted(failed.items()))
        raise ConnectctlError("Older tasks of the connector cannot be fenced", why=why)


def _listed(calls: TransactionCalls, prefix: str, patience: float) -> set[str]:
    """The ids with ``prefix`` of all coordinators; one that is still loading has not told its own."""
    deadline = time.monotonic() + patience
    while True:
        listed = calls.listed(prefixes=[prefix])
        if not listed.problems:
            return {each.id for each in listed.listings}
        if time.monotonic() > deadline:
            why = ", ".join(f"broker {broker}: {code.name}" for broker, code in sorted(listed.problems.items()))
            raise ConnectctlError("Nobody can tell which older tasks of the connector there are", why=why)
        time.sleep(LISTING_PAUSE)


def _task_of(target: Target) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        answer = write_rows(target, task, batches)
        yield pa.RecordBatch.from_pylist([answer], schema=_schema())

    return run


def _schema() -> Any:
    import pyarrow as pa

    kinds = {"int": pa.int32(), "long": pa.int64(), "string": pa.string()}
    return pa.schema([(name, kinds[kind]) for name, kind in (part.split() for part in RESULT.split(", "))])


def write_rows(target: Target, task: int, batches: Iterator[Any]) -> dict[str, Any]:
    """One task's part, as a row of the answer. A failure is told and not raised, or Spark would try it again and again."""
    from connectctl.ops.edges.kafka import Kafka
    from connectctl.ops.runtime.committed import Committed, Store
    from connectctl.ops.runtime.handle import Handle
    from connectctl.ops.runtime.kernel import Kernel
    from connectctl.ops.runtime.rows import Rows

    kafka = Kafka(dict(target.client), timeout=target.patience)
    rows = rows_of(batches, target.columns, target.key, target.value)
    supply = Rows(rows, target.connector, target.topic, target.columns, target.rows_per_transaction)
    id_ = task_id(target.group_id, target.connector, task)
    kernel = Kernel(
        lambda: Handle(kafka, id_, timeout_ms=TRANSACTION_TIMEOUT_MS),
        target.offsets_topic,
        Store(Committed(kafka, target.offsets_topic, target.connector)),
        patience=target.patience,
    )
    how, error = "failed", None
    try:
        how = kernel.run(supply).how.value
    except ConnectctlError as e:
        error = f"task {task}: {e}"
    counts = kernel.counts
    done = {"task": task, "how": how, "sent": counts.records, "skipped": supply.skipped}
    return done | {"transactions": counts.transactions, "error": error}

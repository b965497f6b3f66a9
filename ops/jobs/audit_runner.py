"""Runs an audit: in this process, or with a Spark session; both give the same ``Summary``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.audit import sequences, transactions
from connectctl.ops.audit.scan import PartitionRange, PartTotals, TransactionPart
from connectctl.ops.audit.sequences import Committed
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.violations import Violation
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.jobs import audit
from connectctl.ops.jobs.audit import Cluster
from connectctl.ops.jobs.audit_inputs import Comparison, compare_frame, compared
from connectctl.ops.jobs.audit_sequences import Wanted
from connectctl.ops.task_runtime.task.progress import heartbeat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Advance = Callable[[float, float], None]
TASK_RECORDS = 1_000_000
"""Records for each Spark task."""
SHUFFLED_RECORDS = 10_000_000
"""Records for each Spark task after a shuffle, which receives their transactions and runs."""
GLANCE = 0.5
"""Seconds between two checks of Spark's progress."""


@dataclass(frozen=True)
class AuditWork:
    """The work of an audit. ``wanted`` is None if headers are enough; ``evidence`` is a directory
    for all violations.

    With a ``comparison``, records are compared with those of inputs, and not put in sequence.
    """

    cluster: Cluster
    spans: Sequence[PartitionRange]
    wanted: Wanted | None
    first: int | None = None
    committed: Mapping[str, Committed] = field(default_factory=dict)
    shown: int = 20
    evidence: Path | None = None
    comparison: Comparison | None = None

    @property
    def size(self) -> int:
        return sum(span.size for span in self.spans) + (
            self.comparison.size if self.comparison else 0
        )


def locally(work: AuditWork, advance: Advance) -> Summary:
    """Return the summary of an audit in this process. It holds a row for every transaction and run:
    for topics that are not too large.
    """
    summary = Summary(work.shown)
    total, done = work.size * (2 if work.wanted else 1) or 1, 0
    parts: list[TransactionPart] = []
    kept: list[Violation] = []

    def take(found: Iterable[Any]) -> None:
        for each in found:
            summary.add(each)
            if work.evidence is not None and isinstance(each, Violation):
                kept.append(each)

    def rest(found: Iterator[Any]) -> Iterator[Any]:
        nonlocal done
        for each in found:
            if isinstance(each, TransactionPart):
                parts.append(each)
            else:
                yield each
            if isinstance(each, PartTotals):
                done += each.until - each.start
                advance(done, total)

    take(rest(audit.scanned(work.cluster, work.spans)))
    take(audit.joined(sorted(parts, key=transactions.order)))
    if work.wanted is not None:
        summary.reads = {}
        runs = sorted(audit.ran(work.cluster, work.spans, work.wanted), key=sequences.order)
        take(sequences.SequenceCheck(work.first, work.committed).sweep(runs))
    if work.comparison is not None:
        summary.reads = {}
        take(compared(work.cluster, work.comparison))
    advance(total, total)
    if work.evidence is not None:
        _write(kept, work.evidence)
    return summary


def _write(violations: Sequence[Violation], directory: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as e:
        hint = "Run: pip install 'connectctl[spark]'."
        raise ConnectctlError(
            "--evidence needs pyarrow, which is not installed", next_step=hint
        ) from e
    kinds = {"string": pa.string(), "long": pa.int64(), "int": pa.int32()}
    columns = [column.split() for column in audit.OFFENDERS.split(",")]
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns])
    table = pa.Table.from_pylist([violation._asdict() for violation in violations], schema=schema)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, directory / "part-0.parquet")
    except OSError as e:
        raise ConnectctlError(f"Cannot write to {directory}", why=e.strerror or str(e)) from e


def on_spark(spark: SparkSession, work: AuditWork, advance: Advance) -> Summary:
    """Return the summary of an audit on Spark, in one job: every task summarises its rows, and the
    driver adds the summaries.
    """
    from pyspark import StorageLevel

    least = int(spark.sparkContext.defaultParallelism)
    tasks, shuffled = (
        max(least, work.size // each + 1) for each in (TASK_RECORDS, SHUFFLED_RECORDS)
    )
    scanned = audit.scan_frame(spark, work.cluster, work.spans, tasks).persist(
        StorageLevel.DISK_ONLY
    )
    found = audit.summary_frame(scanned).unionByName(audit.join_frame(scanned, shuffled))
    summary = Summary(work.shown)
    if work.wanted is not None:
        summary.reads = {}
        runs = audit.run_frame(spark, work.cluster, work.spans, work.wanted, tasks)
        found = found.unionByName(audit.sweep_frame(runs, shuffled, work.first, work.committed))
    if work.comparison is not None:
        summary.reads = {}
        found = found.unionByName(
            compare_frame(spark, work.cluster, work.comparison, tasks, shuffled)
        )
    if work.evidence is not None:
        found = found.persist(StorageLevel.DISK_ONLY)
    try:
        with heartbeat(_watcher(spark, advance), GLANCE):
            for row in audit.gather_frame(found, work.shown).collect():
                summary.merge(json.loads(row.reported))
            if work.evidence is not None:
                wrong = found.where("what = 'violation'").select(*Violation._fields)
                wrong.coalesce(1).write.mode("overwrite").parquet(str(work.evidence.absolute()))
    finally:
        found.unpersist()
        scanned.unpersist()
    return summary


def _watcher(spark: SparkSession, advance: Advance) -> Callable[[], None]:
    """Return a function that reports how many tasks of the known stages are done."""
    tracker = spark.sparkContext.statusTracker()
    stages: dict[int, tuple[int, int]] = {}

    def watch() -> None:
        for number in tracker.getActiveStageIds():
            info = tracker.getStageInfo(number)
            if info is not None:
                stages[number] = (info.numCompletedTasks, info.numTasks)
        # A stage that is no longer active has done all of its tasks.
        active = set(tracker.getActiveStageIds())
        done = sum(
            counts[0] if number in active else counts[1] for number, counts in stages.items()
        )
        advance(done, max(1, sum(total for _, total in stages.values())))

    return watch

"""Runs an audit: in this process, or with a Spark session; both give the same ``Gathered``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.audit import sequences, transactions
from connectctl.ops.audit.evidence import Offender
from connectctl.ops.audit.gathered import COUNTED, TIMED, Gathered
from connectctl.ops.audit.scan import PartTotals, Segment, Span
from connectctl.ops.audit.sequences import Committed, Read, SourceTotals
from connectctl.ops.audit.timeline import SLOTS
from connectctl.ops.errors import ConnectctlError
from connectctl.ops.jobs import audit
from connectctl.ops.jobs.audit import Cluster
from connectctl.ops.jobs.auditruns import Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Advance = Callable[[float, float], None]
TASK_RECORDS = 1_000_000
"""Records for each Spark task."""


class Work:
    """What is to be looked at. ``wanted`` is None where headers are enough; ``evidence`` a directory for all offenders."""

    def __init__(
        self,
        cluster: Cluster,
        spans: Sequence[Span],
        wanted: Wanted | None,
        *,
        first: int | None = None,
        committed: Mapping[str, Committed] | None = None,
        shown: int = 20,
        evidence: Path | None = None,
    ) -> None:
        self.cluster, self.spans, self.wanted = cluster, spans, wanted
        self.first, self.committed, self.shown, self.evidence = first, committed or {}, shown, evidence

    @property
    def size(self) -> int:
        """How many offsets are looked at."""
        return sum(span.size for span in self.spans)


def locally(work: Work, advance: Advance) -> Gathered:
    """The audit in this process. Holds a row for every transaction and run: for topics that are not too big."""
    gathered = Gathered(work.shown)
    total, done = work.size * (2 if work.wanted else 1) or 1, 0
    parts: list[Segment] = []
    kept: list[Offender] = []

    def take(found: Iterable[Any]) -> None:
        for each in found:
            gathered.add(each)
            if work.evidence is not None and isinstance(each, Offender):
                kept.append(each)

    def rest(found: Iterator[Any]) -> Iterator[Any]:
        nonlocal done
        for each in found:
            if isinstance(each, Segment):
                parts.append(each)
            else:
                yield each
            if isinstance(each, PartTotals):
                done += each.until - each.start
                advance(done, total)

    take(rest(audit.scanned(work.cluster, work.spans)))
    take(audit.joined(sorted(parts, key=transactions.order)))
    if work.wanted is not None:
        gathered.reads = {}
        runs = sorted(audit.ran(work.cluster, work.spans, work.wanted), key=sequences.order)
        take(audit.swept(runs, work.first, work.committed))
    advance(total, total)
    if work.evidence is not None:
        _write(kept, work.evidence)
    return gathered


def _write(offenders: Sequence[Offender], directory: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as e:
        hint = "Run: pip install 'connectctl[spark]'."
        raise ConnectctlError("--evidence needs pyarrow, which is not installed", next_step=hint) from e
    kinds = {"string": pa.string(), "long": pa.int64(), "int": pa.int32()}
    columns = [column.split() for column in audit.OFFENDERS.split(",")]
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns])
    table = pa.Table.from_pylist([offender._asdict() for offender in offenders], schema=schema)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, directory / "part-0.parquet")
    except OSError as e:
        raise ConnectctlError(f"{directory} cannot be written", why=e.strerror or str(e)) from e


def on_spark(spark: SparkSession, work: Work, advance: Advance) -> Gathered:
    """The audit on Spark: nothing is collected but totals, and the worst offenders."""
    from pyspark import StorageLevel

    tasks = max(int(spark.sparkContext.defaultParallelism), work.size // TASK_RECORDS + 1)
    gathered = Gathered(work.shown)
    steps = 4 if work.wanted else 3
    held: list[DataFrame] = []

    def hold(frame: DataFrame) -> DataFrame:
        held.append(frame.persist(StorageLevel.DISK_ONLY))
        return frame

    try:
        advance(0, steps)
        scanned = hold(audit.scan_frame(spark, work.cluster, work.spans, tasks))
        frames = [audit.told_frame(scanned), hold(audit.join_frame(scanned, tasks))]
        if work.wanted is not None:
            gathered.reads = {}
            runs = audit.run_frame(spark, work.cluster, work.spans, work.wanted, tasks)
            frames.append(hold(audit.sweep_frame(runs, tasks, work.first, work.committed)))
        for n, frame in enumerate(frames, start=1):
            _gather(gathered, frame)
            advance(n, steps)
        _timeline(gathered, [frame.where("what = 'offender'") for frame in frames])
        if work.evidence is not None:
            _save([frame.where("what = 'offender'") for frame in frames], work.evidence)
        advance(steps, steps)
    finally:
        for frame in held:
            frame.unpersist()
    return gathered


def _gather(gathered: Gathered, frame: DataFrame) -> None:
    """Take what is small of ``frame`` as it is, and of the rest sums and the worst."""
    from pyspark.sql import functions as f

    small = frame.where(f.col("what").isin("part", "transactions", "read", "tracked")).select("what", "told")
    for row in small.toLocalIterator():
        told = json.loads(row.told)
        if row.what == "transactions":
            gathered.totals.merge(told)
        elif row.what == "part":
            gathered.add(PartTotals(**told))
        elif row.what == "read":
            gathered.add(Read(**told))
        else:
            gathered.add(SourceTotals(**told))
    sources = frame.where("what = 'source'")
    sums = [f.sum(f.get_json_object("told", f"$.{name}").cast("long")).alias(name) for name in COUNTED]
    (row,) = sources.agg(f.count("*").alias("n"), *sums).collect()
    gathered.source_partitions += row.n
    for name in COUNTED:
        gathered.sums[name] += row[name] or 0
    for each in sources.orderBy(f.desc("weight"), "told").select("told").limit(gathered.shown).collect():
        gathered.source(SourceTotals(**json.loads(each.told)))
    offenders = frame.where("what = 'offender'")
    for kind in offenders.groupBy("kind").agg(f.count("*").alias("n"), f.sum("records").alias("w")).collect():
        gathered.count(kind["kind"], kind["n"], kind["w"])
        some = offenders.where(f.col("kind") == kind["kind"]).orderBy(f.desc("records"), "topic", "partition", "offset")
        for each in some.select(*Offender._fields).limit(gathered.shown).collect():
            gathered.keep(Offender(*each))


def _timeline(gathered: Gathered, frames: Sequence[DataFrame]) -> None:
    """Offenders over time, added up on Spark."""
    from pyspark.sql import functions as f

    every = _all(frames).where(f.col("kind").isin(*TIMED) & (f.col("timestamp") >= 0))
    (bounds,) = every.agg(f.min("timestamp").alias("low"), f.max("timestamp").alias("high")).collect()
    if bounds.low is None:
        return
    while (bounds.high - bounds.low) // gathered.timeline.width >= SLOTS - 1:
        gathered.timeline.width *= 2
    width = gathered.timeline.width
    slot = f.floor(f.col("timestamp") / width).alias("slot")
    for row in every.groupBy(slot, "kind").agg(f.sum("records").alias("w")).collect():
        gathered.timeline.add(row.slot * width, TIMED[row.kind], row.w)


def _all(frames: Sequence[DataFrame]) -> DataFrame:
    whole = frames[0].select(*Offender._fields)
    for frame in frames[1:]:
        whole = whole.unionByName(frame.select(*Offender._fields))
    return whole


def _save(frames: Sequence[DataFrame], directory: Path) -> None:
    _all(frames).coalesce(1).write.mode("overwrite").parquet(str(directory.absolute()))

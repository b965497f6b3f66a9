"""The engine for large topics: Spark reads them and leaves out what cannot matter; the code of the
local engine does the rest.

A connector is observed in two passes of the code of the local engine. In the first, topics seem
empty, and the requested ones are noted. Then Spark reads those, and its tasks decide key by key. In
the second pass the topics have the records that Spark kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.clients.spark.session import job_failures
from connectctl.ops.connect.source_keys import owner_of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.jobs import offsets
from connectctl.ops.jobs.frames import Tuples, of_shares
from connectctl.ops.jobs.offsets import ROWS, THOUSANDS, TOGETHER, DecisionInput, Source, in_buckets
from connectctl.ops.jobs.topic_layout import TopicLayout, read, read_texts
from connectctl.ops.operations.offsets.changes import RestoreBackup
from connectctl.ops.operations.offsets.dump_lines import (
    Range,
    TopicOrigin,
    blocks_in,
    ranges_of,
    read_records,
    topics_in,
)
from connectctl.ops.operations.offsets.engine import AllKeys, Purpose, ReadRequest, View, layout
from connectctl.ops.operations.offsets.incomplete import check_complete
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, Saved, Where, decide
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState
    from pyspark.sql import DataFrame, SparkSession

SHARE_BYTES = 1 << 27
"""The input of a task."""


def read_saved(spark: SparkSession, path: Path, connector: str, parts: int) -> DataFrame:
    """Return the records of the backup in ``path`` (``ROWS``), for ``connector``. Raises
    ``BadInput``; for a bad line, when a job runs.
    """
    if str(path) == "-":
        raise BadInput(
            "Spark cannot read a backup from standard input",
            next_step="Save the backup to a file first.",
        )
    if not path.exists():
        raise BadInput(f"Cannot read the dump {path}", why="it does not exist")

    def rows(part: Range) -> Tuples:
        name = f"{path} from its byte {part.start} on" if part.start else str(path)
        records = read_records(blocks_in(part), name, complete=False)
        return in_buckets(_by_source(records, connector), parts)

    return of_shares(spark, ranges_of(path.absolute(), SHARE_BYTES), rows, ROWS, TOGETHER)


def _by_source(
    records: Iterator[tuple[TopicOrigin, ConsumerRecord]], connector: str
) -> Iterator[tuple[Source, list[ConsumerRecord]]]:
    owner = connector.encode(errors="surrogatepass")
    while chunk := list(islice(records, THOUSANDS)):
        for (bootstrap, topic), same in groupby(chunk, key=itemgetter(0)):
            yield (
                Source(bootstrap, topic, connector),
                [record for _, record in same if owner_of(record.key) == owner],
            )


SIZES = 1_000_000, 100_000, 250_000
"""The records of a task that reads topics, of one that decides on them, and of a part that is
collected: the driver's JVM holds two parts at a time, with the 1 GB that Spark gives it by default.
"""

LINE_BYTES = 150
"""About the least that a line of a backup has."""


class Spark:
    """Reads with the Spark session that ``session`` opens when it is first needed. What Spark logs
    is in ``log``.
    """

    def __init__(self, session: Callable[[], SparkSession], log: Path):
        self._open, self._log = session, log

    def _session(self) -> SparkSession:
        spark = self._open()
        # A row holds thousands of records; by default Spark gives a Python worker ten thousand rows
        # at once.
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", offsets.TOGETHER)
        return spark

    def view(self, sources: Sources, asked: Sequence[ReadRequest]) -> View:
        shown, query = (
            TopicLayout(sources),
            OffsetsQuery(tuple(each.purpose.connector for each in asked)),
        )
        topic_states = layout(shown.sources, observe(shown.sources, query), asked)
        owners = dict.fromkeys(shown.sources_of(), frozenset(query.connectors))
        spark = self._session()
        with job_failures("read the offsets", self._log):
            records = shown.records + sum(_lines_in(each.backup) for each in asked if each.backup)
            tasks, parts, collected = (_tasks(spark, records, each) for each in SIZES)
            rows, inputs = read(spark, shown.wanted(owners), tasks, parts), []
            for each in asked:
                name, wheres = each.purpose.connector, tuple[Where, ...]()
                if each.backup is not None:
                    rows = rows.unionByName(read_saved(spark, each.backup, name, parts))
                    wheres = tuple(topics_in(each.backup))
                inputs.append(DecisionInput(each.purpose, topic_states[name], wheres))
            found = offsets.collected(offsets.decisions_of(rows, inputs, parts, collected))
        kept = shown.fill(found.records)
        saved = {
            one.purpose.connector: dict.fromkeys(one.backup, ())
            | kept.get(one.purpose.connector, {})
            for one in inputs
        }
        view = View(observe(shown.sources, query), {}, {**saved})
        for each in asked:
            name = each.purpose.connector
            if each.streamed:
                view.topic_states[name] = topic_states[name]
                view.records[name] = [
                    found.records.get(Source(at.bootstrap, at.topic), ())
                    for at in topic_states[name]
                ]
                continue
            view.topic_states.update(layout(shown.sources, view.snapshot, [each]))
            if changes := found.decided.get(name):
                view.decisions[name] = whole(
                    each.purpose, changes, view.topic_states[name], saved.get(name, {})
                )
        return view

    @contextmanager
    def backup(self, sources: Sources, connectors: Sequence[str]) -> Iterator[DataFrame]:
        """Yield a frame with the lines of a backup of ``connectors``, of all that have offsets if
        there are none; it is valid until the next step of the iterator.

        Raises ``ConnectctlError`` if not everything is visible.
        """
        shown = TopicLayout(sources)
        snapshot = observe(shown.sources, OffsetsQuery(tuple(connectors)))
        requests = [ReadRequest(AllKeys(name)) for name in connectors or snapshot.stores or ("",)]
        check_complete(
            at
            for topic_states in layout(shown.sources, snapshot, requests).values()
            for at in topic_states
        )
        owners: dict[Source, frozenset[str] | None] = {}
        for name, topic in snapshot.dedicated.items():
            source = Source(topic.bootstrap, topic.image.topic)
            owners[source] = (owners.get(source) or frozenset()) | {name}
        owners[Source(None, sources.offsets_topic)] = frozenset(connectors) or None
        spark = self._session()
        with job_failures("read the offsets", self._log):
            tasks, _, collected = (_tasks(spark, shown.records, each) for each in SIZES)
            lines = read_texts(spark, shown.wanted(owners), owners, tasks)
            yield lines.repartition(collected, "number").select("value")


def _tasks(spark: SparkSession, records: int, each: int) -> int:
    """Return the number of tasks for ``records``, if a task has ``each`` of them."""
    return max(int(spark.sparkContext.defaultParallelism), records // each + 1)


def _lines_in(backup: Path) -> int:
    """Return the maximum number of records in a backup."""
    files = backup.glob("part-*") if backup.is_dir() else [backup]
    return sum(file.stat().st_size for file in files if file.is_file()) // LINE_BYTES


def whole(
    purpose: Purpose,
    changes: OffsetChanges,
    topic_states: Sequence[OffsetsTopicState],
    saved: Saved,
) -> OffsetChanges:
    """Return ``changes`` that were decided in parts, with what speaks against a whole backup, and
    not against a part of it.

    They are in the order of the keys, if they are not too many.
    """
    if len(changes.writes) <= offsets.MOST:
        order = {(at.bootstrap, at.topic): n for n, at in enumerate(topic_states)}
        writes = sorted(
            changes.writes, key=lambda write: (order[write.bootstrap, write.topic], write.key)
        )
        changes = replace(changes, writes=tuple(writes))
    if isinstance(purpose, RestoreBackup):
        changes = replace(changes, refusals=decide(purpose, topic_states, saved).refusals)
    return changes

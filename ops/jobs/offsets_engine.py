"""The engine for big topics: Spark reads them and leaves out what cannot matter, the local engine's code does the rest.

One connector is looked at in two passes of the same code that the local engine runs. In the first the topics seem empty, and
it is noted which are asked for; then Spark reads those; in the second they hold what Spark kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.clients.spark.session import job_failures
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.jobs import offsets, offsets_backup
from connectctl.ops.jobs.offsets import Looked, Source
from connectctl.ops.jobs.topic_layout import TopicLayout
from connectctl.ops.jobs.topic_reader import read
from connectctl.ops.operations.offsets.engine import Asked, View, layout
from connectctl.ops.operations.offsets.key_filter import AllKeys
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_RECORDS = 1_000_000
"""Records of the topics for each Spark task: what one holds at a time, at most, where keys are spread evenly."""


class Spark:
    """Reads with the Spark session that ``session`` opens when it is first needed. What Spark logs is in ``log``."""

    def __init__(self, session: Callable[[], SparkSession], log: Path):
        self._session, self._log = session, log

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        """See ``Engine``."""
        shown, look = TopicLayout(sources), OffsetsQuery(tuple(each.purpose.connector for each in asked))
        places = layout(shown.sources, observe(shown.sources, look), asked)
        owners = dict.fromkeys(shown.sources_of(), frozenset(look.connectors))
        spark = self._session()
        with job_failures("read the offsets", self._log):
            tasks = _tasks(spark, shown)
            rows = read(spark, shown.wanted(owners), tasks)
            for each in asked:
                if each.backup is not None:
                    rows = rows.unionByName(offsets_backup.read(spark, each.backup, each.purpose.connector))
            looked = [Looked(each.purpose, places[each.purpose.connector]) for each in asked]
            saved = shown.fill(offsets.collected(offsets.sift(rows, looked, tasks)))
        snapshot = observe(shown.sources, look)
        return View(snapshot, layout(shown.sources, snapshot, asked), {**saved})

    @contextmanager
    def backup(self, sources: Sources, connectors: Sequence[str]) -> Iterator[DataFrame]:
        """The lines of a backup of ``connectors``, of all that have offsets for none, for as long as they are used.

        Raises ``ConnectctlError`` where not everything can be seen.
        """
        shown = TopicLayout(sources)
        snapshot = observe(shown.sources, OffsetsQuery(tuple(connectors)))
        asked = [Asked(AllKeys(name)) for name in connectors or snapshot.stores or ("",)]
        found = [at for places in layout(shown.sources, snapshot, asked).values() for at in places]
        if problems := [at.problem for at in found if at.problem]:
            why = "; ".join(dict.fromkeys(problems))
            raise ConnectctlError("Could not read all offsets", why=why, code="hidden")
        owners: dict[Source, frozenset[str] | None] = {}
        for name, topic in snapshot.dedicated.items():
            source = Source(topic.bootstrap, topic.image.topic)
            owners[source] = (owners.get(source) or frozenset()) | {name}
        owners[Source(None, sources.offsets_topic)] = frozenset(connectors) or None
        spark = self._session()
        with job_failures("read the offsets", self._log):
            tasks = _tasks(spark, shown)
            yield offsets.backup(read(spark, shown.wanted(owners), tasks), owners, tasks)


def _tasks(spark: SparkSession, shown: TopicLayout) -> int:
    return max(int(spark.sparkContext.defaultParallelism), shown.records // TASK_RECORDS + 1)

"""A round of leases on Spark: one Spark task for each task of the connector, none of which shares anything with another.

Spark may run a task again, or twice at once, or believe one dead that is not. All attempts have one transactional id, so
that the newest fences the others; which of them Spark takes for the result does not matter, because what is committed is in
the topics.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.edges.spark import first_line
from connectctl.ops.runtime import leasedtask
from connectctl.ops.runtime.leasedtask import Report, Terms, Work

if TYPE_CHECKING:
    from connectctl.ops.runtime.line import Address
    from pyspark.sql import SparkSession

SCHEMA = "task int, report string"


@dataclass
class Round:
    """A round that is under way on another thread. ``lost`` is why Spark gave none of its reports."""

    spark: SparkSession
    work: Work
    tasks: Mapping[int, Mapping[str, str]]
    terms: Terms
    address: Address
    reports: Sequence[Report] = ()
    lost: str | None = None
    tag: str = field(default_factory=lambda: f"connectctl-{uuid.uuid4().hex}")

    def start(self) -> None:
        """Begin; ``wait`` for the end."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it is over within ``seconds``."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """End it on the spot; what its transactions have open is aborted by whoever comes next, or by their time-out."""
        self.spark.interruptTag(self.tag)

    def _run(self) -> None:
        try:
            self.spark.addTag(self.tag)
            rows = frame(self.spark, self.work, self.tasks, self.terms, self.address).collect()
            self.reports = [Report(**json.loads(row.report)) for row in rows]
        except Exception as e:  # noqa: BLE001  # Spark raises its own, Py4J's and the network's errors
            self.lost = first_line(e)


def frame(
    spark: SparkSession, work: Work, tasks: Mapping[int, Mapping[str, str]], terms: Terms, address: Address
) -> Any:
    """A frame with one partition and one row for each of ``tasks``, which are run when it is collected."""
    numbers, configs = list(tasks), [dict(tasks[n]) for n in tasks]

    def leased(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for at in batch.column(0).to_pylist():
                report = leasedtask.run(work, numbers[at], configs[at], terms, address)
                columns = [pa.array([report.task], pa.int32()), pa.array([json.dumps(asdict(report))], pa.string())]
                yield pa.RecordBatch.from_arrays(columns, names=["task", "report"])

    return spark.range(0, len(numbers), 1, len(numbers)).mapInArrow(leased, SCHEMA)

"""The frame of a run: read and validated before anything is written, then written in rounds."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import Refused
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress, driver_address
from connectctl.ops.task_runtime.connectors import dataframe
from connectctl.ops.task_runtime.dataframe.batch_round import DataFrameRound, readable
from connectctl.ops.task_runtime.dataframe.column_conversion import with_schemas
from connectctl.ops.task_runtime.dataframe.micro_batch import Late
from connectctl.ops.task_runtime.dataframe.partition_registry import PartitionRegistry
from connectctl.ops.task_runtime.dataframe.stream_round import StreamRound
from connectctl.ops.task_runtime.dataframe.task import FrameReport, Writing
from connectctl.ops.task_runtime.dataframe.validate import check_columns, check_committed
from connectctl.ops.task_runtime.job.prepare import PreparedJob, offsets_topic
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets, OffsetStore

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.attempt.task_attempt import TaskLimits
    from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
    from connectctl.ops.task_runtime.job.internal_topics import RunClients
    from connectctl.ops.task_runtime.task.retries import RetryPolicy
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class JobDataFrame:
    """The frame of ``config``. It is analysed once: with other types, a round would distribute its
    rows differently.

    ``claims`` lives as long as the generation; ``own`` is a checkpoint of this run alone.
    ``wanted`` returns whether a stream should end.
    """

    spark: SparkSession
    config: Mapping[str, str]
    frame: DataFrame
    claims: PartitionRegistry | None = None
    own: str | None = None
    wanted: Callable[[], bool] = lambda: False
    _made: list[DataFrameRound] = field(default_factory=list)

    def round(
        self,
        work: TaskSpec,
        count: int,
        tasks: Mapping[int, Mapping[str, str]],
        terms: TaskLimits,
        address: DriverAddress,
    ) -> DataFrameRound:
        """Return a round of ``tasks``, of which there are ``count`` with those that are over."""
        columns = with_schemas(dataframe.columns_of(self.config), self.frame.schema.fields)
        size = dataframe.size_of(self.config)
        claims = None if self.claims is None else self.claims.address
        writing = Writing(work, self.config["topic"], columns, size, claims)
        batch = DataFrameRound(
            self.spark, work, tasks, terms, address, writing=writing, frame=self.frame, count=count
        )
        if not dataframe.flag(self.config, "streaming"):
            self._made.append(batch)
            return batch
        trigger = self.config.get("trigger.interval") or "0 seconds"
        batch_of = partial(dataframe.micro_batch, self.config)
        stream = StreamRound(
            **vars(batch),
            checkpoint=self._checkpoint(),
            trigger=trigger,
            wanted=self.wanted,
            batch_of=batch_of,
        )
        self._made.append(stream)
        return stream

    @property
    def notes(self) -> Iterator[str]:
        """Yield the lines about rows that were not sent unchanged."""
        reports = [
            report
            for each in self._made
            for report in each.reports
            if isinstance(report, FrameReport)
        ]
        if skipped := sum(report.skipped for report in reports):
            yield f"{skipped:,} rows are at or before the committed offsets: skipped"
        late = sum(report.late for report in reports) if self.config.get("late") == Late.DROP else 0
        if late:
            yield (
                f"{late:,} late rows, behind the committed offset of their source partition: "
                "dropped"
            )

    def close(self) -> None:
        if self.claims is not None:
            self.claims.close()
        if self.own is not None:
            shutil.rmtree(self.own, ignore_errors=True)

    def _checkpoint(self) -> str:
        if configured := self.config.get("checkpoint"):
            return configured
        if self.own is None:
            self.own = tempfile.mkdtemp(prefix="connectctl-checkpoint-")
        return self.own


def open_dataframe(
    spark: SparkSession, ready: PreparedJob, scene: RunClients, patience: float, outage: RetryPolicy
) -> JobDataFrame:
    """Return the frame of ``ready``, fit to be written. Raises ``BadInput`` and ``Refused``;
    nothing was written then.
    """
    if ready.take_over:
        raise Refused(
            f"{ready.name} on the workers of {ready.group} is a different connector: workers "
            "cannot run a DataFrameSource",
            next_step="Use another name and a separate --group-id, without --take-over.",
        )
    with readable(ready.name):
        frame = dataframe.read(spark, ready.config)
        dtypes = frame.dtypes
    columns = dataframe.columns_of(ready.config)
    check_columns(dtypes, columns)
    with_schemas(columns, frame.schema.fields)
    store = outage("read the committed offsets", lambda: _read(ready, scene, patience))
    check_committed(ready.name, store, dtypes, columns)
    claims = (
        PartitionRegistry(*driver_address(spark))
        if dataframe.flag(ready.config, "partitioned")
        else None
    )
    return JobDataFrame(spark, ready.config, frame, claims)


def _read(ready: PreparedJob, scene: RunClients, patience: float) -> OffsetStore:
    """Return the offsets in those topics that are there."""
    dedicated, global_offsets = (
        CommittedOffsets(scene.target, offsets_topic(ready), ready.name),
        None,
    )
    existing = [dedicated] if those_that_exist(scene.target, dedicated.topic) else []
    if ready.dedicated_offsets_topic:
        global_offsets = CommittedOffsets(scene.kafka, ready.topics["offsets"], ready.name)
        existing += [global_offsets] if those_that_exist(scene.kafka, global_offsets.topic) else []
    for each in existing:
        each.refresh(patience)
    return OffsetStore(dedicated, global_offsets)

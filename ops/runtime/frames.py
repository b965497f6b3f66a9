"""The frame of a run: read and looked at before anything is written, then written in rounds."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectctl.ops.discovery import those_that_exist
from connectctl.ops.errors import Refused
from connectctl.ops.runtime.committed import Committed, Store
from connectctl.ops.runtime.connectors import dataframe
from connectctl.ops.runtime.framechecks import check_columns, check_committed
from connectctl.ops.runtime.framerounds import FrameRound, claims_of, readable
from connectctl.ops.runtime.frametask import FrameReport, Writing
from connectctl.ops.runtime.late import Progress
from connectctl.ops.runtime.starting import offsets_topic
from connectctl.ops.runtime.streamrounds import StreamRound

if TYPE_CHECKING:
    from connectctl.ops.edges.kafka import Kafka
    from connectctl.ops.runtime.claims import Claims
    from connectctl.ops.runtime.leasedtask import Terms, Work
    from connectctl.ops.runtime.line import Address
    from connectctl.ops.runtime.patience import Patience
    from connectctl.ops.runtime.starting import Ready, Scene
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Frames:
    """The frame of ``config``. It is analysed once: a round that came to other types would share out its rows otherwise.

    ``claims`` lives as long as the generation; ``own`` is a checkpoint that is only this run's. ``wanted`` says that a
    stream is to end.
    """

    spark: SparkSession
    config: Mapping[str, str]
    frame: DataFrame
    claims: Claims | None = None
    own: str | None = None
    wanted: Callable[[], bool] = lambda: False
    progress: Progress | None = None
    _made: list[FrameRound] = field(default_factory=list)

    def round(
        self, work: Work, count: int, tasks: Mapping[int, Mapping[str, str]], terms: Terms, address: Address
    ) -> FrameRound:
        """A round of ``tasks``, of which there are ``count`` with those that are over."""
        columns, size = dataframe.columns_of(self.config), dataframe.size_of(self.config)
        claims = None if self.claims is None else self.claims.address
        writing = Writing(work, self.config["topic"], columns, size, claims)
        batch = FrameRound(self.spark, work, tasks, terms, address, writing=writing, frame=self.frame, count=count)
        if not dataframe.flag(self.config, "streaming"):
            self._made.append(batch)
            return batch
        trigger = self.config.get("trigger.interval") or "0 seconds"
        if self.progress is not None and self._made:
            self.progress.forget()
        stream = StreamRound(
            **vars(batch),
            checkpoint=self._checkpoint(),
            trigger=trigger,
            wanted=self.wanted,
            progress=self.progress,
            first=not self._made,
        )
        self._made.append(stream)
        return stream

    @property
    def skipped(self) -> int:
        """How many rows were at or before the committed offsets."""
        return sum(report.skipped for each in self._made for report in each.reports if isinstance(report, FrameReport))

    def close(self) -> None:
        """Let go of what only this run needs."""
        if self.claims is not None:
            self.claims.close()
        if self.own is not None:
            shutil.rmtree(self.own, ignore_errors=True)

    def _checkpoint(self) -> str:
        if given := self.config.get("checkpoint"):
            return given
        if self.own is None:
            self.own = tempfile.mkdtemp(prefix="connectctl-checkpoint-")
        return self.own


def opened(spark: SparkSession, ready: Ready, scene: Scene, patience: float, outage: Patience) -> Frames:
    """The frame of ``ready``, fit to be written. Raises ``BadInput`` and ``Refused``; nothing was written then."""
    if ready.take_over:
        raise Refused(
            f"No worker runs a DataFrameSource, and {ready.name} on the workers of {ready.group} is another connector",
            next_step="Give another name and a --group-id of its own, without --take-over.",
        )
    with readable(ready.name):
        frame = dataframe.read(spark, ready.config)
        dtypes = frame.dtypes
    columns = dataframe.columns_of(ready.config)
    check_columns(dtypes, columns)
    store = outage("read the committed offsets", lambda: _read(ready, scene, patience))
    check_committed(ready.name, store, dtypes, columns)
    claims = claims_of(spark) if dataframe.flag(ready.config, "partitioned") else None
    # A store of its own, for by the time that it is read the topics are there.
    progress = Progress(_store(ready, scene, Committed), columns, patience, outage)
    return Frames(spark, ready.config, frame, claims, progress=progress)


def _read(ready: Ready, scene: Scene, patience: float) -> Store:
    store = _store(ready, scene, _there)
    store.refresh(patience)
    return store


def _store(ready: Ready, scene: Scene, committed: Callable[[Kafka, str, str], Committed]) -> Store:
    own = committed(scene.target, offsets_topic(ready), ready.name)
    return Store(own, committed(scene.kafka, ready.topics["offsets"], ready.name) if ready.own else None)


class _Nothing(Committed):
    """The offsets in a topic that is not there."""

    def refresh(self, patience: float) -> None:
        """There is nothing to read."""


def _there(kafka: Kafka, topic: str, connector: str) -> Committed:
    kind = Committed if those_that_exist(kafka, topic) else _Nothing
    return kind(kafka, topic, connector)

"""A task's partitions of the source topics, as a supply of the kernel: large batches, passed on as librdkafka gave them.

A batch becomes a step at once, so that the producer sends while the next one is read; a transaction is many of them. What
is in hand is never kept: where a transaction is in doubt, the committed offsets say where reading begins again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Protocol

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.connectors.topic_copy.mirror_offsets import (
    Place,
    next_offset,
    wrap_offset,
    wrap_partition,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source_reader import MOST
from connectctl.ops.task_runtime.spi.delivery_settings import Boundary
from connectctl.ops.task_runtime.spi.transaction_batch import CopiedMessages, TransactionBatch
from connectctl.ops.task_runtime.task.polled_source import TaskOffsets

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.connectors.topic_copy.replication_policy import Policy
    from connectctl.ops.task_runtime.connectors.topic_copy.source_reader import TopicBatch
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings
    from connectctl.ops.task_runtime.spi.transaction_batch import StoredOffsets

PRODUCER = {"queue.buffering.max.kbytes": "65536", "message.max.bytes": "50000000"}
"""librdkafka's limits for a copy: 64 MB of records that wait. How large one may be is for the target's brokers to say."""


@dataclass(frozen=True)
class TransactionLimits:
    """How much one transaction holds whose boundary is a poll: ``records``, or what comes in ``seconds``."""

    records: int
    seconds: float


class SourceReader(Protocol):
    """What reads the source: ``source_reader.Reader``."""

    @property
    def opened(self) -> bool: ...
    @property
    def behind(self) -> bool: ...
    @property
    def lag(self) -> int | None: ...
    def begin(self, begin: Mapping[Place, int | None]) -> dict[Place, int]: ...
    def read(self, most: int) -> list[TopicBatch]: ...
    def close(self) -> None: ...


class CopiedTopics:
    """What is copied from ``places`` of the source, each a source partition of ``connector``, to the topics that ``policy``
    names. Raises ``ConnectctlError`` where one of those is the offsets topic.
    """

    ended = False
    """A topic has no end."""

    def __init__(
        self,
        reader: SourceReader,
        connector: str,
        places: list[Place],
        policy: Policy,
        delivery: DeliverySettings,
        pace: TransactionLimits,
        offsets_topic: str,
    ):
        if delivery.exactly_once and offsets_topic in {policy.remote(topic) for topic, _ in places}:
            raise ConnectctlError(
                "Source tasks may not produce to their own offsets topics when exactly-once support is enabled",
                next_step="Exclude the topic (topics.exclude), or give the connector another offsets.storage.topic.",
            )
        self._reader, self._connector, self._places, self._policy = reader, connector, places, policy
        self._delivery, self._pace = delivery, pace
        self._keys: dict[Place, bytes] = {}
        self._began = self._flushed = time.monotonic()
        self._go_on({})

    def _go_on(self, reached: Mapping[Place, int | None]) -> None:
        """Nothing is in hand, and ``reached`` is where each partition resumes."""
        self._reached, self._count = dict(reached), 0
        self._taken: dict[Place, int] = {}

    def _ahead(self) -> dict[Place, int | None]:
        """Where each partition resumes once what is in hand is committed."""
        return self._reached | {place: last + 1 for place, last in self._taken.items()}

    def resume(self, stored: StoredOffsets) -> None:
        """Read on where all that was given is committed; else begin at what is."""
        offsets = TaskOffsets(self._connector, stored)
        partitions = {place: wrap_partition(self._policy.source, place) for place in self._places}
        self._keys = {place: offsets.key(partition) for place, partition in partitions.items()}
        begin = {place: next_offset(offsets.offset(partition)) for place, partition in partitions.items()}
        if self._reader.opened and begin == self._ahead():
            self._go_on(begin)
            return
        latest = self._reader.begin(begin)
        self._go_on(begin)
        # That a partition without an offset begins at its end is committed at once: the next lease would begin later.
        self._taken = {place: start - 1 for place, start in latest.items()}

    def next_batch(self) -> TransactionBatch | None:
        """The next batch, and the end of the transaction where that has come."""
        if self._taken and not self._count:
            return TransactionBatch(offsets=self._offsets())
        batches = self._reader.read(MOST if self._timed else self._pace.records - self._count)
        if batches and not self._count:
            self._began = time.monotonic()
        for each in batches:
            self._count += len(each.messages)
            self._taken |= {(each.topic, partition): last for partition, last in each.last.items()}
        copies = [CopiedMessages(self._policy.remote(each.topic), each.messages) for each in batches]
        named = partial(_named, self._policy.source, batches)
        if self._due(busy=bool(batches)) and self._taken:
            return TransactionBatch(copies=copies, offsets=self._offsets(), describe_record=named)
        return TransactionBatch(copies=copies, more=True, describe_record=named) if copies else None

    def _due(self, *, busy: bool) -> bool:
        """Whether the transaction ends here. One whose boundary is a poll ends with the source, too: more may never come."""
        now = time.monotonic()
        if self._timed:
            due = now - self._flushed >= self._delivery.interval
            self._flushed = now if due else self._flushed
            return due
        full = self._count >= self._pace.records or now - self._began >= self._pace.seconds
        return full or not busy or not self._reader.behind

    @property
    def _timed(self) -> bool:
        """Whether transactions, or flushes of offsets, come with the clock alone."""
        return self._delivery.boundary is Boundary.INTERVAL or not self._delivery.exactly_once

    def _offsets(self) -> dict[bytes, bytes | None]:
        return {self._keys[place]: connect_json(wrap_offset(last)).encode() for place, last in self._taken.items()}

    def final_batch(self) -> TransactionBatch | None:
        """The end of what is open: it may end anywhere."""
        return TransactionBatch(offsets=self._offsets()) if self._taken else None

    def committed(self, batch: TransactionBatch) -> None:
        """Resume behind what was given."""
        self._go_on(self._ahead())

    @property
    def lag(self) -> int | None:
        """How many offsets the source is ahead, those of markers and aborted records included."""
        return self._reader.lag

    @property
    def has_more(self) -> bool:
        """Whether the source has more, as far as is known, or cannot be reached."""
        return self._reader.behind

    @property
    def producer_properties(self) -> Mapping[str, str]:
        """What suits records that are read as quickly as they are written."""
        return PRODUCER

    def close(self) -> None:
        """Let go of the source."""
        self._reader.close()


def _named(source: str, batches: list[TopicBatch], number: int) -> str:
    """Which record of the source cluster the one with this number is."""
    message = next(islice(chain.from_iterable(each.messages for each in batches), number, None))
    place = connect_json(wrap_partition(source, (message.topic(), message.partition())))
    return f"The record of {place} at {connect_json(wrap_offset(message.offset()))}"

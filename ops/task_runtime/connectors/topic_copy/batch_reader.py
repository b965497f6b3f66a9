"""Reads partitions of the source cluster in batches that stay unopened, where they can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from connectctl.ops.clients.kafka_protocol.batch_fetcher import (
    BatchFetcher,
    FetchedPart,
    OutOfRange,
    TopicGone,
)
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.copied_records import CopiedRecords, copied_records
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.topic_copy.source_clients import (
    UNREADABLE,
    partition_gone,
    unreachable,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source_starts import (
    LostRange,
    SourceCluster,
    starts_of,
    unset,
)

WAIT = 0.05
"""Seconds that a reading may wait for batches."""
READ_BYTES = 8 << 20
"""Bytes of batches, of opened ones before compression, after which a reading ends."""
MOST_SENT = 500
"""Batches after which a reading ends: each is a request, and a transaction can end only after a
reading.
"""


@dataclass(frozen=True, slots=True)
class RecordsOfTopic:
    """Batches of one topic, and the last offset of each partition among them."""

    topic: str
    records: list[CopiedRecords] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.records))

    def add(self, some: CopiedRecords) -> None:
        self.records.append(some)
        self.last[some.partition] = some.last_offset


class BatchReader:
    """Fetches record batches. Holds at most one response. Small batches in a row are put
    ``together``.
    """

    def __init__(self, source: SourceCluster, together: bool = False):
        self._source, self._together = source, together
        self._fetcher: BatchFetcher | None = None
        self._fetched: Iterator[tuple[str, CopiedRecords]] = iter(())
        self._first: tuple[str, CopiedRecords] | None = None
        """The first of what is fetched and not given yet."""
        self.lost: list[LostRange] = []

    @property
    def opened(self) -> bool:
        return self._fetcher is not None

    def begin(self, begin: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
        """Begin at these offsets; see ``source_starts``. Return the offsets at which partitions
        begin after records that are left out.
        """
        self.close()
        starts = starts_of(
            self._source, Kafka(self._source.admin, timeout=self._source.timeout), begin
        )
        committed = self._source.isolation == "read_committed"
        fetcher = BatchFetcher(
            self._source.consumer, timeout=self._source.timeout, committed=committed
        )
        self._fetcher = fetcher
        try:
            with unreachable(self._source.alias):
                fetcher.begin({partition: start.offset for partition, start in starts.items()})
        except ConnectctlError:
            self.close()
            raise
        self.lost = [start.lost for start in starts.values() if start.lost is not None]
        return {partition: start.offset for partition, start in starts.items() if start.leaves_out}

    def read(self, most: int) -> list[RecordsOfTopic]:
        """Return the next batches, up to that with which they have ``most`` records; none where
        there are none for now.

        Raises ``ConnectctlError``, after which it has to begin again.
        """
        try:
            return self._read(most)
        except OutOfRange as e:
            self.close()
            raise self._out_of_range(e) from e
        except TopicGone as e:
            self.close()
            alias = self._source.alias
            raise (
                replaced(alias, e.topic)
                if e.replaced
                else partition_gone(alias, f"topic {e.topic}")
            ) from e
        except ConnectctlError:
            self.close()
            raise

    def _read(self, most: int) -> list[RecordsOfTopic]:
        assert self._fetcher is not None
        if self._first is None:
            with unreachable(self._source.alias):
                self._fetched = _opened(self._fetcher.fetch(WAIT), self._together)
            self._first = next(self._fetched, None)
        found: dict[str, RecordsOfTopic] = {}
        records = size = sent = 0
        while self._first is not None and records < most and size < READ_BYTES and sent < MOST_SENT:
            topic, some = self._first
            found.setdefault(topic, RecordsOfTopic(topic)).add(some)
            sent += 1
            records += len(some)
            size += some.size
            self._first = next(self._fetched, None)
        return list(found.values())

    def _out_of_range(self, error: OutOfRange) -> ConnectctlError:
        """Return the error of a log that begins after the offset or ends before it, by ``begin``
        and the settings.
        """
        where = str(error.topic_partition)
        if error.diverged:
            return diverged(self._source.alias, where, error.offset)
        if self._source.reset == "none":
            return unset(self._source.alias, where)
        return Unreachable(UNREADABLE.format(self._source.alias), why=str(error))

    @property
    def has_more(self) -> bool:
        """Return whether there may be more to read; true while it does not read."""
        return self._first is not None or self._fetcher is None or self._fetcher.has_more

    @property
    def lag(self) -> int | None:
        return None if self._fetcher is None else self._fetcher.lag

    def close(self) -> None:
        fetcher, self._fetcher = self._fetcher, None
        self._fetched, self._first = iter(()), None
        if fetcher is not None:
            fetcher.close()


def _opened(parts: list[FetchedPart], together: bool) -> Iterator[tuple[str, CopiedRecords]]:
    """Yield the fetched records batch by batch; those that have to be opened are opened one at a
    time.
    """
    while parts:
        part = parts.pop(0)
        records = copied_records(
            part.topic_partition.partition, part.data, part.batches, part.wanted, together
        )
        try:
            for copied in records:
                yield part.topic_partition.topic, copied
        except (ValueError, OSError) as e:
            raise ConnectctlError(
                f"{part.topic_partition} has records that cannot be read",
                why=str(e),
                code="garbled",
            ) from e


def replaced(alias: str, topic: str) -> ConnectctlError:
    """Return the error for a topic that was deleted and created again."""
    return ConnectctlError(
        f"topic {topic} was deleted and created again on the source cluster {alias} while it was "
        "copied",
        why="its topic id changed: records of the deleted topic may be lost, and the committed "
        "offsets are not of the new",
        next_step="Reset the offsets to copy the new topic from its beginning: connectctl offsets "
        "reset.",
        code="topic-replaced",
    )


def diverged(alias: str, where: str, offset: int) -> ConnectctlError:
    """Return the error for a log that no longer has the records that were fetched."""
    return ConnectctlError(
        f"The log of {where} on {alias} has changed before offset {offset:,}, up to which it was "
        "read",
        why="a leader was elected that lacked records (unclean leader election): the records that "
        "were read are no longer in the log, and other records may have their offsets",
        next_step=f"Compare the topics; run it again to continue at {offset:,}, or set the "
        "offset: connectctl offsets set.",
        code="log-truncated",
    )

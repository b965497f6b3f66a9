"""One violation as a row: the same columns for every kind, so that all of them fit one table and
one Parquet file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

KINDS = {
    "duplicate": "source records that were written more than once",
    "gap": "source records that are missing",
    "reordered": "source records that are out of order",
    "torn": "records beyond the committed offset",
    "lost": "source records before the committed offset that are missing",
    "unmatched": "records of an input or the output without a counterpart",
    "torn-transaction": "a transaction that was committed in one partition and aborted in another",
    "unclear-transaction": "two partitions with different outcomes, of the same transaction or of "
    "two",
    "missing-batches": "batches of a producer that are missing from the log",
    "stale-batch": "a batch that is a duplicate or of a fenced producer",
    "open-transaction": "a transaction that is still open",
}


class Violation(NamedTuple):
    """A violation, and where it is.

    ``first`` to ``last`` are sequence numbers (offsets for transactions), ``records`` their count.
    ``offset`` is its position, ``other`` that of its counterpart: the first copy of a duplicate.
    ``timestamp`` is in milliseconds, or -1. A run of numbers may have other records between its
    own. Then ``offset`` and ``other`` are the lowest offsets at which the number ``first`` can be,
    and ``until`` and ``other_until`` the highest; they are equal if the position is exact.
    """

    kind: str
    source: str | None = None
    topic: str = ""
    partition: int = -1
    offset: int = -1
    other: int = -1
    first: int = -1
    last: int = -1
    records: int = 0
    timestamp: int = -1
    producer_id: int = -1
    epoch: int = -1
    detail: str = ""
    until: int = -1
    other_topic: str | None = None
    other_partition: int = -1
    other_until: int = -1

    def as_json(self) -> dict[str, Any]:
        elsewhere: dict[str, Any] = {}
        if (self.other_topic, self.other_partition) != (self.topic, self.partition):
            elsewhere = {"otherTopic": self.other_topic, "otherPartition": self.other_partition}
        data = {
            "kind": self.kind,
            "source": self.source,
            "topic": self.topic or None,
            "partition": self.partition,
            "offset": self.offset,
            "otherOffset": self.other,
            **elsewhere,
            "first": self.first,
            "last": self.last,
            "records": self.records,
            "timestamp": self.timestamp,
            "producerId": self.producer_id,
            "producerEpoch": self.epoch,
            "detail": self.detail or None,
        }
        return {name: value for name, value in data.items() if value is not None and value != -1}

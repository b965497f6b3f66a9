"""The progress of a consumer group in the inputs of a transform, and the records that the output
must therefore have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.ops.audit.occurrences import MatchTotals, ReadSide
from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.kafka.group_positions import GroupPositions


@dataclass(frozen=True)
class InputPartition:
    """A partition of an input: records below ``low`` are processed, those from ``high`` on are not.

    ``committed`` is None if the group has committed no offset, or if it could not be read for the
    reason ``unknown``. ``hidden`` is the reason why records below the committed offset could not be
    read.
    """

    span: PartitionRange
    low: int
    high: int
    committed: int | None = None
    unknown: str | None = None
    hidden: str | None = None

    def ranges(self) -> Iterator[PartitionRange]:
        """Yield the partition in its sides, each of which has records to read."""
        span = self.span
        stop = min(span.until, span.stable)
        for side, start, until in (
            (ReadSide.PROCESSED, span.start, self.low),
            (ReadSide.PERHAPS, self.low, self.high),
            (ReadSide.BEYOND, self.high, stop),
        ):
            if start < until:
                yield span._replace(start=start, until=until, side=int(side))


def input_partitions(
    spans: Iterable[PartitionRange], before: GroupPositions, after: GroupPositions
) -> list[InputPartition]:
    """Return the partitions of the inputs, with the positions from ``before`` the output's end was
    determined and from ``after``.

    A group without any committed offset proves nothing: its name may be wrong, or its offsets have
    expired.
    """
    found = []
    nothing = not (before.offsets or after.offsets)
    for span in spans:
        partition = span.topic_partition
        stop = min(span.until, span.stable)
        if why := before.unknown.get(partition) or after.unknown.get(partition):
            found.append(InputPartition(span, span.start, stop, unknown=why))
            continue
        if nothing:
            found.append(InputPartition(span, span.start, stop))
            continue
        earlier, later = before.offsets.get(partition, 0), after.offsets.get(partition, 0)
        committed = after.offsets.get(partition)
        if later > span.horizon:
            why = (
                f"its committed offset {later} is beyond its end {span.horizon}: it was deleted "
                "and created again"
            )
            found.append(InputPartition(span, span.start, stop, unknown=why))
            continue
        hidden = None
        if later > stop:
            hidden = f"its committed offset {later} is beyond the last stable offset {stop}"
        low, high = (min(max(n, span.start), stop) for n in sorted((earlier, later)))
        found.append(InputPartition(span, low, high, committed, hidden=hidden))
    return found


def as_json(
    group: str | None, subset: bool, partitions: Sequence[InputPartition], totals: MatchTotals
) -> dict[str, Any]:
    """Return the results of the inputs; ``missing`` counts the records that are not in the output,
    also if it may leave them out.
    """
    rows = [_row(each, totals) for each in partitions]
    return {
        "group": group,
        "subset": subset,
        "processed": sum(row["processed"] for row in rows),
        "notYetProcessed": sum(row["notYetProcessed"] for row in rows),
        "unknown": sum(row["unknown"] for row in rows),
        "missing": totals.missing,
        "partitions": rows,
    }


def _row(each: InputPartition, totals: MatchTotals) -> dict[str, Any]:
    partition = each.span.topic_partition
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "state": "unknown" if each.unknown else "none" if each.committed is None else "committed",
        "committedOffset": each.committed,
        "processed": totals.read(partition, ReadSide.PROCESSED),
        "notYetProcessed": totals.read(partition, ReadSide.BEYOND),
        "unknown": totals.read(partition, ReadSide.PERHAPS),
    }

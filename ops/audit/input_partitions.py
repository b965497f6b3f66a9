"""How far a consumer group is in the inputs of a transform, and which records are therefore to be
in the output.
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
    """A partition of an input: records below ``low`` are processed, from ``high`` on they are not.

    ``committed`` is None where the group has committed no offset, and where ``unknown`` says why
    that is unknown. ``hidden`` says why records below the committed offset could not be read.
    """

    span: PartitionRange
    low: int
    high: int
    committed: int | None = None
    unknown: str | None = None
    hidden: str | None = None

    def ranges(self) -> Iterator[PartitionRange]:
        """The partition in its sides, each of which has records to read."""
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
    """The partitions of the inputs, with the positions from ``before`` the output's end was fixed
    and from ``after``.

    Of a group that has no committed offset at all nothing is known: its name may be wrong, or its
    offsets have expired.
    """
    found = []
    nothing = not (before.offsets or after.offsets)
    for span in spans:
        place = span.place
        stop = min(span.until, span.stable)
        if why := before.unknown.get(place) or after.unknown.get(place):
            found.append(InputPartition(span, span.start, stop, unknown=why))
            continue
        if nothing:
            found.append(InputPartition(span, span.start, stop))
            continue
        earlier, later = before.offsets.get(place, 0), after.offsets.get(place, 0)
        committed = after.offsets.get(place)
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
    """What is known of the inputs; ``missing`` counts what is not in the output, whether it may be
    left out or not.
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
    place = each.span.place
    return {
        "topic": place.topic,
        "partition": place.partition,
        "state": "unknown" if each.unknown else "none" if each.committed is None else "committed",
        "committedOffset": each.committed,
        "processed": totals.read(place, ReadSide.PROCESSED),
        "notYetProcessed": totals.read(place, ReadSide.BEYOND),
        "unknown": totals.read(place, ReadSide.PERHAPS),
    }

"""The exact offsets of duplicates: a run has the offsets between which a number is, and the log has
the rest.

Only the violations that are shown are looked up, each by bisection, so that a few reads are enough
for a run of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify

from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.violations import Violation

STRETCH = 5_000
"""Offsets that are read at once."""
Reader = Callable[[str, int, int, int], Iterator[tuple[str, int, int]]]
"""``(topic, partition, first, end)`` to ``(source partition, number, offset)`` of the committed
records, in order.
"""


def resolve(summary: Summary, read: Reader) -> None:
    """Replace the ranges of the violations that are shown by exact offsets."""
    for heap in summary.violations.values():
        heap[:] = [(weight, n, _exact(violation, read)) for weight, n, violation in heap]
        heapify(heap)


def _exact(violation: Violation, read: Reader) -> Violation:
    if violation.offset < violation.until:
        at = find(
            violation, violation.topic, violation.partition, violation.offset, violation.until, read
        )
        violation = violation._replace(offset=at, until=at)
    if violation.other < violation.other_until and violation.other_topic is not None:
        at = find(
            violation,
            violation.other_topic,
            violation.other_partition,
            violation.other,
            violation.other_until,
            read,
        )
        violation = violation._replace(other=at, other_until=at)
    return violation


def find(
    violation: Violation, topic: str, partition: int, low: int, high: int, read: Reader
) -> int:
    """Return the offset from ``low`` to ``high`` of the source record with the number
    ``violation.first``, -1 if it does not exist any more.

    Within a run the numbers rise with the offsets.
    """
    while high - low >= STRETCH:
        middle = (low + high) // 2
        ahead = (
            (number, offset)
            for source, number, offset in read(topic, partition, middle, high + 1)
            if source == violation.source
        )
        number, offset = next(ahead, (None, high + 1))
        if number == violation.first:
            return offset
        if number is None or number > violation.first:
            high = middle - 1
        else:
            low = offset + 1
    for source, number, offset in read(topic, partition, low, high + 1):
        if source == violation.source and number == violation.first:
            return offset
    return -1

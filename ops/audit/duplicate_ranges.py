"""Where exactly the copies are: a run tells between which offsets a number lies, and the log tells the rest.

Only what is shown is looked up, and each by halving the stretch, so that it takes a few reads however long a run is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify

from connectctl.ops.audit.summary import Gathered
from connectctl.ops.audit.violations import Offender

STRETCH = 5_000
"""Offsets that are read at once."""
Reader = Callable[[str, int, int, int], Iterator[tuple[str, int, int]]]
"""``(topic, partition, first, end)`` to ``(source partition, number, offset)`` of the committed records, in order."""


def resolve(gathered: Gathered, read: Reader) -> None:
    """Put exact offsets in place of those between which the copies that are shown lie."""
    for heap in gathered.offenders.values():
        heap[:] = [(weight, n, _exact(offender, read)) for weight, n, offender in heap]
        heapify(heap)


def _exact(offender: Offender, read: Reader) -> Offender:
    if offender.offset < offender.until:
        at = find(offender, offender.topic, offender.partition, offender.offset, offender.until, read)
        offender = offender._replace(offset=at, until=at)
    if offender.other < offender.other_until and offender.other_topic is not None:
        at = find(offender, offender.other_topic, offender.other_partition, offender.other, offender.other_until, read)
        offender = offender._replace(other=at, other_until=at)
    return offender


def find(offender: Offender, topic: str, partition: int, low: int, high: int, read: Reader) -> int:
    """The offset from ``low`` to ``high`` of the source record with the number ``offender.first``.

    Within a run the numbers rise with the offsets. -1 where it is not there any more.
    """
    while high - low >= STRETCH:
        middle = (low + high) // 2
        ahead = (
            (number, offset)
            for source, number, offset in read(topic, partition, middle, high + 1)
            if source == offender.source
        )
        number, offset = next(ahead, (None, high + 1))
        if number == offender.first:
            return offset
        if number is None or number > offender.first:
            high = middle - 1
        else:
            low = offset + 1
    for source, number, offset in read(topic, partition, low, high + 1):
        if source == offender.source and number == offender.first:
            return offset
    return -1

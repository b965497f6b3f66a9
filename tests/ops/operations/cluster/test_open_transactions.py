"""Open transactions have time to end; those that begin meanwhile are not waited for."""

from __future__ import annotations

from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.operations.cluster.open_transactions import settled


def _topic(stable: int, end: int) -> dict[str, dict[int, OffsetRange]]:
    return {"t": {0: OffsetRange(0, 5, 5), 1: OffsetRange(0, stable, end)}}


def test_it_waits_for_what_was_open_at_first_and_for_nothing_newer() -> None:
    reads = iter([_topic(3, 9), _topic(8, 20), _topic(9, 30), _topic(30, 30)])
    assert settled(lambda: next(reads), 60, 0.0) == (_topic(3, 9), _topic(9, 30))


def test_what_nothing_holds_back_is_read_once() -> None:
    reads = iter([_topic(9, 9)])
    assert settled(lambda: next(reads), 60) == (_topic(9, 9), _topic(9, 9))


def test_without_patience_what_is_open_stays_unread() -> None:
    reads = iter([_topic(3, 9), _topic(9, 9)])
    assert settled(lambda: next(reads), 0) == (_topic(3, 9), _topic(3, 9))

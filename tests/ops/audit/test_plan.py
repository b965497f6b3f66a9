"""What an audit looks at."""

from __future__ import annotations

import pytest
from connectctl.ops.audit.plan import Bound, bound, spans
from connectctl.ops.audit.timeline import SLOTS, Sizes, Timeline
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.topics import OffsetRange
from hypothesis import given
from hypothesis import strategies as st

BEGAN = {"t": {0: OffsetRange(0, 80, 100), 1: OffsetRange(7, 50, 50)}}
NOW = {"t": {0: OffsetRange(0, 120, 130), 1: OffsetRange(9, 50, 50)}}


def test_records_count_up_to_where_it_began_and_markers_up_to_now() -> None:
    zero, one = spans(BEGAN, NOW, {})
    assert (zero.start, zero.until, zero.stable, zero.horizon, zero.whole) == (
        0,
        100,
        100,
        130,
        True,
    )
    assert (one.start, one.until, one.stable, one.whole) == (9, 50, 50, False)


def test_bounds_cut_and_compaction_is_noted() -> None:
    (zero, one) = spans(BEGAN, NOW, {"t": "compact"}, {"t": {0: 10, 1: 0}}, {"t": {0: 60, 1: 900}})
    assert (zero.start, zero.until, zero.whole, zero.compacted) == (10, 60, False, True)
    assert (one.start, one.until) == (9, 50)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("offset:5", Bound(offset=5)),
        ("1700000000000", Bound(timestamp=1_700_000_000_000)),
        ("2026-01-01T00:00:00Z", Bound(timestamp=1_767_225_600_000)),
        ("2026-01-01", Bound(timestamp=1_767_225_600_000)),
    ],
)
def test_bounds_are_offsets_or_times(text: str, found: Bound) -> None:
    assert bound(text, "--since") == found


@pytest.mark.parametrize("text", ["offset:x", "noon", "", "offset:-1"])
def test_other_bounds_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        bound(text, "--since")


@given(
    st.lists(st.tuples(st.integers(0, 1 << 41), st.integers(1, 9))),
    st.lists(st.tuples(st.integers(0, 1 << 41), st.integers(1, 9))),
)
def test_a_timeline_keeps_its_size_and_loses_nothing(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    one, other = Timeline(), Timeline()
    for timestamp, count in some:
        one.add(timestamp, "n", count)
    for timestamp, count in others:
        other.add(timestamp, "n", count)
    one.merge(Timeline.of(other.as_row()))
    assert sum(slot["n"] for slot in one.slots.values()) == sum(
        count for _, count in [*some, *others]
    )
    assert not one.slots or max(one.slots) - min(one.slots) < SLOTS


def test_sizes_are_counted_by_powers_of_two() -> None:
    sizes = Sizes()
    for size in (0, 1, 2, 3, 4, 1000):
        sizes.add(size)
    assert dict(sizes.counts) == {0: 2, 1: 2, 2: 1, 9: 1}

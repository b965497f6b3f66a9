"""Times of records, as scripts get them."""

from __future__ import annotations

import pytest
from connectctl.ops.core.times import iso_utc


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_769_860_800_123, "2026-01-31T12:00:00.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_769_860_800_123_456, "1769860800123456 ms after 1970"),
        (1 << 62, "4611686018427387904 ms after 1970"),
    ],
)
def test_a_time_is_iso_8601_in_utc_where_a_calendar_has_it(milliseconds: int, text: str) -> None:
    assert iso_utc(milliseconds) == text

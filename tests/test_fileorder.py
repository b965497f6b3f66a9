"""Long files are tested first, as the last run found them."""

from __future__ import annotations

from fileorder import LONG, LONGEST, longest


def test_the_longest_file_is_first_and_short_ones_are_no_matter() -> None:
    assert longest({"live/b.py": LONG, "live/a.py": 3 * LONG, "cli/c.py": LONG / 2}) == [
        "live/a.py",
        "live/b.py",
    ]


def test_without_an_earlier_run_the_order_is_the_written_one() -> None:
    assert longest(None) == longest({}) == list(LONGEST)

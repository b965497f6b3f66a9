"""Long files are tested first, as the last run found them."""

from __future__ import annotations

from fileorder import LONG, LONGEST, last_of, longest
from units import UNITS


def test_the_longest_file_is_first_and_short_ones_are_no_matter() -> None:
    assert longest({"live/b.py": LONG, "live/a.py": 3 * LONG, "cli/c.py": LONG / 2}) == [
        "live/a.py",
        "live/b.py",
    ]


def test_without_an_earlier_run_the_order_is_the_written_one() -> None:
    assert longest(None) == longest({}) == list(LONGEST)


def test_a_unit_of_files_is_as_long_as_all_of_them() -> None:
    of_one_unit = dict.fromkeys(UNITS["secured"], LONG / 4)
    assert longest({"live/a.py": LONG, "live/b.py": LONG / 2, **of_one_unit}) == [
        "secured",
        "live/a.py",
    ]


def test_long_files_that_share_a_cluster_come_behind_those_with_clusters_of_their_own() -> None:
    assert last_of(["a", "b", "c", "d"], {"a", "c"}) == ["b", "d", "a", "c"]

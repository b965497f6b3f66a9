"""Files that look at one promise take turns, and no file is left out for ever."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from turns import MOST, SECONDS, TURNS, drawn_sides, left_out, seconds

LIVE = Path(__file__).parent / "live"
FILES = Counter(
    f"test_{name}.py" for sides in TURNS.values() for side in sides for name in side.split()
)


def test_each_file_that_takes_turns_exists_and_belongs_to_one_promise() -> None:
    assert [name for name in FILES if not (LIVE / name).exists()] == []
    assert [name for name, number in FILES.items() if number > 1] == []


def test_each_run_has_one_side_of_each_promise() -> None:
    for promise, files in left_out("a commit").items():
        kept = [side for side in TURNS[promise] if f"test_{side.split()[0]}.py" not in files]
        assert len(kept) == 1


def test_no_run_is_much_longer_than_others() -> None:
    totals = [seconds(drawn_sides(f"commit {n}").values()) for n in range(60)]
    assert max(totals) <= MOST


def test_each_long_side_begins_with_a_file_that_takes_turns() -> None:
    begins = {side.split()[0] for sides in TURNS.values() for side in sides}
    assert sorted(SECONDS.keys() - begins) == []


def test_each_file_has_its_turn() -> None:
    commits = [
        {name for files in left_out(f"commit {n}").values() for name in files} for n in range(150)
    ]
    assert set(FILES) == set.union(*commits)
    assert set.intersection(*commits) == set()

"""The judge of what was committed last, on random histories of a connector that moves between two
topics.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from connectctl.ops.connect.last_commit import Commits, Side, age_difference, is_copied, last_commit
from connectctl.ops.connect.source_offsets import StoredOffset
from hypothesis import given
from hypothesis import strategies as st

COMMITS = st.builds(Commits, st.sampled_from([None, *Side]), st.booleans())
TIMES = st.integers(0, 200_000)


def stored(position: int | None, at: int | None = 0) -> StoredOffset:
    """An offset, or a tombstone."""
    return StoredOffset(None if position is None else {"position": position}, at, 0, 0)


@given(st.integers(0, 3), st.integers(0, 3), TIMES, TIMES, COMMITS)
def test_equal_offsets_and_equal_times_are_never_stale_at_rest(
    left: int, right: int, there: int, here: int, commits: Commits
) -> None:
    last = last_commit(stored(left, there), stored(right, here), commits)
    if left == right:
        assert (last.side, last.stale) == (Side.DEDICATED, False)
    elif not commits.running or commits.to is None:
        assert last.stale == (there > here)
        assert last.side is (Side.GLOBAL if there > here else Side.DEDICATED)
    assert not last.in_doubt or (last.stale and commits.to is not Side.GLOBAL)


@given(st.integers(0, 3), st.integers(4, 7), TIMES, TIMES, st.sampled_from(list(Side)))
def test_what_runs_is_told_by_its_topic_and_by_no_clock(
    left: int, right: int, there: int, here: int, to: Side
) -> None:
    last = last_commit(stored(left, there), stored(right, here), Commits(to, running=True))
    assert (last.side, last.stale, last.in_doubt) == (to, to is Side.GLOBAL, False)


@pytest.mark.parametrize(("later", "words"), [(1, "1 ms"), (999, "999 ms"), (61_000, "61 s")])
def test_a_later_global_offset_is_stale_by_however_little(later: int, words: str) -> None:
    last = last_commit(stored(2, 1_000 + later), stored(1, 1_000), Commits(Side.DEDICATED))
    assert (last.stale, last.in_doubt, age_difference(last)) == (True, True, words)


def test_records_without_a_time_prove_nothing() -> None:
    for there, here in ((None, 0), (5, None), (None, None)):
        assert not last_commit(stored(2, there), stored(1, here), Commits(Side.DEDICATED)).stale


def test_a_dedicated_tombstone_is_no_offset() -> None:
    last = last_commit(stored(2, 0), stored(None, 9), Commits(Side.DEDICATED, running=True))
    assert (last.side, last.stale) == (Side.GLOBAL, False)


@dataclass
class Model:
    """A connector whose tasks commit to one topic after the other, on clocks that never go back."""

    to: Side = Side.GLOBAL
    last: int = 0
    now: int = 1
    there: dict[Side, StoredOffset] = field(default_factory=lambda: {Side.GLOBAL: stored(0, 0)})

    def put(self, side: Side, position: int) -> None:
        self.now += 1
        self.there[side] = stored(position, self.now)

    def do(self, event: str) -> None:
        if event == "move":
            self.to = Side.DEDICATED if self.to is Side.GLOBAL else Side.GLOBAL
            self.put(self.to, self.last)
        elif event == "killed":  # the copy was sent, and its transaction never committed
            self.put(Side.GLOBAL, self.last + 1)
        else:
            self.last += 1
            self.put(self.to, self.last)
            if event == "commit" and self.to is Side.DEDICATED:
                self.put(Side.GLOBAL, self.last)


EVENTS = st.lists(st.sampled_from(["commit", "commit without its copy", "move"]), max_size=12)


@given(EVENTS, st.booleans(), st.booleans())
def test_the_last_commit_is_told_or_left_to_a_person(
    events: list[str], killed: bool, running: bool
) -> None:
    model = Model()
    for event in events:
        model.do(event)
    if killed and model.to is Side.DEDICATED:
        model.do("killed")
    there = model.there
    found = last_commit(
        there.get(Side.GLOBAL), there.get(Side.DEDICATED), Commits(model.to, running)
    )
    assert found.side is not None
    said = there[found.side].offset
    assert said == {"position": model.last} or found.in_doubt
    assert not (running and found.in_doubt)


@pytest.mark.parametrize(
    ("theirs", "running", "now", "copied"),
    [
        (stored(2, 0), False, 10_000, True),
        (stored(1, 0), False, 10_000, False),
        (stored(1, 0), True, 10_000, True),
        (stored(1, 0), True, 70_000, False),
        (None, True, 10_000, True),
        (None, False, 10_000, False),
    ],
)
def test_a_copy_is_under_way_only_while_the_connector_runs(
    theirs: StoredOffset | None, running: bool, now: int, copied: bool
) -> None:
    assert is_copied(theirs, stored(2, 5_000), now, running=running) is copied

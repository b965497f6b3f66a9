"""Waiting in one place: what was observed last counts, and an error is not taken for an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from connectctl.ops.core.wait import observe_again, observe_until, wait_until


@dataclass
class Clock:
    """Time that passes only by sleeping."""

    time: float = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def test_what_is_enough_ends_the_wait() -> None:
    clock, answers = Clock(), iter([0, 0, 7, 8])
    found = observe_until(lambda: next(answers), bool, 10, 1, now=clock.now, sleep=clock.sleep)
    assert (found, clock.time) == (7, 2)


def test_what_was_observed_last_is_returned_when_the_time_is_over() -> None:
    clock, answers = Clock(), iter(range(-9, 0))
    found = observe_until(
        lambda: next(answers), lambda n: n > 0, 3, 1, now=clock.now, sleep=clock.sleep
    )
    assert (found, clock.time) == (-6, 3)  # at 0, 1, 2 and once more at 3 seconds


def test_without_patience_there_is_one_observation() -> None:
    clock, answers = Clock(), iter([0, 1])
    assert observe_until(lambda: next(answers), bool, 0, 1, now=clock.now, sleep=clock.sleep) == 0
    assert clock.time == 0


def test_none_and_false_are_answers_too() -> None:
    answers: Iterator[str | None] = iter([None])
    assert observe_until(lambda: next(answers), lambda found: found is None, 5, 1) is None


def test_an_error_of_an_observation_is_raised() -> None:
    def fails() -> str:
        raise OSError("no answer")

    with pytest.raises(OSError, match="no answer"):
        observe_until(fails, bool, 5, 1)
    with pytest.raises(OSError, match="no answer"):
        wait_until(fails, 5, 1)


def test_there_is_one_observation_more_than_pauses() -> None:
    seen = iter([1, 2, 3, 4])
    assert observe_again(lambda: next(seen), lambda n: False, (0.0, 0.0)) == 3
    assert observe_again(lambda: next(seen), lambda n: n == 4, (60.0,)) == 4

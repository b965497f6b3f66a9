"""Of several attempts of a task, the one that began last is the task's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from connectctl.ops.task_runtime.attempt.newest_attempt import Attempt, AttemptRegistry


@pytest.fixture
def driver() -> Iterator[AttemptRegistry]:
    made = AttemptRegistry("127.0.0.1")
    yield made
    made.close()


def test_an_older_attempt_of_the_same_task_is_superseded_and_no_other(
    driver: AttemptRegistry,
) -> None:
    first, copy, other = (Attempt(driver.address, *of) for of in ((0, 10), (0, 12), (1, 11)))
    first.begin()
    other.begin()
    assert not first.is_superseded
    copy.begin()
    assert (first.is_superseded, copy.is_superseded, other.is_superseded) == (True, False, False)


def test_nobody_else_may_say_which_is_the_newest(driver: AttemptRegistry) -> None:
    ours, foreign = (
        Attempt(driver.address, 0, 1),
        Attempt(replace(driver.address, token="guessed"), 0, 2),
    )
    ours.begin()
    foreign.begin()
    assert not ours.is_superseded


def test_a_driver_that_is_gone_supersedes_nothing(driver: AttemptRegistry) -> None:
    attempt = Attempt(driver.address, 0, 1)
    attempt.begin()
    driver.close()
    assert not attempt.is_superseded

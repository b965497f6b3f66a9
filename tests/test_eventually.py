"""How long live tests wait for what is to come: as long as a slow machine needs, and not until the
end of a hang.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from live import real
from live.real import DEADLINE, QUIET, eventually


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """The seconds after which something that never comes is given up, by the machine's load."""

    def after(load: float, *deadline: float) -> float:
        now = [0.0]
        with monkeypatch.context() as patch:
            # Only for the module: threads that others have left in this process sleep, too.
            clock = {"monotonic": lambda: now[0], "sleep": lambda s: now.__setitem__(0, now[0] + s)}
            patch.setattr(real, "time", SimpleNamespace(**clock))
            patch.setattr(os, "getloadavg", lambda: (load, load, load))
            patch.setattr(os, "cpu_count", lambda: 2)
            with pytest.raises(AssertionError, match="still False after"):
                eventually(lambda: False, *deadline)
        return now[0]

    return after


def test_a_hang_is_told_soon_on_a_quiet_machine(given_up: Callable[..., float]) -> None:
    for load in (0.0, 1.9):
        assert QUIET <= given_up(load) < QUIET + 5


def test_a_loaded_machine_has_as_much_more_time(given_up: Callable[..., float]) -> None:
    assert 2 * QUIET <= given_up(4.0) < 2 * QUIET + 5
    assert DEADLINE <= given_up(40.0) < DEADLINE + 5


def test_a_deadline_that_is_given_holds_whatever_the_load(given_up: Callable[..., float]) -> None:
    for load in (0.0, 40.0):
        assert 600 <= given_up(load, 600.0) < 605


def test_what_comes_is_given_back_at_once() -> None:
    began = time.monotonic()
    answers = iter([None, "", "there"])
    assert eventually(lambda: next(answers)) == "there"
    assert time.monotonic() - began < QUIET

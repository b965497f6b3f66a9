"""``--lock-wait``: a change waits for the lock that another run holds, and plans again when it is
free.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.cli import lock_wait
from connectctl.ops.config import settings
from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.core.errors import BadInput, Refused
from fakes.rollingworld import RollingWorld

APPLY = ("upgrade", "apply", "--yes", "--gate-checks", "1", "--to", "preparing")
OTHER = LockHolder("20260101-103100-ab12", "anna@ops-1", "2026-01-01T10:31:00Z", 7, "10.0.0.1")


@pytest.fixture
def world(tmp_path: Path) -> RollingWorld:
    world = RollingWorld.of(tmp_path, "disabled", "disabled")
    world.lock.other = OTHER
    return world


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of waits for the lock, which only their pauses move."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(lock_wait, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    return now


def test_a_change_waits_until_the_lock_is_free_and_plans_for_what_it_then_finds(
    world: RollingWorld, clock: list[float]
) -> None:
    world.told["lock_wait"] = 60.0
    world.lock.free_at = 4
    holder = world.lock.holder

    def holder_that_works() -> Any:
        found = holder()
        if found is None:  # The other run has changed a worker meanwhile.
            world.workers["a"].file = world.workers["a"].mode = "preparing"
        return found

    world.lock.holder = holder_that_works  # type: ignore[method-assign]
    result = world.run(*APPLY)
    assert result.exit_code == 0, result.output
    assert (
        "held by 20260101-103100-ab12 of anna@ops-1" in result.stderr or str(OTHER) in result.stderr
    )
    assert "Waiting up to 60 s." in result.stderr
    assert world.history == [("b", "preparing")]
    assert 3 < clock[0] < 60


def test_a_lock_that_is_not_released_in_time_refuses_the_change(
    world: RollingWorld, clock: list[float]
) -> None:
    world.told["lock_wait"] = 100.0
    result = world.run(*APPLY)
    assert result.exit_code == 4
    assert "after waiting 100 s (--lock-wait)" in result.stderr
    assert result.stderr.count("Still waiting for the lock after") in (2, 3)
    assert world.history == []
    assert clock[0] == pytest.approx(100)
    assert {
        run["state"] for run in json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]
    } == {"refused"}


def test_without_the_option_a_change_is_refused_at_once(
    world: RollingWorld, clock: list[float]
) -> None:
    result = world.run(*APPLY)
    assert (result.exit_code, clock[0]) == (4, 0.0)
    assert "Waiting" not in result.stderr


def test_another_refusal_is_not_waited_for(world: RollingWorld, clock: list[float]) -> None:
    world.told["lock_wait"] = 60.0
    world.workers["a"].obstacle = "its file cannot be written"
    assert (world.run(*APPLY).exit_code, clock[0]) == (4, 0.0)


def refusing(times: int, read: list[str]) -> Callable[[], None]:
    """A command that reads standard input, and is refused ``times`` times because of the lock."""

    def command() -> None:
        read.append(sys.stdin.buffer.read().decode())
        if len(read) <= times:
            raise Refused("Another connectctl is changing it; nothing was done", code="locked")

    return command


def test_standard_input_is_the_same_each_time(
    world: RollingWorld, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.told["lock_wait"] = 60.0
    world.lock.other = None
    stdin = io.TextIOWrapper(io.BytesIO(b"a configuration"))
    monkeypatch.setattr(sys, "stdin", stdin)
    read: list[str] = []
    lock_wait.retried(world.session(), refusing(2, read), {"files": [Path("-")]})
    assert read == ["a configuration"] * 3
    assert sys.stdin is stdin


@pytest.mark.parametrize("given", ["-1", "1e9", "soon"])
def test_the_seconds_are_checked_wherever_they_are_given(given: str) -> None:
    with pytest.raises(BadInput):
        settings.merge({}, {"CONNECTCTL_LOCK_WAIT": given}, None, None)
    assert settings.merge({}, {"CONNECTCTL_LOCK_WAIT": "90"}, None, None).get("lock_wait") == 90.0
    assert (
        settings.merge({"lock_wait": 5.0}, {"CONNECTCTL_LOCK_WAIT": "90"}, None, None).get(
            "lock_wait"
        )
        == 5.0
    )

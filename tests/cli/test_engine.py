"""Which engine a command takes, and what it says where it cannot."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli.session import Session
from connectctl.ops.clients.spark import session
from connectctl.ops.operations.offsets import engine_choice
from connectctl.ops.operations.offsets.engine import Asked, Local, View
from connectctl.ops.operations.offsets.observe import Sources
from fakes.offsetworld import World

DIFF = ("offsets", "diff", "moved")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal")


class Counting(Local):
    """Stands in for Spark, and tells whether it was asked."""

    asked = 0

    def view(self, sources: Sources, asked: Sequence[Asked]) -> View:
        self.asked += 1
        return super().view(sources, asked)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Counting:
    engine = Counting()
    monkeypatch.setattr(Session, "spark", engine)
    monkeypatch.setattr(session, "require", lambda: None)
    return engine


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """As if ``modules`` were not installed."""
    found = importlib.util.find_spec

    def find_spec(name: str, *more: Any) -> Any:
        return None if name in modules else found(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow", "pandas"])
@pytest.mark.parametrize("args", [DIFF, ("offsets", "backup"), ("offsets", "merge", "moved", "--into", "global")])
def test_without_pyspark_one_line_says_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch, missing: str, args: tuple[str, ...]
) -> None:
    without(monkeypatch, missing)
    ran = world.run(*args, "--engine", "spark")
    assert ran.exit_code == 1
    assert ran.stderr.count("\n") == 1
    assert "pip install 'connectctl[spark]'" in ran.stderr


def test_without_java_one_line_says_what_to_install(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ran = world.run(*DIFF, "--engine", "spark")
    assert (ran.exit_code, ran.stderr.count("\n")) == (1, 1)
    assert "Java 17" in ran.stderr


@pytest.mark.parametrize(
    ("threshold", "installed", "args", "on_spark"),
    [
        (1, True, (), True),
        (1, True, ("--engine", "local"), False),
        (1, False, (), False),
        (engine_choice.THRESHOLD, True, (), False),
        (engine_choice.THRESHOLD, True, ("--engine", "spark"), True),
    ],
)
def test_spark_reads_what_is_big_or_what_it_is_told_to(
    world: World,
    engine: Counting,
    monkeypatch: pytest.MonkeyPatch,
    threshold: int,
    installed: bool,
    args: tuple[str, ...],
    on_spark: bool,
) -> None:
    monkeypatch.setattr(engine_choice, "THRESHOLD", threshold)
    monkeypatch.setattr(session, "installed", lambda: installed)
    ran = world.run(*DIFF, *args)
    assert ran.exit_code == 0, ran.stderr
    assert bool(engine.asked) is on_spark


def test_every_step_of_a_change_is_on_the_chosen_engine(world: World, engine: Counting) -> None:
    ran = world.run("offsets", "merge", "moved", "--into", "global", "--stop", "--yes", "--engine", "spark")
    assert ran.exit_code == 0, ran.stderr
    assert engine.asked >= 4


def test_other_comparisons_are_not_for_spark(world: World, tmp_path: Path) -> None:
    ran = world.run(*DIFF, "--engine", "spark", "-f", str(tmp_path / "dump"))
    assert ran.exit_code == 2

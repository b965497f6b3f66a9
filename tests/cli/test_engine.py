"""Which engine a command takes, and what it says where it cannot."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli.session import Session
from connectctl.ops.clients.spark import session
from connectctl.ops.kafka import memory
from connectctl.ops.operations.offsets.engine import Local, ReadRequest, View
from connectctl.ops.operations.offsets.observe import Sources
from fakes.offsetworld import World

DIFF = ("offsets", "diff", "moved")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal")


class Counting(Local):
    """Stands in for Spark, and tells whether it was asked."""

    asked = 0

    def view(self, sources: Sources, asked: Sequence[ReadRequest]) -> View:
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
@pytest.mark.parametrize(
    "args", [DIFF, ("offsets", "backup"), ("offsets", "merge", "moved", "--into", "global")]
)
def test_without_pyspark_one_line_says_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch, missing: str, args: tuple[str, ...]
) -> None:
    without(monkeypatch, missing)
    ran = world.run(*args, "--engine", "spark")
    assert ran.exit_code == 1
    assert ran.stderr.count("\n") == 1
    assert "pip install 'connectctl[spark]'" in ran.stderr


def test_without_java_one_line_says_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ran = world.run(*DIFF, "--engine", "spark")
    assert (ran.exit_code, ran.stderr.count("\n")) == (1, 1)
    assert "Java 17" in ran.stderr


@pytest.mark.parametrize(
    ("left", "installed", "args", "on_spark"),
    [
        (1_000, True, (), True),
        (None, True, (), False),
        (1 << 30, False, (), False),
        (1 << 30, True, (), False),
        (1 << 30, True, ("--engine", "local"), False),
        (1 << 30, True, ("--engine", "spark"), True),
    ],
)
def test_spark_reads_what_memory_might_not_hold_or_what_it_is_told_to(
    world: World,
    engine: Counting,
    monkeypatch: pytest.MonkeyPatch,
    left: int | None,
    installed: bool,
    args: tuple[str, ...],
    on_spark: bool,
) -> None:
    monkeypatch.setattr(memory, "available", lambda: left)
    monkeypatch.setattr(session, "installed", lambda: installed)
    ran = world.run(*DIFF, *args)
    assert ran.exit_code == 0, ran.stderr
    assert bool(engine.asked) is on_spark


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize(
    "args",
    [
        ("offsets", "show"),
        ("offsets", "backup", "--engine", "local"),
        ("offsets", "merge", "moved", "--into", "global", "--stop", "--yes", "--engine", "local"),
    ],
    ids=lambda args: args[1],
)
def test_what_memory_does_not_hold_is_one_line_with_what_spark_needs(
    world: World, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], installed: bool
) -> None:
    monkeypatch.setattr(session, "installed", lambda: installed)
    before = world.state()

    def image(self: World, topics: Sequence[str], **how: Any) -> Any:
        memory.check(1, ", ".join(topics))

    monkeypatch.setattr(memory, "available", lambda: 0)
    monkeypatch.setattr(type(world.kafka), "image", image)
    ran = world.run(*args)
    assert (ran.exit_code, ran.stderr.count("\n")) == (1, 1)
    assert "it holds 1 keys with 0 MB left" in ran.stderr
    assert "--engine spark" in ran.stderr
    assert "pip install 'connectctl[spark]'" in ran.stderr
    assert world.state() == before


def test_every_step_of_a_change_is_on_the_chosen_engine(world: World, engine: Counting) -> None:
    ran = world.run(
        "offsets", "merge", "moved", "--into", "global", "--stop", "--yes", "--engine", "spark"
    )
    assert ran.exit_code == 0, ran.stderr
    assert engine.asked >= 4


def test_other_comparisons_are_not_for_spark(world: World, tmp_path: Path) -> None:
    ran = world.run(*DIFF, "--engine", "spark", "-f", str(tmp_path / "dump"))
    assert ran.exit_code == 2

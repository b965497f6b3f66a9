"""Each commit draws cells of the matrices, and names those that it leaves out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import draws
import pytest
from draws import VARIABLE, chosen
from hypothesis import core, given, settings, strategies

CELLS = [f"cell {n}" for n in range(6)]
MATRIX = """
import pytest

@pytest.mark.drawn(2)
@pytest.mark.parametrize("cell", range(6))
def test_matrix(cell): print("ran", cell)
"""


def test_every_cell_is_drawn_by_some_commit() -> None:
    drawn = [chosen(CELLS, 1, f"commit {n}") for n in range(200)]
    assert {len(each) for each in drawn} == {1}
    assert set().union(*drawn) == set(CELLS)


def test_the_same_commit_draws_the_same_cells() -> None:
    assert chosen(CELLS, 3, "a") == chosen(CELLS[::-1], 3, "a")


def of_matrix(directory: Path, marks: str, *more: str, matrix: str = MATRIX) -> str:
    (directory / "test_it.py").write_text(matrix)
    (directory / "pytest.ini").write_text("[pytest]\nmarkers =\n  drawn\n  slow\n")
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent), VARIABLE: "a commit"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "draws",
        "-p",
        "no:cacheprovider",
        "-m",
        marks,
        *more,
    ]
    return subprocess.run(
        command, cwd=directory, env=env, capture_output=True, text=True, check=True
    ).stdout


def test_what_is_left_out_is_named_and_is_what_slow_runs(tmp_path: Path) -> None:
    plain, slow = of_matrix(tmp_path, "not slow"), of_matrix(tmp_path, "slow")
    ran = {n for n in range(6) if f"ran {n}\n" in plain}
    assert len(ran) == 2
    assert {n for n in range(6) if f"ran {n}\n" in slow} == set(range(6)) - ran
    left = ", ".join(str(n) for n in range(6) if n not in ran)
    assert f"test_it.py::test_matrix: {left}" in plain
    assert "a commit" in plain


EACH = """
import pytest

@pytest.mark.drawn(each="case")
@pytest.mark.parametrize("case", range(3))
@pytest.mark.parametrize("version", range(4))
def test_matrix(case, version): print("ran", case)
"""


def test_each_behaviour_of_a_matrix_is_drawn_for(tmp_path: Path) -> None:
    plain = of_matrix(tmp_path, "not slow", matrix=EACH)
    assert [plain.count(f"ran {case}\n") for case in range(3)] == [1, 1, 1]


NAMED = """
import pytest

pytestmark = pytest.mark.drawn(2, matrix="kinds")

def test_one(): print("ran one")
def test_two(): print("ran two")
def test_three(): print("ran three")
"""


def test_a_matrix_of_several_tests_is_drawn_from_and_names_the_tests_that_are_left_out(
    tmp_path: Path,
) -> None:
    plain, slow = (
        of_matrix(tmp_path, "not slow", matrix=NAMED),
        of_matrix(tmp_path, "slow", matrix=NAMED),
    )
    (left,) = {each for each in ("one", "two", "three") if f"ran {each}\n" not in plain}
    assert f"ran {left}\n" in slow
    assert f"\ntest_it.py::test_{left}\n" in plain
    assert slow.count("ran ") == 1


def test_processes_that_share_the_tests_leave_out_the_same(tmp_path: Path) -> None:
    assert "2 passed" in (found := of_matrix(tmp_path, "not slow", "-n", "2"))
    assert found.count("test_it.py::test_matrix: ") == 1


def test_a_matrix_that_the_run_was_not_asked_for_is_not_named(tmp_path: Path) -> None:
    asked = MATRIX + "\ndef test_other(): pass\n"
    assert "test_matrix" not in of_matrix(tmp_path, "not slow", "-k", "other", matrix=asked)
    assert "test_matrix" not in of_matrix(tmp_path, "slow")


def examples(monkeypatch: pytest.MonkeyPatch, commit: str, asked: str | None = None) -> list[int]:
    """Return the numbers that Hypothesis tries in a run at ``commit``; ``asked`` is the seed that
    the run is given.
    """
    config: Any = SimpleNamespace(option=SimpleNamespace(hypothesis_seed=asked))
    monkeypatch.setenv(VARIABLE, commit)
    draws.pytest_configure(config)
    # as its plugin does
    monkeypatch.setattr(core, "global_force_seed", int(config.option.hypothesis_seed))
    found: list[int] = []

    @settings(database=None, max_examples=20)
    @given(strategies.integers())
    def tried(number: int) -> None:
        found.append(number)

    tried()
    return found


def test_examples_of_hypothesis_are_drawn_by_the_commit_unless_somebody_asks_for_a_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = examples(monkeypatch, "one commit")
    assert examples(monkeypatch, "one commit") == drawn
    assert examples(monkeypatch, "another commit") != drawn
    asked = examples(monkeypatch, "one commit", "7")
    assert examples(monkeypatch, "another commit", "7") == asked != drawn

"""A live test that fails in a run of the whole suite is repeated once, and its failure is printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = """
import pathlib, pytest

@pytest.mark.live
@pytest.mark.parametrize("name", {unsteady})
def test_unsteady(name):
    seen = pathlib.Path(name)
    if not seen.exists():
        seen.touch()
        raise AssertionError("the broker was slow")

@pytest.mark.live
def test_live():
    assert {live}

def test_offline():
    assert {offline}
"""


def a_run(
    directory: Path, *named: str, unsteady: int = 0, live: bool = True, offline: bool = True
) -> subprocess.CompletedProcess[str]:
    """A run of a suite in which ``unsteady`` tests fail once."""
    names = [f"seen-{n}" for n in range(unsteady)]
    (directory / "test_it.py").write_text(TESTS.format(unsteady=names, live=live, offline=offline))
    (directory / "pytest.ini").write_text("[pytest]\ntestpaths = .\nmarkers =\n  live\n")
    command = "-m pytest -p repeats -p no:cacheprovider --numprocesses=2 --max-suite-reruns=2 -m"
    return subprocess.run(
        [sys.executable, *command.split(), "not slow and not campaign", *named],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_live_test_that_fails_once_does_not_fail_the_run_and_is_printed(tmp_path: Path) -> None:
    run = a_run(tmp_path, unsteady=2)
    assert run.returncode == 0, run.stdout
    assert "failed once" in run.stdout
    assert "AssertionError: the broker was slow" in run.stdout
    assert "test_it.py::test_unsteady[seen-1]" in run.stdout


@pytest.mark.parametrize("faults", [{"unsteady": 3}, {"live": False}, {"offline": False}], ids=str)
def test_a_third_one_or_one_that_fails_again_or_is_offline_fails_the_run(
    tmp_path: Path, faults: Any
) -> None:
    assert a_run(tmp_path, **faults).returncode == 1


def test_what_somebody_names_is_not_repeated(tmp_path: Path) -> None:
    assert a_run(tmp_path, "test_it.py", unsteady=1).returncode == 1

"""Files that share a cluster are tested by one process, and no file is left out."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from units import UNITS, asks_for_cluster, name_of, next_unit

TESTS = Path(__file__).parent
CRASHES = """\
import os
from pathlib import Path

def test_one():
    pass

def test_that_ends_its_process_once():
    crashed = Path(__file__).with_name("crashed")
    if not crashed.exists():
        crashed.touch()
        os._exit(1)
"""
SHORT = """\
import time

def test_one():
    time.sleep(0.2)

def test_two():
    time.sleep(0.2)
"""
FILE = """\
import os
from pathlib import Path

def test(worker_id):
    Path(os.environ["SEEN"], Path(__file__).stem).write_text(worker_id)
"""


def asks_for(file: Path, fixture: str) -> bool:
    """Return whether a function of the file has the fixture of ``conftest.py`` as an argument."""
    functions = [
        each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.FunctionDef)
    ]
    of_its_own = any(each.name == fixture for each in functions)
    asked = any(argument.arg == fixture for each in functions for argument in each.args.args)
    return asked and not of_its_own


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_all_files_that_ask_for_its_fixture(unit: str) -> None:
    folders = {Path(name).parent.name for name in UNITS[unit]}
    files = [file for file in TESTS.rglob("test_*.py") if file.parent.name in folders]
    found = [name_of(file) for file in files if asks_for(file, unit)]
    assert sorted(found) == sorted(UNITS[unit])


def test_the_files_that_ask_for_the_shared_cluster_are_known() -> None:
    files = [file for of in ("live", "contract") for file in (TESTS / of).glob("test_*.py")]
    found = [file for file in files if asks_for(file, "cluster")]
    assert len(found) > 30
    assert [file.name for file in found if not asks_for_cluster(file)] == []


def test_files_that_ask_for_the_shared_cluster_are_given_to_processes_that_have_it() -> None:
    units, asking = ("a", "b", "c"), ("b", "c")
    assert next_unit(units, asking, has=True, may=False) == "b"
    assert next_unit(units, asking, has=False, may=True) == "a"
    assert next_unit(asking, asking, has=False, may=True) == "b"


def test_a_process_without_the_shared_cluster_is_given_other_files_while_there_are_any() -> None:
    assert next_unit(("a", "b"), ("a",), has=False, may=False) == "b"
    assert next_unit(("a",), ("a",), has=False, may=False) == "a"
    assert next_unit(("b",), (), has=True, may=False) == "b"


def in_two_processes(files: Path, root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "units", "-n", "2"]
    options = ["--dist=loadfile", "-p", "no:cacheprovider", "-c", "/dev/null"]
    return subprocess.run(
        [*command, *options, "--rootdir", str(root), str(files)],
        env=os.environ | {"SEEN": str(root), "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_files_of_a_unit_are_tested_by_one_process(tmp_path: Path) -> None:
    (live := tmp_path / "live").mkdir()
    names = [Path(name).name for name in UNITS["secured"][:2]]
    for name in ("test_alone.py", *names):
        (live / name).write_text(FILE)
    done = in_two_processes(live, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = ((tmp_path / Path(name).stem).read_text() for name in names)
    assert first == second != (tmp_path / "test_alone").read_text()


def test_where_a_process_dies_its_test_fails_and_all_others_are_tested(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(CRASHES)
    for name in ("test_b.py", "test_c.py"):
        (tmp_path / name).write_text(SHORT)
    done = in_two_processes(tmp_path, tmp_path)
    assert "1 failed, 6 passed" in done.stdout, done.stdout + done.stderr
    assert "crashed while running 'test_a.py::test_that_ends_its_process_once'" in done.stdout

"""The page on versions claims what tests declare, and a test that chooses a release declares it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from connectctl.ops.sandbox.jars.versions import TRIED
from versions import MARK, PAGE, ROOT, Proof, made, tables

CHOSEN = re.compile(r"kafka_version=(?!KAFKA|None|LATEST)|import (HADOOP|BEFORE|OLDER)\b")
WORKERS, SLOW = Proof("workers", "3.9.2", "a/test_b.py::test_c", "`-m slow`"), "`-m slow`"


def test_the_page_is_what_tests_declare(tmp_path: Path) -> None:
    again = tmp_path / "versions.md"
    script = str(ROOT / "tests/versions.py")
    ran = subprocess.run(
        [sys.executable, script, str(again)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert again.read_text() == PAGE.read_text(), "run: python tests/versions.py"


def test_each_release_that_a_sandbox_takes_by_its_line_is_tested() -> None:
    kafka = PAGE.read_text().partition("## Python")[0]
    rows = re.findall(r"^\| (\d+\.\d+\.\d+) \| (.+?) \|", kafka, re.MULTILINE)
    assert tuple(release for release, tests in rows if tests != "no test") == TRIED


def test_a_live_test_that_chooses_a_release_declares_it() -> None:
    files = sorted(ROOT.glob("tests/live/test_*.py"))
    choosing = [path.name for path in files if CHOSEN.search(path.read_text())]
    assert len(choosing) > 5
    declaring = [path.name for path in files if MARK in path.read_text()]
    assert [name for name in choosing if name not in declaring] == []


@pytest.mark.parametrize(
    ("more", "cell"),
    [
        ((), "`test_b` (`-m slow`)"),
        ((Proof("workers", "3.9.2", "a/test_b.py::test_d", "drawn"),), "`test_b` (drawn)"),
        ((Proof("workers", "3.9.2", "a/test_b.py::test_d", "each commit"),), "`test_b`"),
        ((Proof("brokers", "3.9.2", "a/test_d.py::test_d", "drawn"),), "`test_b` (`-m slow`)"),
    ],
)
def test_a_cell_has_when_its_file_is_tested_at_the_most(more: tuple[Proof, ...], cell: str) -> None:
    assert f"| 3.9.2 | {cell} | " in tables({WORKERS, *more})["kafka"]


def test_what_has_no_column_is_no_mark() -> None:
    with pytest.raises(AssertionError, match="worker"):
        tables({Proof("worker", "3.9.2", "a/test_b.py::test_c", SLOW)})


def test_a_page_without_one_of_the_tables_is_refused() -> None:
    with pytest.raises(AssertionError):
        made("<!-- kafka: python tests/versions.py -->\n<!-- end -->", tables({WORKERS}))

"""Processes of tests keep what they compile, and none of it beside the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bytecode


def test_what_a_process_compiles_is_kept_away_from_its_sources(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "once.py").write_text("")
    shutil.copy(bytecode.__file__, tests)
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tests)}
    command = (
        "import bytecode, subprocess, sys; subprocess.run([sys.executable, '-c', 'import once'])"
    )
    subprocess.run([sys.executable, "-c", command], cwd=tmp_path, env=env, check=True)
    assert not (tests / "__pycache__").exists()
    kept = (tmp_path / ".pytest_cache").rglob("once*.pyc")
    assert [file.name.partition(".")[0] for file in kept] == ["once"]

"""Processes of tests keep what they compile, and none of it beside the sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SESSION = """
import subprocess, sys
from pathlib import Path
from types import SimpleNamespace
import bytecode

bytecode.keep(SimpleNamespace(mkdir=lambda name: Path("kept")))
subprocess.run([sys.executable, "-c", "import once"], check=True)
"""


def test_what_a_process_compiles_is_kept_away_from_its_sources(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text("")
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", SESSION], cwd=tmp_path, env=env, check=True)
    assert not (tmp_path / "__pycache__").exists()
    assert [file.name.partition(".")[0] for file in (tmp_path / "kept").rglob("once*.pyc")] == [
        "once"
    ]

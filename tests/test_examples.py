"""The examples of the documentation that have tests of their own: these pass, as whoever copies them would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from documentation import ROOT, blocks

HOW_TO = ROOT / "docs/how-to"


def passed(directory: Path) -> str:
    """What pytest says at the end in ``directory``, with nothing of this project but what is installed."""
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:xdist", "."]
    options = ["-c", "/dev/null", "--rootdir", str(directory)]
    done = subprocess.run([*command, *options], cwd=directory, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_the_test_of_the_page_on_tests_passes(tmp_path: Path) -> None:
    for page in ("own-connector.md", "test-connectors.md"):
        for block in blocks(HOW_TO / page):
            if block.file:
                (tmp_path / block.file).write_text(block.text)
    assert passed(tmp_path).startswith("4 passed")

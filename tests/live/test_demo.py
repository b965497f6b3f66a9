"""The README's first command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from connectctl.ops.sandbox import cluster

pytestmark = pytest.mark.live


def test_the_demo_proves_each_step_and_leaves_nothing(state_home: Path) -> None:
    before = cluster.names()
    done = subprocess.run(
        [sys.executable, "-m", "connectctl.cli", "demo"],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("✓") == 14
    assert cluster.names() == before

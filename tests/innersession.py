"""A session of pytest within a test: its only test starts processes that nobody ends, and reports
them.

``INNER_REPORT`` is the file of the report; with ``INNER_BROKER`` a sandbox is among what it starts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live.shownlines import fresh

SLEEP = "import time; print('up', flush=True); time.sleep(3600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
BELOW = (
    "import subprocess, sys; command = [sys.executable, '-c', 'import time; time.sleep(3600)'];"
    "print(subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL).pid)"
)
"""Starts a process in a session of its own, writes its number and ends."""


def started(code: str, *words: str, env: dict[str, str] | None = None) -> int:
    """The number of a process that has written a line; the number on that line, where there is
    one.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True, env=env
    )
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    return int(line) if line.isdigit() else process.pid


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_that_starts_processes_and_hangs(state_home: Path, tmp_path: Path) -> None:
    pids = {
        "a child": started(SLEEP),
        "a child that ignores SIGTERM": started(DEAF),
        "a child that is stopped": started(SLEEP),
        "a process whose parent has ended": started(BELOW),
        "a process of somebody new": started(SLEEP, env=fresh(tmp_path)),
        "a JVM of a sandbox with another environment": started(
            SLEEP, f"-Dconnectctl.sandbox={state_home}/a", env={}
        ),
    }
    os.kill(pids["a child that is stopped"], signal.SIGSTOP)
    if "INNER_BROKER" in os.environ:
        from connectctl.ops.sandbox.cluster import SandboxSpec, up
        from connectctl.ops.sandbox.status import status

        up(SandboxSpec(name="inner", workers=0))
        pids["a broker"] = status("inner").processes[0].pid or 0
    report = Path(os.environ["INNER_REPORT"])
    draft = report.with_suffix(".draft")
    draft.write_text(
        json.dumps({"pids": pids, "pytest": os.getpid(), "directory": str(state_home.parent)})
    )
    draft.replace(report)
    time.sleep(3600)

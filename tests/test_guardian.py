"""Nothing that a session of the tests starts outlives it, also when the session is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.processes import runs

INNER = Path(__file__).with_name("innersession.py")
PATIENCE = 300.0


@dataclass(frozen=True)
class Inner:
    """A session within this test: its first process, the one that runs its test, what that has
    started, its directory.
    """

    session: subprocess.Popen[str]
    worker: int
    started: dict[str, int]
    directory: Path

    def left(self) -> list[str]:
        """What has not ended yet."""
        return [name for name, pid in self.started.items() if runs(pid)]


def wait_for(condition: Callable[[], bool], message: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, message()
        time.sleep(0.05)


@contextmanager
def inner(directory: Path, *options: str, **variables: str) -> Iterator[Inner]:
    """A session whose test hangs, once everything that it starts is there."""
    report, log = directory / "report.json", directory / "log"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", *options, str(INNER)]
    with log.open("w") as out:
        env = os.environ | {"INNER_REPORT": str(report)} | variables
        session = subprocess.Popen(
            command, stdout=out, stderr=out, text=True, env=env, cwd=INNER.parent.parent
        )
    try:
        wait_for(lambda: report.exists() or session.poll() is not None, log.read_text)
        assert report.exists(), log.read_text()
        told = json.loads(report.read_text())
        yield Inner(session, told["pytest"], told["pids"], Path(told["directory"]))
    finally:
        session.kill()
        session.wait()


def ends_and_leaves_nothing(found: Inner) -> None:
    wait_for(
        lambda: not found.left() and not found.directory.exists(),
        lambda: (found.left(), found.directory),
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_everything_ends_with_a_session_that_is_ended_by(
    number: signal.Signals, tmp_path: Path
) -> None:
    with ExitStack() as ends, inner(tmp_path, "-n", "0") as found:
        another = ends.enter_context(subprocess.Popen(["sleep", "3600"]))
        ends.callback(another.kill)
        assert found.left() == list(found.started)
        found.session.send_signal(number)
        ends_and_leaves_nothing(found)
        assert another.poll() is None


def test_everything_ends_with_a_worker_of_xdist_that_is_killed(tmp_path: Path) -> None:
    with inner(tmp_path, "-n", "1", "--max-worker-restart=0") as found:
        os.kill(found.worker, signal.SIGKILL)
        ends_and_leaves_nothing(found)
        found.session.wait(PATIENCE)


def test_everything_ends_with_the_first_process_of_xdist_and_so_does_its_worker(
    tmp_path: Path,
) -> None:
    with inner(tmp_path, "-n", "1") as found:
        found.session.kill()
        ends_and_leaves_nothing(found)
        wait_for(lambda: not runs(found.worker), lambda: found.worker)


@pytest.mark.live
def test_a_broker_and_its_directory_go_with_a_session_that_is_killed(tmp_path: Path) -> None:
    with inner(tmp_path, "-n", "0", INNER_BROKER="yes") as found:
        assert "a broker" in found.left()
        found.session.kill()
        ends_and_leaves_nothing(found)

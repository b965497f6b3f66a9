"""``connectctl upgrade`` on real workers: rolled out while a source writes, killed on the way,
taken up, taken back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live.filesource import all_there, growing
from live.real import Ran, connectctl

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NAME = "rolling"
TOPIC = "rolling-lines"
PATIENCE = ("--gate-timeout", "600")


@pytest.fixture(scope="module")
def sandbox(state_home: Path) -> Iterator[Sandbox]:
    """Two workers, disabled: the modes of the shared cluster's workers must stay as they are."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    yield up(SandboxSpec(name=NAME, workers=2))
    down(NAME)


def run(*args: str, code: int = 0) -> Ran:
    ran = connectctl("--context", f"sandbox-{NAME}", "upgrade", *args)
    assert ran.code == code, ran.out + ran.err
    return ran


def modes() -> dict[str, tuple[str, str]]:
    return {
        w["address"]: (w["mode"], w["known"]) for w in run("status", "-o", "json").json["workers"]
    }


def test_a_source_writes_on_while_workers_are_rolled_out_killed_taken_up_and_taken_back(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    with growing(sandbox, TOPIC, tmp_path / "in.txt") as writer:
        assert (
            run("plan", "--out", str(plan), "--exit-code", "-o", "json", code=3).json["request"][
                "to"
            ]
            == "enabled"
        )
        ran = run("apply", str(plan), "--yes", *PATIENCE)
        assert "Done, run" in ran.out
        assert set(modes().values()) == {("enabled", "verified")}
        assert run("plan", "--exit-code", "-o", "json").json["steps"] == []

        # Enabled on every worker: each line that is written from here on is there once, whatever is
        # restarted.
        before = writer.count
        for number in (1, 2):
            sandbox.group.stop_worker(number)
            sandbox.group.start_worker(number)
        found = all_there(sandbox, TOPIC, writer.count)
        assert [n for n, times in found.items() if times > 1 and n >= before] == []

        killed_and_resumed("--to", "preparing")
        leader, follower = sorted(modes().values())
        assert {leader[0], follower[0]} == {"preparing"}
        assert "verified" in (leader[1], follower[1])

        ran = run("apply", "--to", "disabled", "--yes", "--pause-after", "5", *PATIENCE)
        assert "upgrade resume" in ran.out
        run("abort", "--yes", *PATIENCE)
        assert {mode for mode, _ in modes().values()} == {"preparing"}
        two_at_once(tmp_path, "--to", "disabled")
        assert {mode for mode, _ in modes().values()} == {"disabled"}
        writer.stop()
        assert all_there(sandbox, TOPIC, writer.count)


def apply(*wish: str, **environment: str) -> Any:
    """A real connectctl that has begun."""
    command = [
        sys.executable,
        "-m",
        "connectctl.cli",
        "--context",
        f"sandbox-{NAME}",
        "upgrade",
        "apply",
    ]
    return subprocess.Popen(
        [*command, *wish, "--yes", *PATIENCE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def two_at_once(directory: Path, *wish: str) -> None:
    """Two operators, each with a journal of their own: one does it, and the other is told by whom
    it is done.
    """
    pair = [apply(*wish, CONNECTCTL_JOURNAL=str(directory / f"journal-{n}")) for n in range(2)]
    said = [process.communicate(timeout=600) for process in pair]
    ended = sorted((process.returncode, *each) for process, each in zip(pair, said, strict=True))
    assert [code for code, _, _ in ended] == [0, 4], ended
    assert "Done, run" in ended[0][1]
    assert "its lock is held by run " in ended[1][2]


def killed_and_resumed(*wish: str) -> None:
    """A real connectctl, killed after the first restart and taken up by another."""
    process = apply(*wish)
    process.stderr.close()
    with process.stdout as told:
        for line in told:
            if line.startswith("done       restart"):
                process.send_signal(signal.SIGKILL)
                break
    assert process.wait(900) == -signal.SIGKILL
    status = run("status", "-o", "json").json
    assert (status["unfinished"], status["run"]["state"]) == (True, "open")
    assert "has not ended" in run("apply", *wish, "--yes", code=4).err
    assert "Done, run" in run("resume", "--yes", *PATIENCE).out

"""Tasks live as long as their run: nothing begins anew while they work, their statuses are written
all the same, and they end with their driver.
"""

from __future__ import annotations

import json
import signal
import subprocess
from operator import gt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from live import briskrun
from live.real import eventually
from live.rundirectory import Place, python_workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
PLUGIN = """
import time
from pathlib import Path

from connectctl.source import SourceConnector, SourceRecord, SourceTask


class TickTask(SourceTask):
    \"\"\"A number every tenth of a second; task 1 fails once there is the file \"fail\".\"\"\"

    def start(self, configs):
        self.configs = configs
        self.next = (self.context.offsets.offset({"task": configs["task"]}) or {"n": 0})["n"]
        self.tell("start")

    def tell(self, what):
        with open(Path(self.configs["life"]) / f"life-{self.configs['task']}", "a") as file:
            file.write(f"{what}\\n")

    def poll(self):
        time.sleep(0.1)
        if self.configs["task"] == "1" and (Path(self.configs["life"]) / "fail").exists():
            raise ValueError("bang")
        self.next += 1
        source = {"task": self.configs["task"]}
        return [SourceRecord(source, {"n": self.next}, self.configs["topic"], str(self.next))]

    def stop(self):
        self.tell("stop")


class Tick(SourceConnector):
    task = TickTask

    def task_configs(self, max_tasks):
        return [{**self.configs, "task": str(n)} for n in range(max_tasks)]
"""
WRITTEN = "source-record-write-total"


class Ticks(Place):
    """Two tasks that write numbers, and what becomes of them."""

    program = (briskrun.__file__,)

    def __init__(self, cluster: Sandbox, directory: Path):
        super().__init__(cluster, directory)
        (directory / "ticks.py").write_text(PLUGIN)
        self.config |= {"connector.class": "ticks:Tick", "life": str(directory)}
        self.config |= {"tasks.max": "2"}

    def life(self, task: int) -> list[str]:
        path = self.directory / f"life-{task}"
        return path.read_text().split() if path.exists() else []

    def totals(self) -> tuple[int, ...]:
        """Return how many records the tasks have written, by their statuses in the topic."""
        tasks = self.status()["tasks"]
        return tuple(each["metrics"][WRITTEN] if each["metrics"] else 0 for each in tasks)

    def continues(self) -> None:
        """Wait until both tasks have written more, by their statuses."""
        before = self.totals()
        eventually(lambda: all(map(gt, self.totals(), before)))

    def once_each(self) -> None:
        """No number is missing, and none is there twice."""
        numbers = sorted(map(int, self.seen()))
        assert len(numbers) > 10
        longest = max(numbers)
        assert set(numbers) == set(range(1, longest + 1))
        assert all(numbers.count(n) <= 2 for n in numbers)


def stopped(process: subprocess.Popen[str]) -> Any:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert process.returncode in (0, 1), err
    return json.loads(out)


def test_a_task_that_works_begins_once_and_its_statuses_come_while_it_works(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Ticks(cluster, tmp_path)
    with place.running() as process:
        place.sees(10)
        for _ in range(4):  # as many leases of before
            place.continues()
        assert all(place.life(n) == ["start"] for n in (0, 1))
        # One fails: that is in the topic while the other works on.
        (tmp_path / "fail").touch()
        eventually(lambda: place.status()["tasks"][1]["state"] == "FAILED")
        failed = place.status()["tasks"][1]
        assert "ValueError: bang" in failed["trace"]
        before = place.totals()[0]
        eventually(lambda: place.totals()[0] > before)
        assert (place.life(0), place.life(1)) == (["start"], ["start", "stop"])
        result = stopped(process)
    assert [task["producers"] for task in result["tasks"]] == [1, 1]
    assert [task["state"] for task in result["tasks"]] == ["STOPPED", "FAILED"]
    assert result["records"] == len(place.seen())
    place.once_each()


def test_tasks_whose_driver_is_suspended_end_and_work_again_once_it_continues(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Ticks(cluster, tmp_path)
    with place.running() as process:
        place.sees(10)
        process.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: place.life(0) == place.life(1) == ["start", "stop"])
            count = len(place.seen())
            assert len(place.seen()) == count
        finally:
            process.send_signal(signal.SIGCONT)
        place.sees(10)
        assert place.life(0) == ["start", "stop", "start"]
        result = stopped(process)
    assert result["outcome"] == "stopped"
    assert result["records"] == len(place.seen())
    place.once_each()


def test_tasks_end_with_a_driver_that_was_killed(cluster: Sandbox, tmp_path: Path) -> None:
    place = Ticks(cluster, tmp_path)
    with place.running() as process:
        place.sees(10)
        workers = python_workers(process)
        assert workers
        process.kill()
        process.wait()
        eventually(lambda: not any(map(at_work, workers)))
    place.once_each()


def at_work(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False

"""More tasks than cores, on Spark and a real broker: all of them run at once, and one that fails is
alone in it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live import countingplugin
from live.rundirectory import Place

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
TASKS = 8

MEETING = """
from pathlib import Path

from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceRecord, SourceTask


class Task(SourceTask):
    '''Is there as long as it runs, and gives its one record once it has seen that all tasks are.'''

    def start(self, configs):
        self.number, self.topic, self.wanted = int(configs["task"]), configs["topic"], int(configs["wanted"])
        self.room, self.done = Path(configs["room"]), False
        if self.number == self.wanted:
            raise RuntimeError("this one never comes")
        (self.room / f"here-{self.number}").touch()

    def poll(self):
        met = any(self.room.glob("met-*"))
        if self.done or not (met or len(list(self.room.glob("here-*"))) == self.wanted):
            return None
        (self.room / f"met-{self.number}").touch()
        self.done = True
        return [SourceRecord({"task": self.number}, {"met": 1}, self.topic, {"task": self.number})]

    @property
    def finished(self):
        return self.done

    def stop(self):
        (self.room / f"here-{self.number}").unlink(missing_ok=True)


class Meeting(SourceConnector):
    task = Task

    def task_configs(self, max_tasks):
        return [{**self.configs, "task": str(n)} for n in range(max_tasks)]
"""


def test_more_tasks_than_cores_run_at_once_and_one_that_fails_takes_none_along(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Place(cluster, tmp_path)
    archive, class_ = countingplugin.as_zip(tmp_path, MEETING, "Meeting")
    room = tmp_path / "room"
    room.mkdir()
    place.config |= {"connector.class": class_, "wanted": str(TASKS), "room": str(room)}
    place.config["tasks.max"] = str(TASKS + 1)
    place.plugins = [archive]
    ran = place.run(duration="90s")
    assert ran.code == 1
    assert "this one never comes" in ran.err
    told = json.loads(ran.out)
    assert [task["state"] for task in told["tasks"]] == ["ENDED"] * TASKS + ["FAILED"]
    assert sorted(value["task"] for value in place.values()) == list(range(TASKS))

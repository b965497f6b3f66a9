"""A cluster whose tasks fail as files tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from live.real import Ran, Workers, connectctl, eventually, workers
from live.standins import FAULTY

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox


@dataclass
class Faults:
    """A cluster, and the directory of its tasks' faults."""

    cluster: Sandbox
    directory: Path

    @property
    def rest(self) -> Workers:
        return workers(self.cluster)

    def create(self, name: str, tasks: int, **more: str) -> None:
        config = {
            "connector.class": FAULTY,
            "fault": str(self.directory / name),
            "tasks.max": str(tasks),
        }
        self.rest.create(name, config | more)
        eventually(lambda: self.rest.state(name) == ["RUNNING"] * (tasks + 1))

    def plant(self, name: str, task: int, told: str) -> None:
        """Have the task fail; it finds the file whole or not at all."""
        file = self.directory / f"{name}-{task}"
        draft = file.with_suffix(".draft")
        draft.write_text(told)
        draft.rename(file)

    def failed(self) -> set[str]:
        """The FAILED tasks, as workers report them."""
        found = self.rest.call("GET", "/connectors?expand=status").json()
        return {
            f"{name}/{task['id']}"
            for name, each in found.items()
            for task in each["status"]["tasks"]
            if task["state"] == "FAILED"
        }

    def run(self, *args: str) -> Ran:
        return connectctl("--context", f"sandbox-{self.cluster.spec.name}", *args)

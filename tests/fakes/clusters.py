"""Clusters in memory on which commands are run to their end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fakes.changingworld import World
from fakes.offsetworld import World as OffsetWorld
from fakes.rollingworld import RollingWorld
from fakes.runner import invoke


@dataclass
class Clusters:
    """The clusters that commands are run on, each made when it is first asked for."""

    directory: Path

    @cached_property
    def plain(self) -> World:
        return World(self.directory)

    @cached_property
    def offsets(self) -> OffsetWorld:
        return OffsetWorld(self.directory / "journal")

    @cached_property
    def rolling(self) -> RollingWorld:
        return RollingWorld.of(self.directory / "journal", "disabled", "disabled")

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def saved(self, args: tuple[str, ...]) -> str:
        """The plan of a change, as a file."""
        return self.file("plan.json", self.plain.run(*args, "--dry-run", "-o", "json").stdout)

    def last_run(self) -> str:
        """The id of the newest run in the journal."""
        return str(json.loads(invoke(["runs", "list", "-o", "json"]).stdout)["runs"][0]["id"])

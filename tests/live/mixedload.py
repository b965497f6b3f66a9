"""A Connect cluster that works as on a day on which nothing is wrong: sources with transactions,
sinks that read them, and people who create, change, pause, restart and delete connectors.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from live.illnesses.bed import FILE_SINK
from live.offsetchanges import VERIFIABLE
from live.real import FILE_SOURCE, Workers, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

STRINGS = {
    f"{kind}.converter": "org.apache.kafka.connect.storage.StringConverter"
    for kind in ("key", "value")
}
PACE = (10.0, 30.0)
"""Seconds between two things that people do, the least and the most."""


@dataclass
class MixedLoad:
    """Connectors that work, and what is done to them, drawn by ``seed``. ``done`` are the times and
    words of it, in seconds since the epoch.
    """

    cluster: Sandbox
    directory: Path
    seed: str
    done: list[tuple[float, str]] = field(default_factory=list)
    failed: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        self._over = threading.Event()
        self._files: list[Path] = []
        self._lasting: list[str] = []
        self._passing: list[str] = []

    @property
    def rest(self) -> Workers:
        return workers(self.cluster)

    def start(self) -> None:
        """Create the connectors that are there from beginning to end, and wait until all run."""
        for n in range(2):
            self._source(f"files-{n}")
            self._sink(f"sink-{n}", f"files-{n}")
        slowly = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "5000"}
        self._create("numbers", VERIFIABLE | slowly | {"topic": "numbers", "throughput": "20"})
        self._sink("sink-of-numbers", "numbers")
        self._create("numbers-by-poll", VERIFIABLE | {"topic": "polled", "throughput": "3"})

    def break_something(self) -> None:
        """Create a sink that cannot write its file: whoever looks has to see that."""
        file = str(self.directory / "no-such-directory" / "out.txt")
        config = {"connector.class": FILE_SINK, "file": file, "topics": "files-0", **STRINGS}
        self.rest.create("broken", config)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Write the files of the sources and do what people do, for as long as this lasts."""
        threads = [threading.Thread(target=self._kept, args=(each,)) for each in self._parts()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _parts(self) -> tuple[Callable[[], None], ...]:
        return self._write, self._operate

    def _kept(self, part: Callable[[], None]) -> None:
        """Run a part of the load, and keep what ends it before its time."""
        try:
            part()
        except BaseException as e:  # noqa: BLE001  # the test that waits for it raises it
            self.failed.append(e)

    def _write(self) -> None:
        while not self._over.wait(0.5):
            for file in list(self._files):
                with file.open("a") as lines:
                    lines.write(f"{time.time()}\n")

    def _operate(self) -> None:
        # What comes and goes causes rebalances: three times as often as anything else.
        coming = (self._come_and_go,) * 3
        deeds = (*coming, self._pause, self._stop, self._change, self._restart)
        while not self._over.wait(self._draw.uniform(*PACE)):
            self._draw.choice(deeds)()

    def _note(self, what: str) -> None:
        self.done.append((time.time(), what))

    def _come_and_go(self) -> None:
        """Create a source and its sink, or delete those that were created."""
        if self._passing:
            for name in self._passing:
                self._note(f"delete {name}")
                self.rest.delete(name)
            self._passing.clear()
            return
        name = f"passing-{secrets.token_hex(2)}"
        self._note(f"create {name} and a sink")
        self._source(name)
        self._sink(f"{name}-sink", name)
        self._passing += [name, f"{name}-sink"]

    def _pause(self) -> None:
        self._rest_for_a_while("pause", "PAUSED")

    def _stop(self) -> None:
        self._rest_for_a_while("stop", "STOPPED")

    def _rest_for_a_while(self, verb: str, state: str) -> None:
        name = self._one()
        self._note(f"{verb} {name}")
        self.rest.call("PUT", f"/connectors/{name}/{verb}")
        eventually(lambda: set(self.rest.state(name)) == {state})
        self._over.wait(self._draw.uniform(*PACE))
        self._note(f"resume {name}")
        self.rest.call("PUT", f"/connectors/{name}/resume")
        self._runs(name)

    def _change(self) -> None:
        name = self._one()
        self._note(f"change {name}")
        path = f"/connectors/{name}/config"
        config = self.rest.call("GET", path).json()
        changed = {"note": str(self._draw.random()), "tasks.max": "1"}
        self.rest.call("PUT", path, config | changed)
        self._runs(name)

    def _restart(self) -> None:
        name = self._one()
        self._note(f"restart {name}")
        self.rest.call("POST", f"/connectors/{name}/restart?includeTasks=true")
        self._runs(name)

    def _one(self) -> str:
        return self._draw.choice(self._lasting)

    def _source(self, name: str) -> None:
        file = self.directory / f"{name}.txt"
        file.write_text("begin\n")
        self._files.append(file)
        config = {"connector.class": FILE_SOURCE, "file": str(file), "topic": name, **STRINGS}
        self._create(name, config)

    def _sink(self, name: str, topic: str) -> None:
        file = str(self.directory / f"{name}.out")
        config = {"connector.class": FILE_SINK, "file": file, "topics": topic, **STRINGS}
        self._create(name, config)

    def _create(self, name: str, config: dict[str, str]) -> None:
        self.rest.create(name, config)
        self._runs(name)
        if not name.startswith("passing"):
            self._lasting.append(name)

    def _runs(self, name: str) -> None:
        eventually(lambda: self.rest.state(name) == ["RUNNING"] * 2)

"""A directory of connectors is applied as one to a real cluster: pruned, with drift told, killed
anywhere, by two people.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.core.journal import Journal, RunState
from live.real import FILE_SOURCE, Ran, connectctl, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NOTHING = "Nothing to do."


@dataclass
class Person:
    """Somebody with a journal and a directory of configurations."""

    cluster: Sandbox
    place: Path
    monkeypatch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        (self.place / "d").mkdir(parents=True)

    @property
    def journal(self) -> Journal:
        return Journal(self.place / "journal")

    @property
    def command(self) -> list[str]:
        return ["--context", f"sandbox-{self.cluster.spec.name}", "--timeout", "120"]

    @property
    def applying(self) -> list[str]:
        return [*self.command, "connectors", "apply", "-f", str(self.place / "d"), "--prune"]

    def give(self, name: str, state: str = "STOPPED", **more: str) -> None:
        """Write a file for a connector, which is created STOPPED if nothing else is said: that
        costs its workers nothing.
        """
        config = {
            "connector.class": FILE_SOURCE,
            "tasks.max": "1",
            "topic": name,
            "file": f"/in/{name}",
        } | more
        data = {"name": name, "config": config, "initial_state": state}
        (self.place / "d" / f"{name}.json").write_text(json.dumps(data))

    def take(self, name: str) -> None:
        (self.place / "d" / f"{name}.json").unlink()

    def run(self, *args: str, code: int = 0) -> Ran:
        self.monkeypatch.setenv("CONNECTCTL_JOURNAL", str(self.place / "journal"))
        ran = connectctl(*args)
        assert ran.code == code, ran.out + ran.err
        return ran

    def apply(self, *args: str, code: int = 0) -> Ran:
        return self.run(*self.applying, *args, code=code)

    def settle(self) -> None:
        """Wait until every worker has what was applied: each reads the config topic by itself."""
        for _ in range(4):
            eventually(
                lambda: (
                    connectctl(*self.applying, "--dry-run", "--exit-code")
                    .out.rstrip()
                    .endswith(NOTHING)
                )
            )

    @contextmanager
    def process(self) -> Iterator[subprocess.Popen[str]]:
        """An apply in a process of its own, from its first mark on."""
        known = len(self.journal.runs())
        env = os.environ | {"CONNECTCTL_JOURNAL": str(self.place / "journal")}
        command = [sys.executable, "-m", "connectctl.cli", *self.applying, "--yes"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
        ) as process:
            try:
                while process.poll() is None and not (
                    len(runs := self.journal.runs()) > known and runs[0].marks
                ):
                    time.sleep(0.002)
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGCONT)
                    process.kill()


@pytest.fixture
def prefix(cluster: Sandbox) -> Iterator[str]:
    """The beginning of the names of this test, whose connectors are gone after it."""
    found = f"dir-{uuid.uuid4().hex[:6]}"
    yield found
    for name in sizes(cluster, found):
        workers(cluster).delete(name)


@pytest.fixture
def anna(cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(cluster, tmp_path / "anna", monkeypatch)


@pytest.fixture
def ben(cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(cluster, tmp_path / "ben", monkeypatch)


def sizes(cluster: Sandbox, prefix: str) -> dict[str, str | None]:
    """The connectors whose names begin so, with their ``batch.size``."""
    answer = workers(cluster).call("GET", "/connectors?expand=info").json()
    found = {name: each["info"]["config"].get("batch.size") for name, each in answer.items()}
    return {name: size for name, size in found.items() if name.startswith(prefix)}


def test_a_directory_is_pruned_and_drift_is_told_with_its_time(
    cluster: Sandbox, anna: Person, prefix: str
) -> None:
    a, b, c = (f"{prefix}-{each}" for each in "abc")
    anna.give(a)
    anna.give(b, "RUNNING")
    anna.apply("--yes", "--wait")
    anna.settle()
    before = time.time() - 60
    workers(cluster).call("PATCH", f"/connectors/{a}/config", {"batch.size": "7"})
    anna.take(b)
    anna.give(c, file=f"/in/{b}")

    def drifted() -> Any:
        plan = anna.apply("--dry-run", "--exit-code", "-o", "json", code=3).json
        step = next((each for each in plan["steps"] if each["subject"] == a), None)
        return plan if step is not None else None

    plan = eventually(drifted)
    assert [(step["step"], step["subject"]) for step in plan["steps"]] == [
        ("DeleteConnector", b),
        ("ChangeConnector", a),
        ("AwaitRelease", c),
        ("CreateConnector", c),
    ]
    drift = plan["steps"][1]["drift"]
    assert (drift["newer"], drift["cluster"], drift["changed_by"]) == (
        "cluster",
        ["batch.size"],
        "another client",
    )
    assert drift["changed_at"] > time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(before))
    done = anna.apply("--yes")
    assert (
        f"done       wait until no worker runs {b}, whose source partitions {c} reads" in done.out
    )
    eventually(lambda: sizes(cluster, prefix) == {a: None, c: None})
    anna.settle()
    anna.run(*anna.command, "runs", "undo", anna.journal.runs()[0].id, "--yes")
    eventually(lambda: sizes(cluster, prefix) == {a: "7", b: None})


@pytest.mark.parametrize(
    "marks",
    [25, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 7, 14, 20, 26, 33, 39, 40))],
)
def test_an_apply_of_twenty_that_is_killed_is_resumed_to_the_same_end(
    cluster: Sandbox, anna: Person, prefix: str, marks: int
) -> None:
    names = [f"{prefix}-{n:02}" for n in range(20)]
    for name in names[:13]:
        anna.give(name)
    anna.apply("--yes")
    anna.settle()
    for name in names[:6]:
        anna.take(name)
    for name in names[6:]:
        anna.give(name, **{"batch.size": "7"})
    with anna.process() as process:
        while process.poll() is None and len(anna.journal.runs()[0].marks) < marks:
            time.sleep(0.002)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        said = process.communicate(timeout=900)[0]
    run = anna.journal.runs()[0]
    assert len(run.marks) >= marks, said
    if run.state is RunState.OPEN:
        anna.run(*anna.command, "runs", "resume", run.id, "--yes")
    assert anna.journal.get(run.id).state is RunState.DONE
    eventually(lambda: sizes(cluster, prefix) == dict.fromkeys(names[6:], "7"))
    anna.settle()


def test_the_second_of_two_people_is_refused_and_then_merges_what_does_not_touch(
    cluster: Sandbox, anna: Person, ben: Person, prefix: str
) -> None:
    for n in range(4):
        anna.give(f"{prefix}-anna-{n}")
    both = f"{prefix}-both"
    for person in (anna, ben):
        person.give(both, **{"batch.size": "1"})
    ben.apply("--yes")
    ben.settle()
    ben.give(f"{prefix}-ben")
    saved = ben.place / "plan.json"
    saved.write_text(ben.apply("--dry-run", "-o", "json").out)
    ben.give(both, **{"batch.size": "2"})
    touching = ben.place / "touching.json"
    touching.write_text(ben.apply("--dry-run", "-o", "json").out)
    anna.give(both, **{"batch.size": "3"})
    with anna.process() as process:
        os.kill(process.pid, signal.SIGSTOP)
        refused = ben.apply("--yes", code=4)
        os.kill(process.pid, signal.SIGCONT)
        said = process.communicate(timeout=900)[0]
    assert anna.journal.runs()[0].id in refused.err, refused.err
    assert process.returncode == 0, said
    eventually(lambda: sizes(cluster, prefix)[both] == "3")
    anna.settle()
    stale = ben.run(*ben.command, "runs", "apply", str(touching), "--yes", code=4)
    assert f"The plan is stale: {both} was changed" in stale.err
    ben.run(*ben.command, "runs", "apply", str(saved), "--yes")
    names = {both, f"{prefix}-ben", *(f"{prefix}-anna-{n}" for n in range(4))}
    eventually(lambda: sizes(cluster, prefix).keys() == names)
    assert sizes(cluster, prefix)[both] == "3"
    drift = next(
        s["drift"]
        for s in ben.apply("--dry-run", "-o", "json").json["steps"]
        if s["subject"] == both
    )
    assert (drift["newer"], drift["changed_by"]) == ("both", "another client")

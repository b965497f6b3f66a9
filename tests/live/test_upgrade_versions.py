"""From older releases to exactly-once on the newest one and back, on real workers, while a source
writes throughout.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.sandbox.jars.versions import LATEST
from live.filesource import all_there, growing, written_on
from live.real import Ran, connectctl, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NAME, TOPIC = "versions", "versions-lines"
OLD = "3.2.3"
"""Older than exactly-once source support, which came with 3.3."""
LONG = ("--gate-timeout", "600")
ONE, TWO = "hard-downgrade-one-step", "hard-downgrade-two-steps"
CASES = [pytest.param(OLD, ONE), pytest.param(OLD, TWO, marks=pytest.mark.slow)] + [
    pytest.param(version, way, marks=pytest.mark.slow)
    for version in ("3.5.2", "3.7.2", "3.9.2")
    for way in (ONE, TWO)
]


@contextmanager
def sandbox_of(version: str) -> Iterator[Sandbox]:
    """Two workers of an older release; the broker is as new as ever."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    try:
        yield up(SandboxSpec(name=NAME, workers=2, kafka_version=version))
    finally:
        down(NAME)


def upgrade(*args: str, code: int = 0) -> Ran:
    ran = connectctl("--context", f"sandbox-{NAME}", "upgrade", *args)
    assert ran.code == code, ran.out + ran.err
    return ran


def workers_now() -> dict[str, tuple[str, str]]:
    """Version and mode by worker; nothing while a rebalance hides who they are."""
    ran = connectctl("--context", f"sandbox-{NAME}", "upgrade", "status", "-o", "json")
    return (
        {w["address"]: (w["version"], w["mode"]) for w in ran.json["workers"]}
        if ran.code == 0
        else {}
    )


def replace_binaries(sandbox: Sandbox, number: int, version: str) -> None:
    """What an operator does by hand: stop a worker, put another release in place, start it."""
    sandbox.group.stop_worker(number)
    newer = {"plugin.discovery": "service_load"} if version == LATEST else {}
    sandbox.group.start_worker(number, kafka_version=version, properties=newer, wait=False)


def refused_as_too_old(sandbox: Sandbox, *numbers: int) -> None:
    """No roll to exactly-once is planned while these workers run a release that does not know
    it.
    """
    addresses = [f"127.0.0.1:{worker.port}" for worker in sandbox.group.workers]
    eventually(lambda: len([v for v, _ in workers_now().values() if v]) == len(addresses))
    for wish in ("preparing", "enabled"):
        said = upgrade("plan", "--to", wish, code=4).err
        told = {address for address in addresses if f"{address} runs {OLD}" in said}
        assert told == {addresses[number - 1] for number in numbers}, said
        assert "exactly-once source support came with 3.3" in said


def downgraded(sandbox: Sandbox, way: str) -> str:
    """The whole hard downgrade, a person replacing the binaries of the worker that the run names;
    gives what it says.
    """
    command = [
        sys.executable,
        "-m",
        "connectctl.cli",
        "--context",
        f"sandbox-{NAME}",
        "upgrade",
        "apply",
    ]
    numbers = {str(worker.port): number for number, worker in enumerate(sandbox.group.workers, 1)}
    said = []
    with subprocess.Popen(
        [*command, "--migration", way, "--yes", "--by-hand-timeout", "600", *LONG],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if told := re.search(r"Stop 127\.0\.0\.1:(\d+) and no other", line):
                replace_binaries(sandbox, numbers[told.group(1)], OLD)
    assert process.returncode == 0, "".join(said)
    return "".join(said)


@pytest.mark.versions(workers="{version}")
@pytest.mark.parametrize(("version", "way"), CASES)
def test_connect_comes_to_exactly_once_from_an_older_release_and_goes_back_to_one_without_it(
    version: str, way: str, tmp_path: Path
) -> None:
    with sandbox_of(version) as sandbox, growing(sandbox, TOPIC, tmp_path / "in.txt") as writer:
        if version == OLD:
            refused_as_too_old(sandbox, 1, 2)
        replace_binaries(sandbox, 1, LATEST)
        if version == OLD:
            refused_as_too_old(sandbox, 2)
        eventually(lambda: sorted(v or "" for v, _ in workers_now().values()) == [version, LATEST])
        if version != OLD:
            told = upgrade("plan", "--to", "preparing").err
            assert (
                f"CLUSTER005 workers: They run different versions: {version} on 1, {LATEST} on 1"
                in told
            )
        written_on(sandbox, TOPIC, writer)
        replace_binaries(sandbox, 2, LATEST)
        eventually(lambda: sorted(workers_now().values()) == [(LATEST, "disabled")] * 2)

        assert "Done, run" in upgrade("apply", "--yes", *LONG).out
        assert set(workers_now().values()) == {(LATEST, "enabled")}
        first = writer.count + 100
        written_on(sandbox, TOPIC, writer)
        # A restart of the leader moves the task's work about; from here on each line is there once
        # all the same.
        if way == TWO:
            sandbox.group.stop_worker(1)
            sandbox.group.start_worker(1)
        eventually(lambda: writer.count > first + 100)
        last = writer.count
        numbers = all_there(sandbox, TOPIC, last)
        assert [n for n in range(first, last) if numbers[n] != 1] == []

        said = downgraded(sandbox, way)
        assert "Done, run" in said
        assert set(workers_now().values()) == {(OLD, "not supported")}
        written_on(sandbox, TOPIC, writer)
        all_there(sandbox, TOPIC, writer.stop())

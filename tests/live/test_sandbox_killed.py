"""Whatever dies at whatever moment, the next ``up`` or ``down`` finds all that is left and cleans
it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox import processes, record
from connectctl.ops.sandbox.cluster import SandboxSpec, down, up
from connectctl.ops.sandbox.layout import SandboxLayout
from connectctl.ops.sandbox.record import Node, SandboxRecord
from connectctl.ops.sandbox.status import SandboxState, status
from fakes.processes import runs

pytestmark = pytest.mark.live

NAME = "killed"


@pytest.fixture
def layout() -> Iterator[SandboxLayout]:
    layout = SandboxLayout.of(NAME)
    yield layout
    down(NAME)
    assert_nothing_left(layout)


def assert_nothing_left(layout: SandboxLayout) -> None:
    assert layout.root not in processes.roots()
    assert not layout.root.exists()


def start_up(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "connectctl.cli", "sandbox", "up", "--name", NAME, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def has_node(layout: SandboxLayout, name: str) -> bool:
    known = record.load(layout)
    return known is not None and name in [node.name for node in known.nodes if node.pid is not None]


MOMENTS: dict[str, Callable[[SandboxLayout], bool]] = {
    "the directory is there": lambda layout: layout.root.exists(),
    "a first JVM runs": lambda layout: layout.root in processes.roots(),
    "the broker is written down": lambda layout: has_node(layout, "broker"),
    "the worker is written down": lambda layout: has_node(layout, "worker-1"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_down_cleans_up_after_an_up_that_was_killed_when(
    moment: str, layout: SandboxLayout
) -> None:
    with start_up("--workers", "1") as process:
        wait_until(lambda: MOMENTS[moment](layout), process)
        process.kill()
    # A child that was just being forked holds the lock until it becomes another program.
    deadline = time.monotonic() + 600
    while status(NAME).state is SandboxState.STARTING and time.monotonic() < deadline:
        time.sleep(0.01)
    assert status(NAME).state is SandboxState.LEFTOVER
    assert down(NAME)
    assert_nothing_left(layout)


def test_up_cleans_up_after_an_up_that_was_killed_and_after_a_restart_of_the_machine(
    layout: SandboxLayout,
) -> None:
    with start_up("--workers", "0") as process:
        wait_until(lambda: has_node(layout, "broker"), process)
        process.kill()
    first = {found.pid for found, mark in processes.marked() if mark == processes.mark(layout.root)}
    sandbox = up(SandboxSpec(name=NAME, workers=0))
    assert not any(map(runs, first))

    # What a restart leaves: a finished record of processes that are gone.
    processes.sweep(layout.root)
    assert status(NAME).state is SandboxState.DEGRADED
    cluster_id = sandbox.cluster_id
    again = up(SandboxSpec(name=NAME, workers=0))
    assert not again.was_running
    assert again.cluster_id != cluster_id


def test_a_process_that_only_has_the_number_of_ours_is_left_alone(layout: SandboxLayout) -> None:
    with subprocess.Popen(["sleep", "60"]) as innocent:
        layout.root.mkdir(parents=True)
        created = psutil.Process(innocent.pid).create_time()
        node = Node("broker", 1, "4.3.1", pid=innocent.pid, created=created)
        record.save(
            SandboxRecord(
                SandboxSpec(name=NAME), "id", {"PLAINTEXT": 1}, ready=True, nodes=(node,)
            ),
            layout,
        )
        assert status(NAME).processes[0].state is SandboxState.DEAD
        assert down(NAME)
        assert innocent.poll() is None
        innocent.kill()


def test_interrupting_up_cleans_up_and_exits_130(layout: SandboxLayout) -> None:
    with start_up("--workers", "0") as process:
        wait_until(lambda: has_node(layout, "broker"), process)
        process.send_signal(signal.SIGINT)
        output = process.communicate()[0]
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert_nothing_left(layout)


def test_of_two_at_once_the_second_waits_and_finds_it_up(layout: SandboxLayout) -> None:
    with (
        start_up("--workers", "0", "-o", "json") as one,
        start_up("--workers", "0", "-o", "json") as two,
    ):
        outputs = [process.communicate()[0] for process in (one, two)]
    assert [one.returncode, two.returncode] == [0, 0], outputs
    data = [json.loads(output[output.index("{") :]) for output in outputs]
    assert sorted(each["alreadyUp"] for each in data) == [False, True]
    assert data[0]["clusterId"] == data[1]["clusterId"]
    assert any("Waiting for another command" in output for output in outputs)


def test_a_process_that_dies_is_explained_and_only_logs_stay(layout: SandboxLayout) -> None:
    with pytest.raises(ConnectctlError) as failed:
        up(SandboxSpec(name=NAME, workers=0, extra_broker_properties={"num.io.threads": "0"}))
    assert "num.io.threads" in str(failed.value)
    assert f"See its log: {layout.log('broker')}." in str(failed.value)
    assert [path.name for path in layout.root.iterdir()] == ["logs"]
    assert layout.root not in processes.roots()
    assert status(NAME).state is SandboxState.LEFTOVER


def test_without_java_there_is_one_line_and_nothing_is_left(
    layout: SandboxLayout, tmp_path: Path
) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"} | {
        "PATH": str(tmp_path)
    }
    command = [sys.executable, "-m", "connectctl.cli", "sandbox", "up", "--name", NAME]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith("error: Kafka needs Java 17 or later")
    assert run.stderr.count("\n") == 1
    assert_nothing_left(layout)

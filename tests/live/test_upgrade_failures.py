"""``connectctl upgrade`` where things go wrong on real workers: it stops, says why, and goes on to
a good end.

Each test breaks one thing by the operator's own commands for workers, sees that the run stops and
that the cluster still serves, and takes the run up, or back, with commands that work: those of the
sandbox. What is left of a run after that is the next test's to go on with, so that no worker is
restarted for nothing.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest
from fakes.sandboxes import start_broker
from live.nodes import send
from live.real import connectctl, eventually, follow_next_commands, workers
from live.upgradescene import INJECTED, LONG, NAME, SOON, TURN, Scene

pytestmark = [
    pytest.mark.live,
    pytest.mark.drawn(3, matrix="rolls in which something fails"),
]


def test_a_worker_that_dies_while_nobody_looks_keeps_a_resume_from_changing_the_other(
    scene: Scene,
) -> None:
    if scene.begun() == ("resume",):
        scene.sound("resume", "--yes", *LONG)
    paused = scene.sound(*scene.begun(), "--yes", *LONG, "--pause-after", str(TURN))
    assert "[4/" in paused.err
    follow_next_commands(paused.out)
    number = next(
        n
        for n, w in enumerate(scene.sandbox.group.workers, 1)
        if f"restart 127.0.0.1:{w.port}" in paused.out
    )
    worker = scene.sandbox.group.workers[number - 1]
    address = f"127.0.0.1:{worker.port}"
    assert send(scene.sandbox, worker, signal.SIGSTOP)
    try:
        status = connectctl(
            "--context", f"sandbox-{NAME}", "upgrade", "status", "--exit-code", "-o", "json"
        )
        assert status.code == 1, status.out
        assert status.json["unhealthy"][0].startswith(f"{address} ")
    finally:
        send(scene.sandbox, worker, signal.SIGCONT)
    scene.sandbox.group.stop_worker(number, kill=True)
    files = [
        scene.sandbox.layout.properties(w.name).read_text() for w in scene.sandbox.group.workers
    ]
    refused = scene.sound("resume", "--yes", *SOON, code=7)
    assert f"waiting: {address}" in refused.err
    assert "Health gate failed" in refused.err
    assert [
        scene.sandbox.layout.properties(w.name).read_text() for w in scene.sandbox.group.workers
    ] == files
    scene.serves()
    scene.sandbox.group.start_worker(number)
    assert "Done, run" in scene.sound("resume", "--yes", *LONG).out
    scene.serves()


def test_a_connector_that_turns_failed_stops_the_roll_unless_that_is_allowed(scene: Scene) -> None:
    config = {
        "connector.class": "org.apache.kafka.connect.integration.TestableSourceConnector",
        "topic": INJECTED,
        "throughput": "10",
        "messages.per.poll": "1",
        "tasks.max": "1",
    }
    workers(scene.sandbox).create(INJECTED, config)
    eventually(lambda: workers(scene.sandbox).state(INJECTED) == ["RUNNING", "RUNNING"])
    try:
        said = scene.fails(restart=scene.tool("restart-and-break-a-connector"))
        assert f"{INJECTED} is FAILED" in said
        assert any(line.startswith(INJECTED) for line in scene.status()["unhealthy"])
        scene.serves()
        # As bad as it is: the person says that it may be.
        assert scene.resumed(said, *LONG, "--max-failures", "2").code == 0
    finally:
        workers(scene.sandbox).delete(INJECTED)


def test_another_worker_that_is_lost_meanwhile_stops_the_roll_until_it_is_back(
    scene: Scene,
) -> None:
    said = scene.fails(SOON, restart=scene.tool("restart-and-stop-another"))
    scene.serves()
    lost = {
        number: worker
        for number, worker in enumerate(scene.sandbox.group.workers, 1)
        if worker.pid is None
    }
    for number in lost:
        scene.sandbox.group.start_worker(number)
    # On a slow machine the restarted worker is not back either by then, and it is what is waited
    # for first.
    told = [rf"127\.0\.0\.1:{worker.port} is not in the group" for worker in lost.values()]
    assert re.search("|".join([*told, "is not back", "current members: none"]), said)
    scene.goes_on(said)


def test_a_lost_broker_stops_the_roll_until_it_is_back(scene: Scene) -> None:
    scene.describe(restart=scene.tool("restart-and-lose-the-broker"))
    ran = scene.broken(*scene.begun(), "--yes", *SOON)
    start_broker(scene.sandbox)
    assert "brokers" in ran.err, ran.err
    said = scene.failed(ran)
    scene.serves()
    scene.goes_on(said)


def test_a_worker_that_joins_meanwhile_in_a_mode_of_its_own_is_not_overlooked(scene: Scene) -> None:
    before = len(scene.sandbox.group.workers)
    scene.describe(restart=scene.tool("restart-and-add-another"))
    try:
        said = scene.failed(scene.broken(*scene.begun(), "--yes", *LONG))
        (stranger,) = {w["address"] for w in scene.status()["workers"] if w["mode"] == "enabled"}
        assert f"{stranger} is enabled" in said
        scene.serves()
    finally:
        for number in range(before + 1, len(scene.sandbox.group.workers) + 1):
            scene.sandbox.group.stop_worker(number)
    eventually(lambda: len([w for w in scene.status()["workers"] if w["inGroup"]]) == before)
    scene.goes_on(said)


def test_a_roll_that_is_killed_at_one_step_after_the_other_comes_to_its_end(scene: Scene) -> None:
    if scene.begun() == ("resume",):
        scene.sound("resume", "--yes", *LONG)
    wish = scene.begun()
    killed_when(*wish, says="check cluster health")  # while the property is changed
    killed_when("resume", says="set exactly.once")  # while the worker is restarted
    killed_when("resume", says="restart 127")  # while it is waited for
    killed_when("resume", says="rejoin the group")  # at the gate
    killed_when("resume", says="healthy with")  # at the second worker
    killed_when("resume", says="restart 127")
    killed_when("resume", says="healthy with")  # while modes are checked
    assert scene.status()["run"]["state"] == "open"
    assert "has not ended" in scene.sound(*wish, "--yes", code=4).err
    assert "Done, run" in scene.sound("resume", "--yes", *LONG).out
    assert {worker["mode"] for worker in scene.status()["workers"]} == {wish[-1]}
    scene.serves()


def killed_when(*args: str, says: str) -> None:
    """A connectctl of its own, killed when it has told of a step."""
    command = [
        sys.executable,
        "-m",
        "connectctl.cli",
        "--context",
        f"sandbox-{NAME}",
        "upgrade",
        *args,
        "--yes",
        *LONG,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told = []
        for line in process.stdout:
            told.append(line)
            if says in line:
                process.send_signal(signal.SIGKILL)
                break
        assert process.wait(900) == -signal.SIGKILL, "".join(told) + str(
            process.stderr and process.stderr.read()
        )

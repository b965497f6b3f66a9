"""``connectctl upgrade`` where the operator's commands for workers fail: it stops, says why, and
goes on to a good end.

Each test breaks one thing, sees that the run stops and that the cluster still serves, and takes the
run up, or back, with commands that work: those of the sandbox.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from live.real import connectctl
from live.upgradescene import LONG, NAME, SOON, Scene

pytestmark = [
    pytest.mark.live,
    pytest.mark.drawn(2, matrix="commands of a roll that fail"),
]


def test_a_restart_command_that_fails_or_hangs_stops_the_roll_before_anything_is_restarted(
    scene: Scene,
) -> None:
    pids = [worker.pid for worker in scene.sandbox.group.workers]
    said = scene.fails(restart="echo no such unit; exit 5")
    assert "exit status 5" in said
    assert "no such unit" in said
    assert "took longer than 1 s" in scene.fails(restart="sleep 600", timeout=1)
    assert [worker.pid for worker in scene.sandbox.group.workers] == pids
    scene.serves()
    scene.goes_on(said)


def test_a_worker_that_does_not_come_back_stops_the_roll_and_is_started_when_it_is_taken_up(
    scene: Scene,
) -> None:
    said = scene.fails(SOON, restart=scene.tool("only-stop"))
    assert "Timed out after 6 s waiting for" in said
    assert "is not in the group" in said
    (away,) = [w for w in scene.status()["workers"] if not w["inGroup"]]
    assert away["problem"].startswith("it is not in the group")
    scene.serves()
    # Which first waits whether it is starting by itself: nobody knows whether the command is at it.
    # A worker that a slow machine does not start within that time is on its way when the run is
    # taken up once more.
    ran = scene.resumed(said, "--gate-timeout", "20")
    if ran.code == 7:
        scene.goes_on(scene.failed(ran))


def test_a_worker_that_joins_with_the_wrong_mode_is_seen_and_taken_back(scene: Scene) -> None:
    if scene.begun() == ("resume",):
        scene.sound("resume", "--yes", *LONG)
    before = {worker["address"]: worker["mode"] for worker in scene.status()["workers"]}
    said = scene.fails(change=scene.tool("change-to-enabled"))
    assert "restarted in a different mode than planned" in said
    assert "is enabled (verified" in said
    scene.serves()
    assert "Done, run" in scene.sound("abort", "--yes", *LONG).out
    status = scene.status()
    assert not status["unfinished"]
    assert {worker["address"]: worker["mode"] for worker in status["workers"]} == before
    scene.serves()


def test_a_worker_whose_file_another_tool_puts_back_stops_the_roll_and_has_its_turn_again(
    scene: Scene,
) -> None:
    said = scene.fails(
        restart=scene.tool("restart-with-its-file-put-back"), read=scene.tool("read")
    )
    assert "restarted in a different mode than planned" in said
    assert "(configured: " in said
    run = scene.status()["run"]
    assert (run["done"] + 1, run["next"][:3]) == (
        int(re.findall(r"Step (\d+) of the run", said)[0]) - 2,
        "set",
    )
    report = connectctl("--context", f"sandbox-{NAME}", "preflight", "-o", "json").json
    assert {"WORKER015"} <= {finding["id"] for finding in report["findings"]}
    scene.serves()
    scene.goes_on(said)
    assert (
        len({worker["mode"] for worker in scene.status()["workers"]}) == 1
        or scene.status()["unfinished"]
    )


def test_a_properties_file_that_cannot_be_written_refuses_the_plan_or_stops_the_roll(
    scene: Scene,
) -> None:
    files = {
        f"127.0.0.1:{w.port}": scene.sandbox.layout.properties(w.name)
        for w in scene.sandbox.group.workers
    }
    if scene.begun() == ("resume",):
        scene.sound("resume", "--yes", *LONG)
    elsewhere = {"file": str(scene.directory)}
    each = {worker: {"file": str(file)} for worker, file in files.items()}
    section: dict[str, Any] = {
        "driver": "properties-file",
        "restart": scene.tool("restart"),
        "each": each,
    }
    scene.describe(**{**section, "each": each | {next(reversed(each)): elsewhere}})
    refused = scene.broken("apply", *scene.begun()[1:], "--yes", code=4)
    assert "is a directory" in refused.err.lower()
    assert not scene.status()["unfinished"]

    said = scene.fails(**{**section, "restart": scene.tool("restart-and-move-files")})
    assert "is a directory" in said
    for file in files.values():
        if file.is_dir():
            file.rmdir()
            file.with_suffix(".moved").rename(file)
    scene.serves()
    scene.goes_on(said)

"""``connectctl upgrade`` where things go wrong on real workers: it stops, says why, and goes on to a good end.

Each test breaks one thing by the operator's own commands for workers, sees that the run stops and that the cluster still
serves, and takes the run up, or back, with commands that work: those of the sandbox. What is left of a run after that
is the next test's to go on with, so that no worker is restarted for nothing.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from fakes.sandboxes import start_broker
from live.filesource import Writer, all_there, growing, written_on
from live.real import Ran, connectctl, eventually, follow_next_commands, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NAME = "failing"
TOPIC = "failing-lines"
INJECTED = "failing-injected"
SOON = ("--gate-timeout", "6")
LONG = ("--gate-timeout", "600")
TURN = 5
"""The last step of the first worker's turn; the second's is the fourth after it, and then modes are checked."""

TOOL = """
from fakes.sandboxes import add_worker, kill_broker, properties_file
from connectctl.ops.sandbox.driver import SandboxWorkers
from connectctl.ops.sandbox.cluster import find
import httpx

what, worker = sys.argv[1:3]
sandbox, driver = find("failing"), SandboxWorkers("failing")
workers = sandbox.group.workers
number = sandbox.group.number_of("http://" + worker)
other = next(n for n, w in enumerate(workers, 1) if n != number and w.pid is not None)
match what:
    case "change":
        driver.change(worker, *sys.argv[3:])
    case "change-to-enabled":
        driver.change(worker, sys.argv[3], "enabled")
    case "restart":
        driver.restart(worker)
    case "only-stop":
        sandbox.group.stop_worker(number)
    case "read":
        print(properties_file(sandbox, number).read_text())
    case "restart-with-its-file-put-back":
        file = properties_file(sandbox, number)
        modes = {"=preparing": "=disabled", "=disabled": "=preparing"}
        lines = file.read_text().splitlines()
        kept = [each for each in lines if not each.startswith("exactly.once.source.support")]
        (line,) = [each for each in lines if each.startswith("exactly.once.source.support")]
        mode = line[line.index("="):]
        file.write_text("\\n".join([*kept, line.replace(mode, modes[mode])]) + "\\n")
        driver.restart(worker)
    case "restart-and-stop-another":
        driver.restart(worker)
        sandbox.group.stop_worker(other)
    case "restart-and-add-another":
        if len(workers) == 2:
            add_worker(sandbox.group, support="enabled")
        driver.restart(worker)
    case "restart-and-lose-the-broker":
        driver.restart(worker)
        kill_broker(sandbox)
    case "restart-and-move-files":
        driver.restart(worker)
        file = properties_file(sandbox, other)
        file.rename(file.with_suffix(".moved"))
        file.mkdir()
    case "restart-and-break-a-connector":
        url = f"http://127.0.0.1:{workers[other - 1].port}/connectors/failing-injected/config"
        broken = {**httpx.get(url).json(), "connector.start.inject.error": "true"}
        httpx.put(url, json=broken).raise_for_status()
        driver.restart(worker)
print(what, worker)
"""


@dataclass(frozen=True)
class Scene:
    """The sandbox, and connectctl with commands for its workers that break something, or with the sandbox's own."""

    sandbox: Sandbox
    directory: Path
    writer: Writer

    def tool(self, what: str) -> str:
        """The shell line of a command that works, or breaks something."""
        more = " {property} {value}" if what.startswith("change") else ""
        return f"{sys.executable} {self.directory / 'tool.py'} {what} {{worker}}{more}"

    def describe(self, **section: Any) -> None:
        """From now on the broken context's section ``workers`` says this, besides what works."""
        entry = yaml.safe_load(self.sandbox.context_path.read_text())["contexts"][f"sandbox-{NAME}"]
        sound = {"driver": "command", "change": self.tool("change"), "restart": self.tool("restart")}
        entry["workers"] = section if "driver" in section else sound | section
        (self.directory / "config.yaml").write_text(yaml.safe_dump({"contexts": {"broken": entry}}))

    def broken(self, *args: str, code: int = 7) -> Ran:
        """``connectctl upgrade`` with what ``describe`` wrote."""
        ran = connectctl("--config", str(self.directory / "config.yaml"), "--context", "broken", "upgrade", *args)
        assert ran.code == code, ran.out + ran.err
        return ran

    def sound(self, *args: str, code: int = 0) -> Ran:
        """``connectctl upgrade`` with the sandbox's own way to change workers."""
        ran = connectctl("--context", f"sandbox-{NAME}", "upgrade", *args)
        assert ran.code == code, ran.out + ran.err
        return ran

    def status(self) -> Any:
        """``upgrade status``, once the group tells who its workers are."""

        def look() -> Any:
            ran = connectctl("--context", f"sandbox-{NAME}", "upgrade", "status", "-o", "json")
            return ran.json if ran.code == 0 else None

        return eventually(look)

    def begun(self) -> tuple[str, ...]:
        """The command that goes on with what an earlier test left, or begins a roll to a mode that is one roll away."""
        status = self.status()
        if status["unfinished"]:
            return ("resume",)
        modes = {worker["mode"] for worker in status["workers"]}
        return ("apply", "--to", "disabled" if modes == {"preparing"} else "preparing")

    def fails(self, patience: tuple[str, ...] = LONG, **section: Any) -> str:
        """A roll with these commands stops with exit code 7; gives what it says, which is what ``status`` says."""
        self.describe(**section)
        return self.failed(self.broken(*self.begun(), "--yes", *patience))

    def failed(self, ran: Ran) -> str:
        """The failure of a run that stopped, told at once and by ``status``, with how to go on or back."""
        status = self.status()
        run = status["run"]
        assert status["unfinished"]
        assert f"upgrade resume {run['id']}" in ran.err
        assert f"upgrade abort {run['id']}" in status["nextStep"]
        assert run["failure"].split(":")[0] in ran.err
        follow_next_commands(ran.err)
        follow_next_commands(status["nextStep"])
        return f"{ran.err} | {run['failure']}"

    def goes_on(self, said: str) -> None:
        """The run is taken up where it stopped; it pauses after the first worker's turn, and ends after the second's."""
        ran = self.resumed(said, *LONG)
        assert ran.code == 0, ran.out + ran.err

    def resumed(self, said: str, *args: str) -> Ran:
        """The run, taken up after the failure that was told; where it goes on, the cluster serves."""
        step = int(re.findall(r"Step (\d+) of the run failed", said)[0])
        pause = ("--pause-after", str(TURN)) if step <= TURN else ()
        ran = connectctl("--context", f"sandbox-{NAME}", "upgrade", "resume", "--yes", *pause, *args)
        assert ran.code in (0, 7), ran.out + ran.err
        if ran.code == 0:
            assert ("Paused" if pause else "Done, run") in ran.out
            self.serves()
        return ran

    def serves(self) -> None:
        """What is written into the source's file now reaches the topic."""
        written_on(self.sandbox, TOPIC, self.writer)


@pytest.fixture(scope="module")
def scene(state_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Two workers, disabled, and a source that is written to throughout."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    directory = tmp_path_factory.mktemp(NAME)
    (directory / "tool.py").write_text(f"import sys\nsys.path.append({str(Path(__file__).parents[1])!r})\n{TOOL}")
    sandbox = up(SandboxSpec(name=NAME, workers=2))
    try:
        with growing(sandbox, TOPIC, directory / "in.txt") as writer:
            yield Scene(sandbox, directory, writer)
            all_there(sandbox, TOPIC, writer.stop())
    finally:
        down(NAME)


def test_a_restart_command_that_fails_or_hangs_stops_the_roll_before_anything_is_restarted(scene: Scene) -> None:
    pids = [worker.pid for worker in scene.sandbox.group.workers]
    said = scene.fails(restart="echo no such unit; exit 5")
    assert "exit status 5" in said
    assert "no such unit" in said
    assert "took longer than 1 s" in scene.fails(restart="sleep 600", timeout=1)
    assert [worker.pid for worker in scene.sandbox.group.workers] == pids
    scene.serves()
    scene.goes_on(said)


def test_a_worker_that_does_not_come_back_stops_the_roll_and_is_started_when_it_is_taken_up(scene: Scene) -> None:
    said = scene.fails(SOON, restart=scene.tool("only-stop"))
    assert "Timed out after 6 s waiting for" in said
    assert "is not in the group" in said
    (away,) = [w for w in scene.status()["workers"] if not w["inGroup"]]
    assert away["problem"].startswith("it is not in the group")
    scene.serves()
    # Which first waits whether it is starting by itself: nobody knows whether the command is at it. A worker that a slow
    # machine does not start within that time is on its way when the run is taken up once more.
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


def test_a_worker_whose_file_another_tool_puts_back_stops_the_roll_and_has_its_turn_again(scene: Scene) -> None:
    said = scene.fails(restart=scene.tool("restart-with-its-file-put-back"), read=scene.tool("read"))
    assert "restarted in a different mode than planned" in said
    assert "(configured: " in said
    run = scene.status()["run"]
    assert (run["done"] + 1, run["next"][:3]) == (int(re.findall(r"Step (\d+) of the run", said)[0]) - 2, "set")
    report = connectctl("--context", f"sandbox-{NAME}", "preflight", "-o", "json").json
    assert {"WORKER015"} <= {finding["id"] for finding in report["findings"]}
    scene.serves()
    scene.goes_on(said)
    assert len({worker["mode"] for worker in scene.status()["workers"]}) == 1 or scene.status()["unfinished"]


def test_a_worker_that_dies_while_nobody_looks_keeps_a_resume_from_changing_the_other(scene: Scene) -> None:
    if scene.begun() == ("resume",):
        scene.sound("resume", "--yes", *LONG)
    paused = scene.sound(*scene.begun(), "--yes", *LONG, "--pause-after", str(TURN))
    assert "[4/" in paused.err
    follow_next_commands(paused.out)
    number = next(
        n for n, w in enumerate(scene.sandbox.group.workers, 1) if f"restart 127.0.0.1:{w.port}" in paused.out
    )
    worker = scene.sandbox.group.workers[number - 1]
    address = f"127.0.0.1:{worker.port}"
    os.kill(worker.pid or 0, signal.SIGSTOP)
    try:
        status = connectctl("--context", f"sandbox-{NAME}", "upgrade", "status", "--exit-code", "-o", "json")
        assert status.code == 1
        assert status.json["unhealthy"][0].startswith(f"{address} ")
    finally:
        os.kill(worker.pid or 0, signal.SIGCONT)
    scene.sandbox.group.stop_worker(number, kill=True)
    files = [scene.sandbox.layout.properties(w.name).read_text() for w in scene.sandbox.group.workers]
    refused = scene.sound("resume", "--yes", *SOON, code=7)
    assert f"waiting: {address}" in refused.err
    assert "Health gate failed" in refused.err
    assert [scene.sandbox.layout.properties(w.name).read_text() for w in scene.sandbox.group.workers] == files
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


def test_a_properties_file_that_cannot_be_written_refuses_the_plan_or_stops_the_roll(scene: Scene) -> None:
    files = {f"127.0.0.1:{w.port}": scene.sandbox.layout.properties(w.name) for w in scene.sandbox.group.workers}
    if scene.begun() == ("resume",):
        scene.sound("resume", "--yes", *LONG)
    elsewhere = {"file": str(scene.directory)}
    each = {worker: {"file": str(file)} for worker, file in files.items()}
    section: dict[str, Any] = {"driver": "properties-file", "restart": scene.tool("restart"), "each": each}
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


def test_another_worker_that_is_lost_meanwhile_stops_the_roll_until_it_is_back(scene: Scene) -> None:
    said = scene.fails(SOON, restart=scene.tool("restart-and-stop-another"))
    scene.serves()
    lost = {number: worker for number, worker in enumerate(scene.sandbox.group.workers, 1) if worker.pid is None}
    for number in lost:
        scene.sandbox.group.start_worker(number)
    # On a slow machine the restarted worker is not back either by then, and it is what is waited for first.
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
    command = [sys.executable, "-m", "connectctl.cli", "--context", f"sandbox-{NAME}", "upgrade", *args, "--yes", *LONG]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = []
        for line in process.stdout:
            told.append(line)
            if says in line:
                process.send_signal(signal.SIGKILL)
                break
        assert process.wait(900) == -signal.SIGKILL, "".join(told) + str(process.stderr and process.stderr.read())

"""The scene of ``connectctl upgrade`` where things go wrong: real workers, and commands for them
that break one thing.

What is left of a run after a test is the next test's to go on with, so that no worker is restarted
for nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import yaml
from connectctl.ops.connect.transient_failure import transient_cause
from live.filesource import Writer, all_there, growing, written_on
from live.real import Ran, connectctl, eventually, follow_next_commands, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

NAME = "failing"
TOPIC = "failing-lines"
INJECTED = "failing-injected"
SOON = ("--gate-timeout", "6")
LONG = ("--gate-timeout", "600")
TURN = 5
"""The last step of the first worker's turn; the second's is the fourth after it, and then modes are
checked.
"""

TOOL = """
from fakes.sandboxes import add_worker, kill_broker, properties_file
from connectctl.ops.sandbox.driver import SandboxWorkers
from connectctl.ops.sandbox.cluster import find

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
        import httpx  # the other commands start without it

        url = f"http://127.0.0.1:{workers[other - 1].port}/connectors/failing-injected/config"
        broken = {**httpx.get(url).json(), "connector.start.inject.error": "true"}
        httpx.put(url, json=broken).raise_for_status()
        driver.restart(worker)
print(what, worker)
"""


@dataclass(frozen=True)
class Scene:
    """The sandbox, and connectctl with commands for its workers that break something, or with the
    sandbox's own.
    """

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
        sound = {
            "driver": "command",
            "change": self.tool("change"),
            "restart": self.tool("restart"),
        }
        entry["workers"] = section if "driver" in section else sound | section
        (self.directory / "config.yaml").write_text(yaml.safe_dump({"contexts": {"broken": entry}}))

    def broken(self, *args: str, code: int = 7) -> Ran:
        """``connectctl upgrade`` with what ``describe`` wrote."""
        ran = connectctl(
            "--config", str(self.directory / "config.yaml"), "--context", "broken", "upgrade", *args
        )
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
        """The command that goes on with what an earlier test left, or begins a roll to a mode that
        is one roll away.
        """
        status = self.status()
        if status["unfinished"]:
            return ("resume",)
        modes = {worker["mode"] for worker in status["workers"]}
        return ("apply", "--to", "disabled" if modes == {"preparing"} else "preparing")

    def fails(self, patience: tuple[str, ...] = LONG, **section: Any) -> str:
        """A roll with these commands stops with exit code 7; gives what it says, which is what
        ``status`` says.
        """
        self.describe(**section)
        return self.failed(self.broken(*self.begun(), "--yes", *patience))

    def failed(self, ran: Ran) -> str:
        """The failure of a run that stopped, told at once and by ``status``, with how to go on or
        back.
        """
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
        """The run is taken up where it stopped; it pauses after the first worker's turn, and ends
        after the second's.
        """
        ran = self.resumed(said, *LONG)
        assert ran.code == 0, ran.out + ran.err

    def resumed(self, said: str, *args: str) -> Ran:
        """The run, taken up after the failure that was told; where it goes on, the cluster
        serves.
        """
        step = int(re.findall(r"Step (\d+) of the run failed", said)[0])
        pause = ("--pause-after", str(TURN)) if step <= TURN else ()
        ran = connectctl(
            "--context", f"sandbox-{NAME}", "upgrade", "resume", "--yes", *pause, *args
        )
        assert ran.code in (0, 7), ran.out + ran.err
        if ran.code == 0:
            assert ("Paused" if pause else "Done, run") in ran.out
            self.serves()
        return ran

    def serves(self) -> None:
        """What is written into the source's file now reaches the topic.

        Workers of several modes fence each other's tasks, and a task that was fenced stays FAILED:
        it is restarted, as ``doctor --heal`` does.
        """
        written_on(self.sandbox, TOPIC, self.writer, self.restart_fenced)

    def restart_fenced(self) -> None:
        """Restart the source's tasks that failed of a cause that passes, if a worker answers."""
        rest = workers(self.sandbox)
        with suppress(httpx.TransportError):
            status = rest.call("GET", f"/connectors/{TOPIC}/status").json()
            for task in status.get("tasks", []):
                if task["state"] == "FAILED" and transient_cause(task.get("trace")):
                    rest.call("POST", f"/connectors/{TOPIC}/tasks/{task['id']}/restart")


@contextmanager
def upgrade_scene(directory: Path) -> Iterator[Scene]:
    """Two workers, disabled, and a source that is written to throughout."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    (directory / "tool.py").write_text(
        f"import sys\nsys.path.append({str(Path(__file__).parents[1])!r})\n{TOOL}"
    )
    sandbox = up(SandboxSpec(name=NAME, workers=2))
    try:
        with growing(sandbox, TOPIC, directory / "in.txt") as writer:
            scene = Scene(sandbox, directory, writer)
            yield scene
            all_there(sandbox, TOPIC, writer.stop(), scene.restart_fenced)
    finally:
        down(NAME)

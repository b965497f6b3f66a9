"""Every command before workers whose REST server has each kind of fault: the fault is named, and
nothing is called fine.

``pytest tests/cli/test_rest_faults.py -s`` prints the table, a line for each command.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.clients import connection_errors
from connectctl.ops.clients.rest import connect
from fakes.restfaults import FAULTS, NO_TLS, OTHERS, Misbehaving, misbehaving
from fakes.scene import OFFSETS, ON_CONNECTORS, ON_TASKS, Command, Scene, made, without_waits, words
from fakes.session import FakeSession
from typer.testing import Result

PATIENCE = 20.0
"""Seconds for a server that answers, on a machine that does much else."""
SILENT = {"time-out": 0.1, "slow": 0.1}
"""Seconds for one that does not."""
RUNNING = {"state": "RUNNING", "trace": None, "worker_id": "one:8083", "generation": 1}


class Hasty(connect.Connect):
    """A client of workers that waits ``timeout`` seconds, whatever a command grants them."""

    def _ask(
        self, method: str, path: str, body: Any, url: str | None, timeout: float | None
    ) -> Any:
        return super()._ask(method, path, body, url, self.timeout)


class RestSession(FakeSession):
    """A session whose brokers are in memory, and whose workers are asked over HTTP."""

    def connect(self, urls: tuple[str, ...]) -> Any:
        return Hasty(urls, auth={}, tls={}, timeout=self.timeout)


def reads(*words: str) -> Command:
    return lambda scene: scene.run(*(word.format(directory=scene.directory) for word in words))


NEEDING = {
    "connectors topics": reads("connectors", "topics", "plain"),
    "connectors diff": reads("connectors", "diff", "plain", "-f", "{directory}/plain.json"),
    "plugins list": reads("plugins", "list"),
    "plugins show": reads("plugins", "show", "x.y.Source"),
    "loggers get": reads("loggers", "get"),
    **{f"{name} --yes": command for name, command in ON_CONNECTORS.items()},
    "loggers set --yes": words("loggers", "set", "root", "DEBUG"),
    "offsets set --stop": words("offsets", "set", "plain", "-f", "-", "--stop", stdin=OFFSETS),
    "offsets reset --stop": words("offsets", "reset", "plain", "--stop"),
    "offsets merge --stop": words(
        "offsets", "merge", "plain", "--into", "dedicated", "--topic", "new", "--stop"
    ),
    "offsets copy --stop": words("offsets", "copy", "moved", "plain", "--stop"),
    "offsets restore --stop": words(
        "offsets", "restore", "plain", "-f", "{directory}/backup.jsonl", "--stop"
    ),
}
"""Commands that workers carry out or answer."""
TELLING = {
    "cluster show": reads("cluster", "show"),
    "connectors list": reads("connectors", "list"),
    "connectors show": reads("connectors", "show", "plain"),
    "tasks check": reads("tasks", "check"),
    "validate": reads("validate", "-f", "{directory}/plain.json"),
    "preflight": reads("preflight"),
    "doctor": reads("doctor"),
    "upgrade list": reads("upgrade", "list"),
    "upgrade plan": reads("upgrade", "plan", "--to", "disabled"),
    "upgrade status": reads("upgrade", "status"),
}
"""Commands that tell what the topics tell, and that workers were not heard."""
WITHOUT = {
    "connectors history": reads("connectors", "history", "plain"),
    "offsets show": reads("offsets", "show"),
    "offsets diff": reads("offsets", "diff"),
    "offsets backup": reads("offsets", "backup"),
    "transactions list": reads("transactions", "list"),
    "transactions hanging": reads("transactions", "hanging"),
    "transactions lag": reads("transactions", "lag", "--topic", "t"),
    "run status": reads("run", "status"),
    **{f"{name} --yes": command for name, command in ON_TASKS.items()},
}
"""Commands whose answer is in Kafka: workers add nothing to it, and tasks that run refuse a
change.
"""
COMMANDS = NEEDING | TELLING | WITHOUT


CODES = {**dict.fromkeys(("time-out", "slow", "409"), 6), "500": 1, OTHERS: 4}
"""The exit code of a command that workers have to carry out; 5 for every other fault."""
CAUSES = {
    "refused": "Connection refused",
    "reset": "reset by peer",
    "time-out": "did not answer",
    "slow": "did not answer",
    "401": "Authentication failed",
    "403": "does not allow",
    "404": "answers 404|does not serve loggers|it is starting",
    "409": "busy with a rebalance|conflicting operation",
    "500": "answers 500|NullPointerException",
    "503": "answers 503|Service Unavailable",
    "HTML": "is not JSON",
    "truncated": "is not JSON",
    "cut off": "closed connection",
    "wrong type": "not that of a Connect worker",
    "empty": "it is empty|not that of a Connect worker",
    "redirect": "is redirected|it leads to login.example.com",
    NO_TLS: "does not use TLS on this port",
    OTHERS: "not proven to be a worker of the group|agree",
}
DIFFERENT = {
    "404": ("of connectors", "of loggers, which another listener may serve"),
    "wrong type": ("no object", "no list"),
}
"""Faults that are told in different words, and of what."""
NOT_WITHOUT_LOGIN = ("401", "403", NO_TLS)
"""Faults of the person's own settings: commands that could answer from topics ask to mend them
first.
"""
ANY_WORKER = ("plugins list", "plugins show", "validate")
"""Commands that a person may have answered by a worker of any group."""
ALL_CLEAR = ("Nothing found", "No connector", "converged", "there are no connectors")


@dataclass(frozen=True)
class Cell:
    """What a command did: its exit code, its lines of error, and the reason why that is wrong, if
    it is.
    """

    result: Result
    wrong: str = ""

    def __str__(self) -> str:
        return f"{self.result.exit_code}{' WRONG' if self.wrong else ''}"


def judged(name: str, fault: str, url: str, result: Result) -> str:
    """Return what is wrong with what a command made of a fault; an empty text if nothing is."""
    said = result.stdout + result.stderr
    if "Traceback" in said or result.exit_code == 70:
        return "a bug"
    if name in WITHOUT:
        return (
            ""
            if result.exit_code in (0, 1, 4) or fault in NOT_WITHOUT_LOGIN or fault == OTHERS
            else "it asks workers"
        )
    if fault == OTHERS and name in ANY_WORKER:
        return ""
    if not re.search(CAUSES[fault], said):
        return f"the cause is not named ({CAUSES[fault]})"
    if url.partition("://")[2] not in said:
        return "the address is not named"
    if clear := next((each for each in ALL_CLEAR if each in said), None):
        return f"an all-clear: {clear}"
    if name in NEEDING:
        lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        if result.exit_code != CODES.get(fault, 5) or len(lines) != 1:
            return f"exit {result.exit_code}, with {len(lines)} lines of error"
    return ""


def texts(cells: dict[str, Cell], url: str) -> set[str]:
    """The lines of error of commands that workers have to carry out, without what each of them
    asked for.
    """
    refused = (cells[name].result for name in NEEDING if cells[name].result.exit_code)
    said = (result.stderr.strip().splitlines()[-1] for result in refused)
    return {re.sub(rf"(GET|PUT|POST) ({re.escape(url)})?/\S*", "REQUEST", line) for line in said}


def prepared(directory: Path, fault: str) -> Scene:
    """A cluster on which everything is fine but the workers' REST."""
    scene = made(directory)
    for name in ("plain", "moved"):
        scene.world.kafka.append("cfg", f"task-{name}-0".encode(), b'{"properties":{"a":"b"}}')
        scene.world.kafka.append("cfg", f"commit-{name}".encode(), b'{"tasks":1}')
        for key in (f"status-connector-{name}", f"status-task-{name}-0"):
            scene.world.kafka.append("sta", key.encode(), json.dumps(RUNNING).encode())
    scene.world.put("own", '["moved",{"table":"b"}]', '{"lsn":4}')
    scene.world.kafka.records["t"] = []
    scene.session = RestSession
    scene.told["timeout"] = SILENT.get(fault, PATIENCE)
    return scene


def aim(scene: Scene, fault: str, server: Misbehaving) -> Any:
    """Let the group advertise ``server``; or, where it is of others, let a person give it."""
    if fault == OTHERS:
        scene.told["rest"] = [server.url]
    else:
        group = scene.world.kafka.groups["connect"]
        (member,) = group.members
        assert member.assignment is not None
        led = replace(member.assignment, leader_url=server.url)
        members = (replace(member, url=server.url, assignment=led),)
        scene.world.kafka.groups["connect"] = replace(group, members=members)
    return scene.state()


@pytest.mark.parametrize("fault", FAULTS)
def test_no_command_makes_anything_else_of_a_fault_of_rest(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waits(tmp_path, monkeypatch)
    # ask once, and wait for no second answer
    monkeypatch.setattr(connect, "FIRST_PAUSE", 2 * PATIENCE)
    # no server here is about to end
    monkeypatch.setattr(connection_errors, "DYING", 0.01)
    scene = prepared(tmp_path, fault)
    found: dict[str, Cell] = {}
    with misbehaving(fault) as server:
        before = aim(scene, fault, server)
        for name, command in COMMANDS.items():
            result = command(scene)
            wrong = judged(name, fault, server.url, result)
            wrong = wrong or ("it changed something" if scene.state() != before else "")
            found[name] = Cell(result, wrong)
            if wrong:
                print(
                    f"--- {name}: {wrong}: exit {result.exit_code}\n{result.stdout}{result.stderr}"
                )
    print(f"\n{fault}:", *(f"\n  {name:26} {cell}" for name, cell in found.items()), sep="")
    assert {name: cell.wrong for name, cell in found.items() if cell.wrong} == {}
    assert len(texts(found, server.url)) == len(DIFFERENT.get(fault, ("one",))), texts(
        found, server.url
    )
    assert json.loads(scene.run("runs", "list", "-o", "json").stdout)["runs"] == []

"""Every changing command on real workers, where the REST server in use is another group's or none
answers: nothing changes.

``pytest tests/live/test_blind_changes.py -m 'slow or not slow' -s`` runs every cell, and prints the
table.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fakes.sandboxes import extra_group
from live.offsetchanges import file_source, live
from live.real import Ran, connectctl, connector, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("without_spark")]
NAME = "blind-lines"
COMMANDS: dict[str, tuple[str, ...]] = {
    "connectors stop": (NAME,),
    "connectors pause": (NAME,),
    "connectors resume": (NAME,),
    "connectors restart": (NAME,),
    "connectors cure": (NAME,),
    "connectors create": ("-f", "{directory}/new.json"),
    "connectors apply": ("-f", "{directory}/same.json"),
    "connectors patch": (NAME, "batch.size=7"),
    "connectors rollback": (NAME, "--to", "{revision}"),
    "connectors delete": (NAME,),
    "connectors topics": (NAME, "--reset"),
    "loggers set": ("org.eclipse.jetty", "TRACE"),
    "offsets set": (NAME, "-f", "{directory}/offsets.json"),
    "offsets set --stop": (NAME, "-f", "{directory}/offsets.json", "--stop"),
    "offsets reset": (NAME,),
    "offsets merge": (NAME, "--into", "dedicated", "--topic", "blind-own", "--stop"),
    "offsets restore": (NAME, "-f", "{directory}/backup.jsonl"),
    "fence": (NAME,),
    "upgrade apply": ("--to", "disabled", "--by-hand-timeout", "1"),
    "run job": ("{directory}/job.yaml", "--take-over"),
}
OFTEN = ("connectors patch", "offsets set --stop", "run job")
"""The commands of which a cell runs by default."""


@pytest.fixture(scope="module")
def place(cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files that commands are given, beside a source that runs and has committed offsets."""
    directory = tmp_path_factory.mktemp("blind")
    lines = directory / "lines.txt"
    lines.write_text("".join(f"line {n}\n" for n in range(300)))
    config = file_source(lines, f"{NAME}-topic")
    with connector(cluster, NAME, config):
        eventually(lambda: live(cluster, cluster.topics["offsets"], NAME))
        backup = ctl(cluster, "offsets", "backup", NAME)
        assert backup.code == 0, backup.err
        (directory / "backup.jsonl").write_text(backup.out)
        given = [{"partition": {"filename": str(lines)}, "offset": {"position": 0}}]
        job = {
            "name": NAME,
            "config": config,
            "spark": {"master": "local[1]"},
            "until": {"idle": "1s"},
        }
        for name, content in (
            ("new.json", config | {"name": f"{NAME}-new"}),
            ("same.json", config | {"name": NAME, "batch.size": "9"}),
            ("offsets.json", {"offsets": given}),
            ("job.yaml", job),
        ):
            (directory / name).write_text(json.dumps(content))
        yield directory


@pytest.fixture(scope="module")
def others(cluster: Sandbox) -> dict[str, str]:
    """The addresses that are given with ``--rest``: a worker of another group, and one at which
    nobody listens.
    """
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{bound.getsockname()[1]}"
    return {
        "another group": extra_group(cluster, "blind", support="enabled").rest_urls[0],
        "dead": nobody,
    }


def ctl(cluster: Sandbox, *args: str) -> Ran:
    return connectctl("--context", f"sandbox-{cluster.spec.name}", "--timeout", "10", *args)


def state(cluster: Sandbox, rest: str) -> Any:
    """All that a command may change: configurations, offsets, levels of loggers, and connectors of
    ``rest``.

    Loggers begin to be listed when their class is loaded: only levels that somebody changed count.
    """
    own = workers(cluster)
    configs = {
        name: each["info"]["config"]
        for name, each in own.call("GET", "/connectors?expand=info").json().items()
    }
    loggers = own.call("GET", "/admin/loggers").json()
    levels = {name: each for name, each in loggers.items() if each["last_modified"] is not None}
    offsets = live(cluster, cluster.topics["offsets"], NAME)
    return (
        configs.get(NAME),
        f"{NAME}-new" in configs,
        offsets,
        levels,
        own.state(NAME),
        _listed(rest),
    )


def _listed(rest: str) -> Any:
    try:
        return sorted(httpx.get(f"{rest}/connectors", timeout=120).json())
    except httpx.TransportError:
        return None


@pytest.mark.parametrize("situation", ["another group", "dead"])
@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=() if each in OFTEN else pytest.mark.slow) for each in COMMANDS],
)
def test_a_command_changes_nothing_on_a_blind_view(
    cluster: Sandbox, place: Path, others: dict[str, str], command: str, situation: str
) -> None:
    rest = others[situation]
    before = state(cluster, rest)
    history = ctl(cluster, "connectors", "history", NAME, "-o", "json").json["revisions"]
    words = [
        word.format(directory=place, revision=history[0]["revision"]) for word in COMMANDS[command]
    ]
    verb = command.removesuffix(" --stop").removesuffix(" job").split()
    ran = ctl(cluster, "--rest", rest, *verb, *words, "--yes")
    print(
        f"{command:20} {situation:15} exit {ran.code}: "
        f"{ran.err.strip().splitlines()[-1][:160] if ran.err else ''}"
    )
    assert ran.code in (2, 4, 5, 6), ran
    assert state(cluster, rest) == before

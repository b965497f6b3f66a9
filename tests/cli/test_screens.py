"""Screens at 80, 120 and 200 columns, as they were looked at and found good (``screens/``).

``CONNECTCTL_TEST_SCREENS=write`` writes them again: read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.testing
from connectctl.cli.output.printed_commands import words_of
from connectctl.cli.output.tables import cells
from connectctl.ops.kafka.transactions import Transaction
from fakes.adminworkers import AdminWorkers
from fakes.adminworkers import run as admin
from fakes.clusters import Clusters
from fakes.kafkareads import FakeKafka, FakeLeader
from fakes.runner import invoke
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import Result

WIDTHS = (80, 120, 200)
STORED = Path(__file__).parent / "screens"
CHANGING = {
    r"\d{8}-\d{6}-[0-9a-f]{4}": "20260101-120000-ab12",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?": "2026-01-01T12:00:00Z",
    r"\d{5}d\d\dh": "20000d00h",
}
"""Run ids and times, by what stands for each."""


def plain(*args: str) -> Callable[[Clusters], Result]:
    return lambda at: at.plain.run(*args)


def _runs(at: Clusters) -> Result:
    assert at.plain.change("connectors stop", "--yes").exit_code == 0
    return at.plain.run("runs", "list")


LONG = "the-source-of-orders-of-the-northern-region-that-a-template-named-for-the-billing-team-in-production-since-2026-v2"
"""A name of 115 characters, as generated ones are."""


def long(*args: str) -> Callable[[Clusters], Result]:
    """Run a command on a cluster whose connector, class and transactional id have long names."""

    def run(at: Clusters) -> Result:
        world = at.plain
        config = {"connector.class": f"org.example.{LONG.title().replace('-', '')}", "name": LONG}
        add(world.workers, world.kafka, config)
        id_ = f"connect-cluster-{LONG}-0"
        world.coordinators.known[id_] = Transaction(id_, "Ongoing", 9, 1, 60_000, 1, ())
        return world.run(*args)

    return run


def long_offsets(*args: str) -> Callable[[Clusters], Result]:
    """Run a command on a cluster whose connector has a long name, and its own topic, too."""

    def run(at: Clusters) -> Result:
        world, topic = at.offsets, f"{LONG}-offsets"
        world.kafka.records[topic] = []
        world.kafka.partitions[topic] = 1
        config = {"connector.class": "x.y.Source", "name": LONG, "offsets.storage.topic": topic}
        add(world.workers, world.kafka, config)
        world.put("off", f'["{LONG}",{{"table":"{LONG}-table"}}]', '{"lsn":4}')
        return world.run(*args)

    return run


def add(workers: FakeWorkers, kafka: FakeKafka, config: dict[str, str]) -> None:
    """Add a connector with one task, which runs."""
    name = config["name"]
    workers.connectors[name] = FakeConnector(config=config)
    leader = FakeLeader(kafka)
    leader.configure(name, config)
    leader.command(name, "resume")


def _long_runs(at: Clusters) -> Result:
    assert long("connectors", "stop", LONG, "--yes")(at).exit_code == 0
    return at.plain.run("runs", "list")


SCREENS: dict[str, Callable[[Clusters], Result]] = {
    "cluster-show": plain("cluster", "show"),
    "connectors-list": plain("connectors", "list"),
    "connectors-show": plain("connectors", "show", "orders"),
    "connectors-stop": plain("connectors", "stop", "orders", "--dry-run"),
    "offsets-show": lambda at: at.offsets.run("offsets", "show"),
    "offsets-merge": lambda at: at.offsets.run(
        "offsets", "merge", "moved", "--into", "dedicated", "--stop", "--dry-run"
    ),
    "plugins-list": lambda at: admin(AdminWorkers(), "plugins", "list"),
    "preflight": plain("preflight"),
    "doctor": plain("doctor"),
    "tasks-check": plain("tasks", "check", "orders"),
    "transactions-list": plain("transactions", "list"),
    "upgrade-plan": lambda at: at.rolling.run("upgrade", "plan"),
    "runs-list": _runs,
    "long-cluster-show": long("cluster", "show"),
    "long-connectors-list": long("connectors", "list"),
    "long-connectors-show": long("connectors", "show", LONG),
    "long-connectors-apply": long("connectors", "patch", f"{LONG[:9]}*", "batch.size=5", "--yes"),
    "long-offsets-show": long_offsets("offsets", "show"),
    "long-offsets-reset": long_offsets("offsets", "reset", LONG, "--stop", "--dry-run"),
    "long-transactions-list": long("transactions", "list"),
    "long-runs-list": _long_runs,
    "long-unknown-connector": long("connectors", "show", f"{LONG}x"),
    "unknown-context": lambda at: invoke(
        ["--config", at.file("c.yaml", "contexts: {a: {}}"), "--context", "b", "cluster", "show"]
    ),
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_it_was_found_good_and_breaks_no_word(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typer.testing._NamedTextIOWrapper, "isatty", lambda self: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    screens = []
    for width in WIDTHS:
        directory = tmp_path / str(width)
        directory.mkdir()
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("CONNECTCTL_JOURNAL", str(directory / "journal"))
        drawn = _drawn(SCREENS[name](Clusters(directory)).output, directory)
        for line in drawn.splitlines():
            assert cells(line) <= width or any(
                cells(word) > width // 4 for word in words_of(line.strip())
            ), line
        screens.append(f"{width} columns\n\n{drawn.rstrip()}\n")
    found, file = "\n\n".join(screens), STORED / f"{name}.txt"
    if os.environ.get("CONNECTCTL_TEST_SCREENS") == "write":
        file.write_text(found)
    assert found == file.read_text()


def _drawn(output: str, directory: Path) -> str:
    """Return what a terminal shows, with a word in place of what is another one each time."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output).replace(str(directory), "/tmp/d")
    for pattern, word in CHANGING.items():
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "", "NO_COLOR": ""}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "0"}, False),
    ],
)
def test_a_pipe_has_colour_where_it_is_asked_for_and_whole_columns_always(
    variables: dict[str, str], coloured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    output = Clusters(tmp_path).plain.run("connectors", "list").stdout
    assert ("\x1b[" in output) is coloured
    assert "CONNECTOR   TYPE     STATE      TASKS   WORKERS" in _drawn(output, tmp_path)

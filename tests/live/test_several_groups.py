"""Several Connect groups and a report on one Kafka: each finds its own topics, whatever the others
are called.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.spark.session import open_session
from connectctl.ops.sandbox.cluster import SandboxSpec, down, up
from connectctl.ops.task_runtime.dataframe.api import Target, write_exactly_once
from fakes.sandboxes import extra_group
from live.real import FILE_SOURCE, Ran, Workers, connectctl, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # PySpark leaves the socket of an answer to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]
BLUE, GREEN, REPORT = "connect-sandbox-several", "green", "reports"
LINES = {BLUE: 3, GREEN: 5}
FEED = "feed"
"""The connector of both groups, and of the report."""


@pytest.fixture(scope="module")
def sandbox(state_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("several")
    try:
        made = up(SandboxSpec(name="several", workers=1, support="enabled"))
        urls = {
            BLUE: made.rest_urls[0],
            GREEN: extra_group(made, GREEN, support="enabled").rest_urls[0],
        }
        _report(made, directory)
        for group, url in urls.items():
            file = directory / group
            file.write_text("line\n" * LINES[group])
            config = {
                "connector.class": FILE_SOURCE,
                "file": str(file),
                "topic": f"{group}-lines",
                "tasks.max": "1",
            }
            eventually(partial(_put, Workers(url), config))
        yield made
    finally:
        down("several")


def _put(rest: Workers, config: dict[str, str]) -> bool:
    return rest.call("PUT", f"/connectors/{FEED}/config", config).status_code in (200, 201)


def _report(sandbox: Sandbox, directory: Path) -> None:
    """Write a report of a few rows. Its topics are there before the groups' connectors have written
    anything.
    """
    session = open_session("local[1]", {}, directory / "spark.log")
    try:
        rows = session.createDataFrame(
            [("all", n, str(n)) for n in range(4)], "part string, row long, value string"
        )
        client = {"bootstrap.servers": sandbox.bootstrap_servers}
        target = Target(
            client, REPORT, FEED, "report-lines", "totals", partition="part", offset="row"
        )
        written = write_exactly_once(rows, target)
        assert (written.sent, written.problems) == (4, ())
    finally:
        session.stop()


def of(sandbox: Sandbox, group: str, *args: str, stdin: str | None = None) -> Ran:
    """Run a command on a group of which nothing but its id is told."""
    return connectctl(
        "--bootstrap-servers", sandbox.bootstrap_servers, "--group-id", group, *args, stdin=stdin
    )


def effective(sandbox: Sandbox, group: str) -> list[Any]:
    """The offsets of the connector by ``offsets show``; the error where it cannot tell."""
    ran = of(sandbox, group, "offsets", "show", "-o", "json")
    return (
        [o["effective"] for c in ran.json["connectors"] for o in c["offsets"]]
        if ran.code == 0
        else [ran.err]
    )


@pytest.mark.parametrize("group", [BLUE, GREEN])
def test_each_group_finds_its_own_topics_beside_another_and_a_report(
    sandbox: Sandbox, group: str
) -> None:
    wanted = [{"position": len("line\n") * LINES[group]}]
    eventually(lambda: effective(sandbox, group) == wanted)
    shown = of(sandbox, group, "cluster", "show", "-o", "json").json
    assert {each["role"]: each["name"] for each in shown["topics"]} == {
        role: f"{group}-{role}" for role in ("config", "offsets", "status")
    }
    found = of(sandbox, group, "preflight", "-o", "json").json["findings"]
    assert not [f for f in found if f["id"].startswith("TOPIC")], found


def test_a_report_finds_the_topics_that_it_was_given(sandbox: Sandbox) -> None:
    assert effective(sandbox, REPORT) == [{"row": 3}]


@pytest.mark.parametrize("group", [BLUE, GREEN])
def test_topics_that_are_told_apart_are_proven_and_may_be_written(
    sandbox: Sandbox, group: str
) -> None:
    eventually(
        lambda: len(effective(sandbox, group)) == 1 and "position" in effective(sandbox, group)[0]
    )
    wanted = {"offsets": [{"partition": {"filename": "elsewhere"}, "offset": {"position": 1}}]}
    ran = of(
        sandbox,
        group,
        "offsets",
        "set",
        FEED,
        "-f",
        "-",
        "--stop",
        "--dry-run",
        "-o",
        "json",
        stdin=json.dumps(wanted),
    )
    assert ran.code == 0, ran.err
    assert {write["topic"] for write in ran.json["preview"]} == {f"{group}-offsets"}

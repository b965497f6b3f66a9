"""Every command on connectors before workers that expect a rebalance after each change: it asks
again, and does and prints the same.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.clients.rest import connect
from fakes.restserver import rest_server
from fakes.restworkers import RestWorkers
from fakes.scene import OFFSETS, ON_CONNECTORS, Scene, made, without_waits, words
from fakes.session import FakeSession

COMMANDS = {
    name: command
    for name, command in ON_CONNECTORS.items()
    if name not in ("connectors topics", "connectors cure", "connectors resume")
} | {
    "offsets set": words("offsets", "set", "plain", "-f", "-", "--stop", stdin=OFFSETS),
    "offsets reset": words("offsets", "reset", "plain", "--stop"),
    "offsets copy": words("offsets", "copy", "moved", "plain", "--stop"),
}
"""Changes that need the group: a reset of topics does not, and there is nothing to cure or to resume.
"""


class RestSession(FakeSession):
    """A session whose brokers are in memory, and whose workers are asked over HTTP."""

    def connect(self, urls: tuple[str, ...]) -> Any:
        return connect.Connect(urls, auth={}, tls={}, timeout=60.0)


def advertised(scene: Scene, url: str) -> None:
    """Let the group advertise the worker at ``url``."""
    group = scene.world.kafka.groups["connect"]
    (member,) = group.members
    assert member.assignment is not None
    led = replace(member.assignment, leader_url=url)
    members = (replace(member, url=url, assignment=led),)
    scene.world.kafka.groups["connect"] = replace(group, members=members)
    scene.world.workers.urls = (url,)
    scene.session = RestSession


def outcome(scene: Scene, name: str, url: str) -> Any:
    """What a command printed, changed and asked of the workers for good."""
    result = COMMANDS[name](scene)
    said = re.sub(
        rf"{re.escape(url)}|{re.escape(str(scene.directory))}|\d{{8}}-\d{{6}}-[0-9a-f]{{4}}",
        "…",
        result.stdout,
    )
    return (result.exit_code, said), scene.world.workers.sent, scene.world.workers.connectors


@pytest.mark.parametrize("name", COMMANDS)
def test_a_change_amid_rebalances_comes_to_the_same_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waits(tmp_path, monkeypatch)
    monkeypatch.setattr(connect, "FIRST_PAUSE", 0.001)
    found = []
    for rebalance in (0, 3):
        (tmp_path / str(rebalance)).mkdir()
        monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / str(rebalance) / "journal"))
        scene = made(tmp_path / str(rebalance))
        server = RestWorkers(workers=scene.world.workers, rebalance=rebalance, left=rebalance)
        with rest_server(script=server):
            advertised(scene, server.url)
            found.append(outcome(scene, name, server.url))
        assert bool(server.refused) is (rebalance > 0), server.requests()
    assert found[0] == found[1]
    assert found[0][0][0] == 0, found

"""Secrets of a connector on real workers are in nothing that connectctl prints or writes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords
from fakes.secrets import HARMLESS, Planted
from live.real import FILE_SOURCE, connectctl, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
FORMS = ("table", "wide", "json", "yaml")
PATIENCE = 600.0


def test_secrets_of_a_connector_are_in_nothing_that_is_printed_or_written(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, planted = f"p{uuid.uuid4().hex[:8]}", Planted()
    source, file = tmp_path / "source.txt", tmp_path / f"{name}.json"
    source.write_text("one line\n")
    config = planted.config() | {
        "connector.class": FILE_SOURCE,
        "tasks.max": "1",
        "topic": name,
        "file": str(source),
    }
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CONNECTCTL_REST_PASSWORD", planted.secret())
    monkeypatch.setenv("CONNECTCTL_REST_USERNAME", "ops")
    topics = [word for kind, topic in cluster.topics.items() for word in (f"--{kind}-topic", topic)]
    place = ("--bootstrap-servers", cluster.bootstrap_servers, "--group-id", cluster.group_id)
    where = (*place, *topics, "--timeout", "120")
    commands = [
        ("connectors", "show", name),
        ("connectors", "list"),
        ("cluster", "show"),
        ("tasks", "check", name),
        ("offsets", "show", name),
        ("validate", "-f", str(file)),
        ("preflight", name),
        ("connectors", "stop", name, "--wait", "--yes"),
        ("fence", name, "--dry-run"),
        ("offsets", "set", name, "-f", str(tmp_path / "offsets.json"), "--yes"),
        ("runs", "list"),
    ]
    (tmp_path / "offsets.json").write_text(
        json.dumps(
            {"offsets": [{"partition": {"filename": str(source)}, "offset": {"position": 0}}]}
        )
    )
    with connector(cluster, name, config) as workers:
        eventually(lambda: workers.state(name) == ["RUNNING"] * 2, PATIENCE)
        file.write_text(json.dumps({"name": name, "config": config | {"tasks.max": "many"}}))
        for n, command in enumerate(commands):
            for form in FORMS if n == 0 else ("json", "table"):
                ran = connectctl(*where, *command, "-o", form)
                assert ran.code in (0, 1), (command, ran.err)
                assert planted.found_in(ran.out + ran.err) == [], (command, form)
        shown = connectctl(*where, "connectors", "show", name, "-o", "json").json["config"]
        assert {key: shown[key] for key in HARMLESS} == HARMLESS
    file.unlink()
    assert list(planted.in_files([tmp_path])) == []


READING = (
    "connectors show {0}",
    "connectors list",
    "connectors history {0}",
    "connectors history {0} --show 1",
    "connectors diff {0} -f {1}",
    "connectors patch {0} tasks.max=2 --dry-run",
    "connectors apply -f {1} --dry-run",
    "connectors topics {0}",
    "connectors delete {0} --dry-run",
    "cluster show",
    "tasks check {0}",
    "offsets show {0}",
    "offsets reset {0} --dry-run",
    "validate -f {1}",
    "preflight {0}",
    "upgrade plan",
    "upgrade status",
    "fence {0} --dry-run",
    "transactions list",
    "runs list",
    "plugins",
    "context show",
)
"""Commands that read; ``{0}`` is the connector, ``{1}`` its file with a change."""


def leaks(cluster: Sandbox, directory: Path, commands: Sequence[tuple[str, str]]) -> list[object]:
    """Return the commands and files that tell a planted secret: of a stopped connector that has one
    of each kind.
    """
    name, planted = f"q{uuid.uuid4().hex[:8]}", Planted()
    file = directory / f"{name}.json"
    config = planted.config() | {
        "connector.class": FILE_SOURCE,
        "tasks.max": "1",
        "topic": name,
        "file": "none",
    }
    topics = [word for kind, topic in cluster.topics.items() for word in (f"--{kind}-topic", topic)]
    where = (
        "--bootstrap-servers",
        cluster.bootstrap_servers,
        "--group-id",
        cluster.group_id,
        *topics,
    )
    found: list[object] = []
    with connector(cluster, name, config, "STOPPED"):
        file.write_text(json.dumps({"name": name, "config": config | {"tasks.max": "2"}}))
        for command, form in commands:
            words = command.format(name, file).split()
            ran = connectctl(*where, "--timeout", "60", *words, "-o", form)
            assert ran.code != 70, (command, ran.err)
            if told := planted.found_in(ran.out + ran.err):
                found.append((command, form, told))
    file.unlink()
    return [*found, *planted.in_files([directory])]


def test_no_reading_command_tells_a_planted_secret(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert (
        leaks(cluster, tmp_path, [(each, FORMS[at % 4]) for at, each in enumerate(READING)]) == []
    )


@pytest.mark.slow
def test_no_reading_command_tells_a_planted_secret_in_any_form(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert leaks(cluster, tmp_path, [(each, form) for each in READING for form in FORMS]) == []


def test_workers_tell_what_their_plugins_define_as_passwords(cluster: Sandbox) -> None:
    calls = Connect(cluster.rest_urls, auth={}, tls={}, timeout=60)
    mirror = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    config = {"connector.class": mirror, "transforms": "a", "transforms.a.type": "no.such.Class"}
    found = defined_passwords(calls, config)
    assert {"ssl.keystore.password", "sasl.jaas.config"} <= found
    assert "topics" not in found

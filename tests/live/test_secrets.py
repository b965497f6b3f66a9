"""Secrets of a connector on real workers are in nothing that connectctl prints or writes."""

from __future__ import annotations

import json
import uuid
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
    config = planted.config() | {"connector.class": FILE_SOURCE, "tasks.max": "1", "topic": name, "file": str(source)}
    del config["pin"]  # This plugin defines no passwords, and nothing else says that it is one.
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
        json.dumps({"offsets": [{"partition": {"filename": str(source)}, "offset": {"position": 0}}]})
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


def test_workers_tell_what_their_plugins_define_as_passwords(cluster: Sandbox) -> None:
    calls = Connect(cluster.rest_urls, auth={}, tls={}, timeout=60)
    mirror = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    config = {"connector.class": mirror, "transforms": "a", "transforms.a.type": "no.such.Class"}
    found = defined_passwords(calls, config)
    assert {"ssl.keystore.password", "sasl.jaas.config"} <= found
    assert "topics" not in found

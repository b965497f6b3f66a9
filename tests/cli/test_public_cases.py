"""Configuration files as public repositories have them: what ``validate`` and ``connectors apply``
make of each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.operations.connectors.config import files as config_files
from fakes.connectorfiles import parse
from fakes.session import FakeSession
from fakes.validating import FILE, GOOD, Validating, report, run, session, told

MANIFEST = """apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata: {name: twice, labels: {strimzi.io/cluster: c}}
spec:
"""
HELM = """{{- range .Values.connectors }}
---
metadata:
  name: {{ .name }}
{{- end }}
"""
ANSIBLE = """kafka_connect_group_id: connect-syslog
kafka_connect_connectors:
  - name: syslog-ingest
    config: {connector.class: FileStreamSource, tasks.max: "16", file: /tmp/syslog, topic: syslog}
"""
INSTALLED = (
    "Failed to find any class that implements Connector and which name matches "
    "io.debezium.Postgres, available connectors are: PluginDesc{klass=class "
    "a.b.PostgresConnector, name='a.b.PostgresConnector', version='1'}" + ", x" * 4_000
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    return tmp_path


def offline(files: Path, text: str, name: str = "c.yaml") -> Any:
    (files / name).write_text(text)
    return report("-f", name, "--offline")


def test_a_class_that_a_manifest_gives_twice_is_a_warning_with_the_one_that_counts(
    files: Path,
) -> None:
    given = (
        MANIFEST
        + "  class: FileStreamSource\n  config: {connector.class: FileStreamSink, file: a, topic: "
        "a}\n"
    )
    found = offline(files, given)["findings"]
    assert [(f["id"], f["severity"]) for f in found] == [
        ("CONFIG035", "warning"),
        ("UNSEEN001", "info"),
    ]
    assert "spec.class counts (FileStreamSource, not FileStreamSink)" in found[0]["message"]
    (desired,) = config_files.desired([files / "c.yaml"], lambda name, source: "")
    assert desired.doubled.keys() == {"connector.class"}, "a plan warns of it, too"


def test_equal_values_are_an_info_and_a_paused_state_given_twice_is_a_warning(files: Path) -> None:
    given = MANIFEST + "  class: FileStreamSource\n  tasksMax: 2\n  pause: true\n  state: running\n"
    found = offline(files, given + "  config: {tasks.max: 2, file: a, topic: a}\n")["findings"]
    twice = {f["message"].split(" is ")[0]: f["severity"] for f in found if f["id"] == "CONFIG035"}
    assert twice == {"tasks.max": "info", "the state": "warning"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MANIFEST + "  config: {file: a}\n", "it has no spec.class"),
        (HELM, "it is a template: it has {{ … }}. Render it first"),
        (
            ANSIBLE,
            "they are variables of Ansible; kafka_connect_connectors is a list of objects. Give "
            "the list by itself",
        ),
    ],
)
def test_a_file_that_is_no_configuration_says_what_it_is(files: Path, text: str, said: str) -> None:
    (files / "c.yaml").write_text(text)
    code, out, err = run("-f", "c.yaml", "--offline")
    assert (code, out) == (2, "")
    assert said in err


def test_a_directory_is_validated_as_it_is_applied(files: Path) -> None:
    for name, more in (
        ("person-sink", {"topics": "people"}),
        ("person-source", {"topic": "people"}),
    ):
        kind = "FileStreamSink" if "sink" in name else "FileStreamSource"
        (files / f"{name}.json").write_text(
            json.dumps({"connector.class": kind, "file": "/tmp/p", **more})
        )
    data = report("-f", ".", "--offline")
    assert [c["name"] for c in data["configurations"]] == ["person-sink", "person-source"]
    names = [each.name for each in config_files.desired([files], lambda name, source: "")]
    assert names == ["person-sink", "person-source"]


def test_files_of_an_unknown_ending_are_named_by_the_endings_that_are_read(files: Path) -> None:
    (files / "person.config").write_text("{}")
    code, _, err = run("-f", ".", "--offline")
    assert (code, "Files must end in .json, .yaml, .yml, .properties" in err) == (2, True)


def test_a_byte_order_mark_and_windows_line_ends_are_read() -> None:
    raw = b"\xef\xbb\xbf" + json.dumps(GOOD, indent=1).replace("\n", "\r\n").encode()
    (given,) = parse(raw, "c.json")
    assert (given.name, given.config) == ("good", GOOD["config"])


# --------------------------------------------------------------------- what workers do not validate


def answering(error: ConnectctlError) -> Any:
    return session("http://one:1", errors={"http://one:1": error})


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("gone", why="Connection refused"),
        ConnectctlError("x", why="java.lang.NullPointerException: null", code="worker-error"),
        ConnectctlError("x", why="<html>Bad Gateway</html>", code="worker-error"),
        ConnectctlError("x", why="HTTP 404 Not Found", code="not-found"),
        ConnectctlError("x", why="Too Many Requests", code="failed"),
    ],
)
def test_what_no_worker_has_validated_is_neither_taken_nor_refused(
    files: Path, error: ConnectctlError
) -> None:
    (files / "good.json").write_text(json.dumps(GOOD))
    code, out, _ = run("-f", "good.json", "-o", "json", obj=answering(error))
    data = json.loads(out)
    assert (code, data["configurations"][0]["outcome"]) == (5, "not validated")
    assert told(data) == [("UNSEEN001", "warning", "the validation of good on one:1")]


def test_an_exception_of_a_worker_that_answers_otherwise_is_a_refusal(files: Path) -> None:
    """A version that no worker has: seen on 4.3.1, also for the creation."""
    (files / "good.json").write_text(json.dumps(GOOD))
    why = 'java.lang.NullPointerException: Cannot invoke "java.util.List.stream()"'
    error = ConnectctlError("x", why=why, code="worker-error")
    one = session("http://one:1", errors={"http://one:1/connector-plugins": error})
    code, out, _ = run("-f", "good.json", "-o", "json", obj=one)
    assert (code, json.loads(out)["configurations"][0]["outcome"]) == (1, "refused")


def test_a_cluster_without_workers_has_validated_nothing(files: Path) -> None:
    (files / "good.json").write_text(json.dumps(GOOD))
    empty = FakeSession()
    empty.calls = Validating(urls=())
    assert run("-f", "good.json", obj=empty)[0] == 5


@pytest.mark.parametrize(
    "prefix", ["", "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "]
)
def test_a_class_that_is_not_installed_is_named_with_the_nearest_and_without_the_list(
    files: Path, prefix: str
) -> None:
    config = {"connector.class": "io.debezium.Postgres", "topic": "t"}
    (files / "c.json").write_text(json.dumps({"name": "c", "config": config}))
    error = ConnectctlError("500", why=prefix + INSTALLED, code="worker-error")
    code, out, _ = run("-f", "c.json", "-o", "json", obj=answering(error))
    (finding,) = json.loads(out)["findings"]
    assert (code, finding["id"]) == (1, "CONFIG001")
    said = "No such class io.debezium.Postgres; did you mean a.b.PostgresConnector?"
    assert finding["message"] == said
    assert "connectctl plugins list" in finding["nextStep"]
    assert len(out) < 2_000


def test_only_configurations_that_were_to_be_validated_are_not_validated(files: Path) -> None:
    (files / "good.json").write_text(
        json.dumps({"name": "good", "config": {"connector.class": FILE, "topic": "t"}})
    )
    assert (
        report("-f", "good.json", "--offline")["configurations"][0]["outcome"] == "no error found"
    )

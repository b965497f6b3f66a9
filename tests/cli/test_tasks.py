from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.cli.main import app
from connectctl.ops.core.errors import Unreachable
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/tasks-check.json").read_text())
TOPICS = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}
ALL = {"good": ("1", 1), "many": ("1", 2), "few": ("3", 1)}


@pytest.fixture
def session() -> FakeSession:
    configs = {
        name: {"connector.class": "x.y.Source", "tasks.max": limit}
        for name, (limit, _) in ALL.items()
    }
    topic: list[tuple[str, dict[str, Any]]] = []
    for name, (_, size) in ALL.items():
        topic.append((f"connector-{name}", {"properties": configs[name]}))
        topic += [(f"task-{name}-{n}", {"properties": {}}) for n in range(size)]
        topic.append((f"commit-{name}", {"tasks": size}))
    owners = [(name, n) for name, (_, size) in ALL.items() for n in range(-1, size)]
    kafka = FakeKafka(
        {"cfg": records(*topic), "off": [], "sta": []},
        groups={"connect": connect_group("connect", one=owners)},
    )
    fakes = {
        name: FakeConnector(tasks=["RUNNING"] * size, config=configs[name])
        for name, (_, size) in ALL.items()
    }
    return FakeSession(told=dict(TOPICS), reads=kafka, calls=FakeWorkers(fakes, version="3.7.2"))


class Mixed(FakeWorkers):
    """The worker ``two`` is newer than the others."""

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        if path == "/":
            return {
                "version": "4.3.1" if url == "http://two:8083" else "3.7.2",
                "kafka_cluster_id": "fake-cluster",
            }
        return super().get(path, url=url, timeout=timeout)


def run(session: FakeSession, *args: str) -> Result:
    return CliRunner().invoke(app, ["tasks", "check", *args], obj=session)


def printed(result: Result) -> Any:
    data = json.loads(result.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    return data


def test_the_table_says_now_and_then_in_a_hundred_columns(session: FakeSession) -> None:
    result = run(session)
    assert result.stdout.splitlines() == [
        "CONNECTOR   TASKS.MAX   ENFORCED   TASKS   RUNNING   NOW            ON 3.8",
        "few         3           yes        1       1         ok             ok",
        "good        1           yes        1       1         ok             ok",
        "many        1           yes        2       2         not enforced   fails",
    ]
    assert "NOW is the behaviour of the workers: 3.7.2." in result.stderr
    assert "warning: TASK004 many" in result.stderr
    assert result.exit_code == 0


def test_in_a_mixed_group_it_is_told_who_runs_which_version(session: FakeSession) -> None:
    session.reads.groups["connect"] = connect_group(
        "connect", one=[("many", -1), ("many", 0), ("many", 1)], two=[]
    )

    session.calls = Mixed(session.calls.connectors)
    result = run(session, "many")
    assert "3.7.2 on one:8083; 4.3.1 on two:8083" in result.stderr
    assert "each task that starts again on two:8083 FAILS" in result.stderr
    assert (result.exit_code, "fails at next start" in result.stdout) == (1, True)


def test_a_planned_release_fails_the_build(session: FakeSession) -> None:
    result = run(session, "--for-version", "4.0.1")
    assert (
        result.exit_code,
        "ON 4.0" in result.stdout,
        "error: TASK004 many" in result.stderr,
    ) == (1, True, True)
    assert run(session, "--for-version", "3.7").exit_code == 0
    assert run(session, "--fail-on", "warning").exit_code == 1
    assert run(session, "few", "--fail-on", "warning").exit_code == 0


def test_json_has_every_connector_and_every_finding(session: FakeSession) -> None:
    data = printed(run(session, "-o", "json"))
    assert data["forVersion"] == "3.8"
    assert data["workers"] == [
        {"address": "one:8083", "version": "3.7.2", "enforcesTasksMax": False}
    ]
    many = next(c for c in data["connectors"] if c["name"] == "many")
    assert (many["tasksMax"], many["tasks"], many["now"], many["then"]) == (
        1,
        2,
        "not enforced",
        "fails",
    )
    assert [(f["id"], f["subject"]) for f in data["findings"]] == [
        ("TASK004", "many"),
        ("TASK007", "few"),
    ]


def test_on_newer_workers_later_is_a_release_without_the_property(session: FakeSession) -> None:
    session.calls.version = "4.3.1"
    result = run(session, "many", "-o", "wide")
    assert "LATER" in result.stdout.splitlines()[0]
    assert "fails at next start" in result.stdout
    assert "LATER is a release without tasks.max.enforce." in result.stderr
    assert result.exit_code == 1
    assert printed(run(session, "-o", "json"))["forVersion"] is None


@pytest.mark.parametrize("output", ["yaml", "sarif", "junit", "github"])
def test_every_form_for_machines_names_the_finding(session: FakeSession, output: str) -> None:
    result = run(session, "-o", output)
    assert result.exit_code == 0, result.stderr
    assert "TASK004" in result.stdout


def test_a_finding_can_be_left_out(session: FakeSession) -> None:
    result = run(session, "--fail-on", "warning", "--ignore", "task004", "-o", "json")
    assert (result.exit_code, [f["id"] for f in printed(result)["findings"]]) == (0, ["TASK007"])


def test_without_brokers_the_workers_are_asked(session: FakeSession) -> None:
    session.told |= {"rest": ["http://one:8083"], "bootstrap_servers": None}
    data = printed(run(session, "-o", "json"))
    assert {c["countedIn"] for c in data["connectors"]} == {"workers"}
    assert [f["id"] for f in data["findings"]] == ["TASK004", "TASK007"]


def test_with_no_worker_answering_it_is_told_what_is_not_known(session: FakeSession) -> None:
    session.calls.errors[""] = Unreachable("gone", why="Connection refused")
    data = printed(run(session, "-o", "json"))
    assert {(c["name"], c["now"], c["then"]) for c in data["connectors"]} >= {
        ("many", "unknown", "fails")
    }
    assert ("UNSEEN001", "worker one:8083") in {(f["id"], f["subject"]) for f in data["findings"]}
    assert data["workers"][0]["enforcesTasksMax"] is None


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--for-version", "new"], "new is not a release of Kafka"),
        (["--for-version", "3"], "3 is not a release of Kafka"),
        (["mayn"], "Connector not found: mayn. Did you mean many?"),
        (["--fail-on", "info"], "Invalid value for '--fail-on'"),
    ],
)
def test_bad_input_is_named(session: FakeSession, args: list[str], said: str) -> None:
    result = run(session, *args)
    assert result.exit_code == 2
    assert said in result.stderr

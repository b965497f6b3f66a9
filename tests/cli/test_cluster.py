from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from connectctl.cli.main import app
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "cluster.json"


@pytest.fixture
def session() -> FakeSession:
    kafka = FakeKafka(
        {
            "cfg": records(("connector-orders", {"properties": {"connector.class": "x.y.Source"}})),
            "off": [],
            "sta": [],
        },
        groups={"connect": connect_group("connect", one=[("orders", -1), ("orders", 0)], two=[])},
        config={"sta": {"cleanup.policy": "delete"}},
    )
    workers = FakeWorkers({"orders": FakeConnector()}, urls=("http://one:8083", "http://two:8083"))
    workers.errors["http://two:8083"] = Unreachable("gone", why="Connection refused")
    told = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}
    return FakeSession(told=told, reads=kafka, calls=workers)


def run(session: FakeSession, *args: str) -> Result:
    return CliRunner().invoke(app, ["cluster", "show", *args], obj=session)


def test_show_prints_group_workers_topics_and_connectors_and_what_is_wrong(
    session: FakeSession,
) -> None:
    result = run(session)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "GROUP     STATE    PROTOCOL    WORKERS   REBALANCE-DELAY   KAFKA-CLUSTER",
        "connect   Stable   sessioned   2         -                 fake-cluster",
        "",
        "WORKER     LEADER   VERSION   REST        EXACTLY-ONCE   CONNECTORS   TASKS",
        "one:8083   leader   4.3.1     ok          enabled        1            1",
        "two:8083            -         no answer   unknown        0            0",
        "",
        "TOPIC     NAME   PARTITIONS   REPLICAS   IN-SYNC   CLEANUP   FINDINGS",
        "config    cfg    1            1          all       compact   -",
        "offsets   off    1            1          all       compact   -",
        "status    sta    1            1          all       delete    TOPIC004",
        "",
        "CONNECTOR   TYPE     STATE     TASKS   WORKERS",
        "orders      source   RUNNING   1/1     one:8083",
    ]
    assert [line.split()[1] for line in result.stderr.splitlines()] == ["CLUSTER004", "TOPIC004"]


def test_show_as_json_keeps_to_its_schema(session: FakeSession) -> None:
    data = json.loads(run(session, "-o", "json").stdout)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    assert data["group"]["leader"] == "http://one:8083"
    assert [worker["reachable"] for worker in data["workers"]] == [True, False]


def test_wide_tells_why_a_worker_is_silent(session: FakeSession) -> None:
    assert "Connection refused" in run(session, "-o", "wide").stdout


class Ticking:
    """Time for a watch: after ``looks`` sleeps the person presses ^C."""

    def __init__(self, looks: int):
        self._left = looks

    def __call__(self, seconds: float) -> None:
        self._left -= 1
        if self._left <= 0:
            raise KeyboardInterrupt


def watched(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch, looks: list[Any], *args: str
) -> Result:
    from connectctl.cli import watching
    from connectctl.cli.commands import cluster

    real = cluster._observe

    def look(given: Any) -> Any:
        error = looks.pop(0)
        if error:
            raise error
        return real(session)

    monkeypatch.setattr(cluster, "_observe", look)
    # Only this command's: threads of tests before may still sleep.
    monkeypatch.setattr(
        watching, "time", SimpleNamespace(**vars(time) | {"sleep": Ticking(len(looks))})
    )
    return run(session, "--watch", *args)


def test_watch_prints_one_look_after_another_and_ends_well_with_an_interrupt(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = watched(session, monkeypatch, [None, None, None])
    assert result.exit_code == 0
    assert result.stdout.count("KAFKA-CLUSTER") == 3


def test_watch_outlives_a_look_that_fails_and_says_so(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = watched(session, monkeypatch, [None, Unreachable("Kafka does not answer"), None])
    assert result.exit_code == 0
    assert "as last seen; error: Kafka does not answer" in result.stdout


def test_watch_ends_where_the_first_look_fails(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watched(session, monkeypatch, [ConnectctlError("no")]).exit_code == 1


def test_watch_as_json_prints_documents(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = watched(session, monkeypatch, [None, None], "-o", "json")
    decoder = json.JSONDecoder()
    first, end = decoder.raw_decode(result.stdout)
    second, _ = decoder.raw_decode(result.stdout[end:].lstrip())
    assert first["kind"] == second["kind"] == "Cluster"

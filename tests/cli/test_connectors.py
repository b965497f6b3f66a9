from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.cli.main import app
from connectctl.ops.connect import target_state_wait
from connectctl.ops.core.errors import TimedOut, Unreachable
from fakes.kafkareads import FakeKafka, FakeLeader, connect_group, records
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
TOPICS = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    monkeypatch.setattr(target_state_wait, "STEADY", 0.0)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.QUICK_POLL", 0.01)
    owners = [("orders", -1), ("orders", 0), ("users", -1), ("users", 0), ("users", 1), ("off", -1)]
    config = {"connector.class": "x.y.Source", "database.password": "hush"}
    kafka = FakeKafka(
        {
            "cfg": records(
                ("connector-orders", {"properties": config}),
                ("task-orders-0", {"properties": {}}),
                ("commit-orders", {"tasks": 1}),
                ("tasks-fencing-orders", {"task-count": 1}),
                (
                    "connector-users",
                    {"properties": config | {"offsets.storage.topic": "users-offsets"}},
                ),
                ("commit-users", {"tasks": 2}),
                ("connector-off", {"properties": {"connector.class": "x.y.Source"}}),
                ("target-state-off", {"state.v2": "STOPPED"}),
                ("commit-off", {"tasks": 0}),
            ),
            "off": [],
            "sta": [],
        },
        groups={"connect": connect_group("connect", one=owners)},
    )
    workers = FakeWorkers(
        {
            "orders": FakeConnector(config=config),
            "users": FakeConnector(
                tasks=["RUNNING", "FAILED"],
                config=config | {"offsets.storage.topic": "users-offsets"},
            ),
            "off": FakeConnector(own="STOPPED", tasks=[]),
        }
    )
    workers.commanded = FakeLeader(kafka).command
    return FakeSession(told=dict(TOPICS), reads=kafka, calls=workers)


def run(session: FakeSession, *args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), obj=session, input=stdin)


def checked(result: Result, schema: str) -> Any:
    """The JSON that was printed, which keeps to its schema."""
    data = json.loads(result.stdout)
    jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{schema}.json").read_text())).validate(
        data
    )
    return data


def test_list_gives_each_connector_one_verdict(session: FakeSession) -> None:
    result = run(session, "connectors", "list")
    assert result.stdout.splitlines() == [
        "CONNECTOR   TYPE     STATE      TASKS   WORKERS    CAUSE",
        "off         source   STOPPED    0/0     one:8083",
        "orders      source   RUNNING    1/1     one:8083",
        "users       source   DEGRADED   1/2     one:8083   IOException: disk full",
    ]
    assert result.exit_code == 0


@pytest.mark.parametrize("output", ["json", "yaml", "wide"])
def test_list_has_every_output(session: FakeSession, output: str) -> None:
    result = run(session, "connectors", "list", "-o", output)
    assert result.exit_code == 0
    assert "DEGRADED" in result.stdout
    assert "1 of 2 tasks failed" in result.stdout


def test_list_as_json_keeps_to_its_schema(session: FakeSession) -> None:
    data = checked(run(session, "connectors", "list", "-o", "json"), "connectors-list")
    assert {c["name"]: c["state"] for c in data["connectors"]} == {
        "off": "STOPPED",
        "orders": "RUNNING",
        "users": "DEGRADED",
    }


def test_list_reads_the_topics_when_no_worker_answers_and_says_so(session: FakeSession) -> None:
    session.calls.errors[""] = Unreachable("No worker answers")
    result = run(session, "connectors", "list")
    assert result.exit_code == 0
    assert "orders" in result.stdout
    assert "CLUSTER010" in result.stderr


def test_show_masks_secrets_in_every_output(session: FakeSession) -> None:
    for output in ("table", "wide", "json", "yaml"):
        result = run(session, "connectors", "show", "orders", "-o", output)
        assert result.exit_code == 0
        assert "database.password" in result.stdout
        assert "hush" not in result.output


def test_show_tells_fencing_and_the_offsets_topic(session: FakeSession) -> None:
    orders = checked(run(session, "connectors", "show", "orders", "-o", "json"), "connectors-show")
    assert (orders["taskCountRecord"], orders["fencingPending"], orders["targetState"]) == (
        1,
        False,
        "STARTED",
    )
    assert orders["offsetsTopic"] == {"name": "off", "dedicated": False, "bootstrapServers": None}
    users = checked(run(session, "connectors", "show", "users", "-o", "json"), "connectors-show")
    assert (users["taskCountRecord"], users["fencingPending"]) == (None, True)
    assert users["offsetsTopic"]["name"] == "users-offsets"
    assert users["offsetsTopic"]["dedicated"] is True


def test_show_gives_whole_traces_only_when_asked(session: FakeSession) -> None:
    assert "\tat X" not in run(session, "connectors", "show", "users").stdout
    assert "\tat X" in run(session, "connectors", "show", "users", "-o", "wide").stdout


def test_show_does_not_call_a_task_running_that_its_worker_left(session: FakeSession) -> None:
    assert isinstance(session.reads, FakeKafka)
    session.reads.groups["connect"] = connect_group("connect", one=[("orders", -1)])
    tasks = run(session, "connectors", "show", "orders").stdout.partition("TASK")[2]
    row = tasks.splitlines()[1]
    assert row.split()[:2] == ["0", "UNASSIGNED"], row
    assert "not assigned to a worker, last seen RUNNING on" in row


def test_an_unknown_connector_is_told_with_the_nearest_name_before_anything_is_done(
    session: FakeSession,
) -> None:
    result = run(session, "connectors", "stop", "order", "users", "--yes")
    assert result.exit_code == 2
    assert "Connector not found: order. Did you mean orders?" in result.stderr
    assert session.calls.sent == []


@pytest.mark.parametrize("args", [["stop"], ["stop", "orders", "--all"]])
def test_either_names_or_all_have_to_be_given(session: FakeSession, args: list[str]) -> None:
    result = run(session, "connectors", *args)
    assert result.exit_code == 2
    assert "--all" in result.stderr


def test_without_a_terminal_and_without_yes_nothing_is_done_and_the_plan_is_told(
    session: FakeSession,
) -> None:
    result = run(session, "connectors", "stop", "orders")
    assert result.exit_code == 2
    assert "stop orders (now RUNNING)" in result.stderr
    assert "--yes" in result.stderr
    assert result.stdout == ""
    assert session.calls.sent == []


def test_without_a_terminal_json_errors_stay_json(session: FakeSession) -> None:
    error = json.loads(run(session, "connectors", "stop", "orders", "-o", "json").stderr)["error"]
    assert error["code"] == "not-confirmed"
    assert "stop orders" in error["why"]


def test_a_dry_run_prints_the_plan_and_does_nothing(session: FakeSession) -> None:
    plan = checked(
        run(session, "connectors", "stop", "--all", "--wait", "--dry-run", "-o", "json"), "plan"
    )
    assert next(step["description"] for step in plan["steps"]) == "stop orders"
    assert plan["unchanged"] == [{"subject": "off", "why": "already STOPPED"}]
    assert run(session, "connectors", "stop", "--all", "--dry-run").exit_code == 0
    assert session.calls.sent == []


def test_stop_with_yes_and_wait_does_it_and_says_what_was_so_already(session: FakeSession) -> None:
    result = run(session, "connectors", "stop", "orders", "off", "--yes", "--wait")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "already    off: already STOPPED",
        "done       stop orders",
        "done       wait until orders is STOPPED: STOPPED",
    ]


def test_nothing_to_do_asks_nothing(session: FakeSession) -> None:
    result = run(session, "connectors", "stop", "off")
    assert result.exit_code == 0
    assert "already STOPPED" in result.stdout


def test_a_connector_that_fails_again_makes_the_exit_code_1_and_the_others_are_done(
    session: FakeSession,
) -> None:
    session.calls.connectors["users"].fails_again = True
    result = run(
        session, "connectors", "restart", "users", "orders", "--yes", "--wait", "-o", "json"
    )
    data = checked(result, "result")
    assert result.exit_code == 1
    outcomes = {r["description"]: r["outcome"] for r in data["results"]}
    assert outcomes["wait until users is RUNNING"] == "failed"
    assert outcomes["wait until orders is RUNNING"] == "done"
    failed = next(r for r in data["results"] if r["outcome"] == "failed")
    assert failed["error"]["why"] == "java.io.IOException: disk full"


def test_a_wait_that_takes_too_long_is_exit_code_6_with_the_last_state(
    session: FakeSession,
) -> None:
    session.told["timeout"] = 0.2
    session.calls.connectors["orders"].change = lambda verb, count: None  # type: ignore[method-assign]
    session.calls.commanded = lambda name, verb: None
    result = run(session, "connectors", "stop", "orders", "--yes", "--wait")
    assert result.exit_code == 6
    assert "it is RUNNING" in result.stderr


def test_a_rebalance_that_does_not_end_is_exit_code_6(session: FakeSession) -> None:
    session.calls.errors["/connectors/orders/stop"] = TimedOut("busy", code="rebalancing")
    assert run(session, "connectors", "stop", "orders", "--yes").exit_code == 6


def test_restarting_what_is_stopped_is_refused(session: FakeSession) -> None:
    result = run(session, "connectors", "restart", "off", "--yes")
    assert result.exit_code == 4
    assert "connectors resume off" in result.stderr
    assert session.calls.sent == []


@pytest.mark.parametrize(
    ("protected", "typed", "code"),
    [(False, "y\n", 0), (False, "n\n", 4), (False, "\n", 4), (True, "prod\n", 0), (True, "y\n", 4)],
)
def test_a_person_is_asked_once_and_types_the_name_of_a_protected_context(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch, protected: bool, typed: str, code: int
) -> None:
    session.told["protected"] = protected
    monkeypatch.setattr("connectctl.cli.apply.somebody_is_there", lambda: True)
    result = run(session, "connectors", "stop", "orders", stdin=typed)
    assert result.exit_code == code
    assert session.calls.sent == (["PUT /connectors/orders/stop"] if code == 0 else [])


def test_with_rest_addresses_alone_kafka_is_not_asked(session: FakeSession) -> None:
    session.told |= {"bootstrap_servers": "", "rest": ["http://one:8083"]}
    result = run(session, "connectors", "stop", "orders", "--dry-run", "-o", "json")
    assert json.loads(result.stdout)["clusterId"] == "fake-cluster"


def test_yes_is_not_enough_for_a_protected_context_where_nobody_can_type_its_name(
    session: FakeSession,
) -> None:
    session.told["protected"] = True
    refused = run(session, "connectors", "stop", "orders", "--yes")
    assert (refused.exit_code, "--confirm prod" in refused.stderr) == (2, True)
    session.confirmed = "prod"
    assert run(session, "connectors", "stop", "orders").exit_code == 0


def test_a_group_that_rebalances_is_waited_for_until_it_tells_its_workers(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = session.reads.groups["connect"]
    silent = replace(
        settled,
        state="PreparingRebalance",
        members=tuple(replace(m, url="") for m in settled.members),
    )
    answers = iter([silent, silent, settled])
    monkeypatch.setattr(session.reads, "group", lambda name: next(answers, settled))
    monkeypatch.setattr("connectctl.cli.session.REBALANCE_PAUSE", 0.01)
    assert run(session, "connectors", "list").exit_code == 0
    assert session.group() is settled

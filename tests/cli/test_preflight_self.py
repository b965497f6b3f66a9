"""``preflight --self``: what it prints, its schema and exit codes, and what it emits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.ops.kafka.acls import ANY, Binding, Operation, Pattern, Permission, Resource
from fakes.kafkareads import FakeKafka, connect_group
from fakes.rights import ME, FakeRights
from fakes.runner import invoke
from fakes.session import FakeSession
from fakes.workers import FakeWorkers

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/own-rights.json").read_text())
TOPICS = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}
EVERYTHING = tuple(
    Binding(resource, ANY, Pattern.LITERAL, ME, ANY, Operation.ALL, Permission.ALLOW)
    for resource in (Resource.TOPIC, Resource.GROUP, Resource.CLUSTER, Resource.TRANSACTIONAL_ID)
)


def run(bindings: tuple[Binding, ...], *args: str, **told: Any) -> Any:
    kafka = FakeKafka(
        {"cfg": [], "off": [], "sta": []}, groups={"connect": connect_group("connect", one=[])}
    )
    session = FakeSession(told=TOPICS | told, reads=kafka, calls=FakeWorkers())
    rights = FakeRights(bindings, frozenset({"cfg", "off", "sta", "__transaction_state"}))
    session.__dict__ |= {"own_rights": rights, "acls": rights}
    return invoke(["preflight", "--self", *args], obj=session)


def without(resource: Resource) -> tuple[Binding, ...]:
    return tuple(binding for binding in EVERYTHING if binding.resource is not resource)


def test_the_json_keeps_to_its_schema_and_has_every_command() -> None:
    done = run(without(Resource.GROUP), "-o", "json")
    data = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    assert done.exit_code == 1
    works = {each["command"]: each["works"] for each in data["commands"]}
    assert (works["cluster show"], works["offsets show"], works["runs list"]) == (
        "refused",
        "refused",
        "whole",
    )


def test_a_command_with_all_its_rights_is_whole_and_exits_with_0() -> None:
    done = run(EVERYTHING, "--command", "cluster show", "--command", "offsets set")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "COMMAND        WORKS       MISSING   NOT-KNOWN",
        "cluster show   whole       -         -",
        "offsets set    not known   -         Write on TransactionalId connectctl-offsets-connect",
    ]


def test_a_right_that_only_hides_a_part_is_a_warning() -> None:
    args = ("--command", "transactions list")
    assert run(without(Resource.GROUP), *args).exit_code == 0
    assert run(without(Resource.GROUP), *args, "--fail-on", "warning").exit_code == 1


def test_what_is_missing_is_emitted_for_the_principal_in_use() -> None:
    args = ("--command", "cluster show", "--emit", "kafka-acls")
    done = run(without(Resource.GROUP), *args, **{"client.sasl.username": "me"})
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert done.exit_code == 0
    assert len(lines) == 1
    assert lines[0].endswith("--add --allow-principal User:me --operation Describe --group connect")
    named = run(without(Resource.GROUP), *args, "--principal", "User:CN=ops")
    assert "--allow-principal User:CN=ops" in named.stdout


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (
            ["--command", "ofsets show"],
            2,
            "Unknown command: ofsets show. Did you mean offsets show?",
        ),
        (["--emit", "yaml"], 2, "--self cannot be combined with --emit yaml"),
        (["--emit", "kafka-acls"], 1, "The principal of this context is unknown"),
        (
            ["--emit", "kafka-acls", "--principal", "worker=User:a"],
            2,
            "one --principal, without a role",
        ),
        (["no-such-connector"], 2, "Connector not found: no-such-connector"),
    ],
)
def test_what_cannot_be_asked_is_one_line(args: list[str], code: int, message: str) -> None:
    done = run(EVERYTHING, *args)
    assert (done.exit_code, done.stderr.count("\n"), message in done.stderr) == (code, 1, True), (
        done.stderr
    )

"""What ``connectctl run`` cannot run: one line that says why, the documented exit code, and nothing
written or opened.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.spark import session
from live.real import Ran, connectctl
from live.rundirectory import Place

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
ANSWERS = "live.preflightplugins:Answers"
NO_EXACTLY_ONCE = {
    "connector.class": ANSWERS,
    "says.support": "UNSUPPORTED",
    "says.boundaries": "UNSUPPORTED",
}


@pytest.fixture
def place(cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    def opened(*args: Any, **more: Any) -> Any:
        raise AssertionError("a Spark session was opened")

    monkeypatch.setattr(session, "open_session", opened)
    made = Place(cluster, tmp_path)
    made.append(3)
    return made


def refused(place: Place, *args: str, flags: tuple[str, ...] = ()) -> Ran:
    """What is said to a job that nobody can run, once it is certain that it left nothing behind."""
    kafka = Kafka({"bootstrap.servers": place.cluster.bootstrap_servers}, timeout=120)
    before = kafka.topic_names()
    ran = connectctl(*flags, *place.args(place.job(idle="1s"), "--yes", *args))
    after = Kafka({"bootstrap.servers": place.cluster.bootstrap_servers}, timeout=120).topic_names()
    assert not {t for t in after - before - {place.topic} if place.name in t}
    assert ran.out == ""
    lines = [line for line in ran.err.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in ran.err
    return ran


CASES: dict[str, tuple[Mapping[str, str | None], int, str]] = {
    "no class": ({"connector.class": None}, 2, "The configuration contains no connector type"),
    "a class that nobody knows": (
        {"connector.class": "FileStreamSourc"},
        2,
        "Did you mean FileStreamSource?",
    ),
    "a module that is not there": (
        {"connector.class": "no.such:Thing"},
        2,
        "Cannot import no.such:Thing",
    ),
    "a class that is not there": (
        {"connector.class": "live.preflightplugins:Nobody"},
        2,
        "Class not found: Nobody",
    ),
    "a class that is no connector": (
        {"connector.class": "pathlib:Path"},
        2,
        "pathlib:Path is not a connector",
    ),
    "a required property": (
        {"file": None},
        2,
        'Missing required configuration "file" which has no default value.',
    ),
    "tasks.max": (
        {"tasks.max": "two"},
        2,
        "Invalid value two for configuration tasks.max: Not a number of type INT",
    ),
    "tasks.max of 0": ({"tasks.max": "0"}, 2, "Value must be at least 1"),
    "tasks.max.enforce": (
        {"tasks.max.enforce": "banana"},
        2,
        "Expected value to be either true or false",
    ),
    "a converter": (
        {"value.converter": "ProtobufConverters"},
        2,
        "Unsupported converter ProtobufConverters",
    ),
    "a boundary": (
        {"transaction.boundary": "never"},
        2,
        "Invalid value never for configuration transaction.boundary",
    ),
    "a boundary that it cannot have": (
        {"transaction.boundary": "connector"},
        2,
        "does not support connector-defined",
    ),
    "an interval": ({"transaction.boundary.interval.ms": "-1"}, 2, "Value must be at least 0"),
    "an interval longer than the time-out": (
        {
            "transaction.boundary": "interval",
            "transaction.boundary.interval.ms": "60000",
            "producer.override.transaction.timeout.ms": "20000",
        },
        2,
        "Transactions end after 60000 ms, and the broker rolls them back after 20000 ms",
    ),
    "support": (
        {"exactly.once.support": "maybe"},
        2,
        "Invalid value maybe for configuration exactly.once.support",
    ),
    "support that is not there": (
        {**NO_EXACTLY_ONCE, "exactly.once.support": "required"},
        2,
        "does not support exactly",
    ),
    "support without transactions": (
        {"exactly.once.support": "required", "exactly.once.source.support": "disabled"},
        2,
        "does not have exactly-once source support enabled",
    ),
    "an override of a wrong type": (
        {"producer.override.linger.ms": "soon"},
        2,
        "Not a number of type LONG",
    ),
    "an override out of range": (
        {"producer.override.linger.ms": "99999999999"},
        2,
        "outside allowed range",
    ),
    "a transformation without a type": (
        {"transforms": "a"},
        2,
        'Missing required configuration "transforms.a.type"',
    ),
    "an unknown transformation": (
        {"transforms": "a", "transforms.a.type": "com.example.Rename"},
        2,
        "com.example.Rename (transforms.a.type)",
    ),
    "a reference": ({"file": "${file:/secret:path}"}, 2, "refers to a config provider"),
    "the empty offsets topic": ({"offsets.storage.topic": ""}, 2, "String must be non-empty"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_configuration_that_cannot_be_run_is_one_line(place: Place, case: str) -> None:
    changes, code, says = CASES[case]
    place.config = {k: v for k, v in {**place.config, **changes}.items() if v is not None}
    ran = refused(place)
    assert (ran.code, says in ran.err) == (code, True), ran.err


def test_a_class_that_fails_when_it_is_imported_is_one_line_with_what_it_raised(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"bad_{secrets.token_hex(4)}"
    (place.directory / f"{module}.py").write_text("raise RuntimeError('no licence\\nhere')")
    monkeypatch.syspath_prepend(str(place.directory))
    place.config["connector.class"] = f"{module}:Thing"
    ran = refused(place)
    assert (ran.code, f"Import of {module} failed: RuntimeError: no licence" in ran.err) == (
        2,
        True,
    ), ran.err


def test_the_offsets_topic_as_a_target_is_refused(place: Place) -> None:
    place.config["topic"] = f"{place.group}-offsets"
    ran = refused(place)
    assert (ran.code, "may not produce to their own offsets topics" in ran.err) == (2, True), (
        ran.err
    )


def test_an_override_that_is_not_allowed_is_told_in_workers_words_and_the_job_can_be_run(
    place: Place,
) -> None:
    place.config |= {
        "producer.override.transactional.id": "mine",
        "producer.override.enable.idempotence": "false",
    }
    ran = connectctl(*place.args(place.job(idle="1s"), "--dry-run"))
    assert ran.code == 0, ran.err
    assert (
        "The value 'mine' for the 'transactional.id' property will be ignored as it cannot be "
        "overridden" in ran.err
    )
    assert "The value 'true' will be used instead." in ran.err


def test_a_key_that_nobody_knows_is_told_with_its_line(place: Place) -> None:
    path = place.directory / "typo.yaml"
    path.write_text(f"name: {place.name}\nconfg: {{}}\n")
    ran = connectctl(*place.args(str(path), "--yes"))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"{path}, line 2: unknown key confg. Did you mean config?" in ran.err


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_master_that_does_not_answer_is_unreachable(place: Place) -> None:
    ran = refused(place, "--master", f"spark://127.0.0.1:{unused_port()}")
    assert (ran.code, "does not answer" in ran.err) == (5, True), ran.err


def test_brokers_that_do_not_answer_are_unreachable(place: Place) -> None:
    brokers = f"127.0.0.1:{unused_port()}"
    args = ("--bootstrap-servers", brokers, "--group-id", place.group, "--timeout", "3")
    ran = connectctl(*args, "run", place.job(idle="1s"), "--yes")
    assert (ran.code, ran.err.count("\n"), brokers in ran.err) == (5, 1, True), ran.err


def test_brokers_of_another_cluster_that_do_not_answer_are_unreachable(place: Place) -> None:
    brokers = f"127.0.0.1:{unused_port()}"
    place.config["producer.override.bootstrap.servers"] = brokers
    ran = refused(place, flags=("--timeout", "3"))
    assert (ran.code, brokers in ran.err) == (5, True), ran.err


SUPPORT = {
    "null": "does not implement the API required for preflight validation of exactly-once source "
    "support",
    "UNSUPPORTED": "does not support exactly-once semantics with the provided configuration",
    "fail": "An unexpected error occurred during validation: asked too much",
}
BOUNDARIES = {
    "null": "returned a null value from its canDefineTransactionBoundaries method",
    "UNSUPPORTED": "does not support connector-defined transaction boundaries with the given "
    "configuration",
    "fail": "An unexpected error occurred during validation: asked too much",
}


@pytest.mark.parametrize("answer", [*SUPPORT, "SUPPORTED"])
@pytest.mark.parametrize("asked", ["exactly.once.support", "transaction.boundary", "both"])
def test_preflight_asks_the_connector_as_workers_do(place: Place, asked: str, answer: str) -> None:
    given = {"exactly.once.support": "required", "transaction.boundary": "connector"}
    place.config |= {"connector.class": ANSWERS, "says.support": answer, "says.boundaries": answer}
    place.config |= {k: v for k, v in given.items() if asked in (k, "both")}
    if answer == "SUPPORTED":
        ran = connectctl(*place.args(place.job(idle="1s"), "--dry-run"))
        assert (ran.code, place.name in ran.out) == (0, True), ran.err
        return
    ran = refused(place)
    assert ran.code == 2
    expected = [
        says[answer]
        for name, says in (("exactly.once.support", SUPPORT), ("transaction.boundary", BOUNDARIES))
        if asked in (name, "both")
    ]
    assert all(says in ran.err for says in expected), ran.err
    assert ("more:" in ran.err) is (len(set(expected)) > 1)

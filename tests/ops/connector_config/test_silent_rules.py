"""Settings that workers ignore, take literally, or lose records with; and the intervals that may be
too long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.worker import Support
from connectctl.ops.connector_config.evaluation import ConfigOutcome, evaluate
from connectctl.ops.connector_config.subject import Subject, Validation

SOURCE, SINK = "FileStreamSource", "FileStreamSink"
DLQ = "errors.deadletterqueue.topic.name"
FILTER = {"transforms": "f", "transforms.f.type": "org.apache.kafka.connect.transforms.Filter"}
BY_INTERVAL = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "60000"}


def found(
    config: Mapping[str, str | None], kind: str = SOURCE, name: str = "c", **more: Any
) -> dict[str, list[str]]:
    """The messages of the findings by id."""
    base = {"connector.class": kind, "topic" if kind == SOURCE else "topics": "t"}
    messages: dict[str, list[str]] = {}
    for finding in evaluate(Subject(name, {**base, **config}, **more)).findings:
        messages.setdefault(finding.id, []).append(finding.message)
    return messages


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("task.max", "tasks.max"),
        ("tasks.maximum", "tasks.max"),
        ("max.tasks", "tasks.max"),
        ("errors.tolerence", "errors.tolerance"),
        ("error.tolerance", "errors.tolerance"),
        ("errors.logs.include.messages", "errors.log.include.messages"),
        ("value.convertor", "value.converter"),
        ("transform", "transforms"),
        ("exactly.once.suport", "exactly.once.support"),
        ("producer.overide.acks", "producer.override.acks"),
        ("consumer.overrides.max.poll.records", "consumer.override.max.poll.records"),
    ],
)
def test_a_misspelt_property_of_connect_is_reported_with_what_is_meant(
    name: str, meant: str
) -> None:
    (message,) = found({name: "1"})["CONFIG016"]
    assert f"workers ignore {name}; do you mean {meant}?" in message


@pytest.mark.parametrize(
    "name",
    ["topics", "topic.prefix", "table.max", "tasks.max.enforce", "value.converter.schemas.enable", "some.property",
     "transforms.a.typ", "connection.url", "errors.retry.limit", "transaction.boundary.latency.ms", "mode"],
)  # fmt: skip
def test_a_property_that_is_right_or_resembles_none_is_not_reported(name: str) -> None:
    assert "CONFIG016" not in found({name: "1"})


def test_what_the_plugin_defines_or_what_is_set_as_well_is_no_mistake() -> None:
    defines = Validation("w", kind="source", properties=frozenset({"task.max", "tasks.max"}))
    assert "CONFIG016" not in found({"task.max": "1"}, validations=(defines,))
    assert "CONFIG016" not in found({"task.max": "1", "tasks.max": "2"})
    other = Validation("w", kind="source", properties=frozenset({"tasks.max"}))
    assert found({"task.max": "1"}, validations=(other,))["CONFIG016"] == [
        "Misspelt: workers ignore task.max; do you mean tasks.max?"
    ]


def test_a_placeholder_without_a_colon_is_literal_text() -> None:
    literal = found(
        {"tasks.max": "${TASKS_MAX}", "topic": "${TOPIC}", "file": "/tmp/${FILE}"}, name="${NAME}"
    )
    assert "Invalid value ${TASKS_MAX} for configuration tasks.max" in literal["CONFIG004"][0]
    assert "'${TOPIC}' contains one or more characters other than" in literal["CONFIG027"][0]
    assert [message.split(",")[0] for message in literal["CONFIG017"]] == [
        "name has ${NAME}",
        "file has ${FILE}",
    ]


@pytest.mark.parametrize(
    "config",
    [
        {"tasks.max": "${env:TASKS}"},
        {"topic": "${file:/a:b}"},
        {"table.name.format": "kafka_${topic}"},
        {"x": "$A"},
    ],
)
def test_a_reference_and_the_pattern_of_a_connector_are_no_placeholder(
    config: dict[str, str | None],
) -> None:
    assert not found(config).keys() & {"CONFIG004", "CONFIG017", "CONFIG027"}


@pytest.mark.parametrize(
    ("kind", "config", "lost"),
    [
        (SOURCE, {"errors.tolerance": "all"}, True),
        (SOURCE, {"errors.tolerance": "all", "errors.log.enable": "true"}, False),
        (SOURCE, {"errors.tolerance": "all", "errors.log.enable": "${env:LOG}"}, False),
        (SOURCE, {"errors.tolerance": "none"}, False),
        (SOURCE, {"errors.tolerance": "all", DLQ: "d"}, True),  # sources have no dead letter queue
        (SINK, {"errors.tolerance": "all"}, True),
        (SINK, {"errors.tolerance": "all", DLQ: "d"}, False),
        (SINK, FILTER, True),
        (
            SINK,
            FILTER | {"transforms.f.predicate": "p", "predicates": "p", "predicates.p.type": "x"},
            False,
        ),
        (SOURCE, {"event.processing.failure.handling.mode": "skip"}, True),
        (SOURCE, {"event.processing.failure.handling.mode": "warn"}, False),
        (SOURCE, {"producer.override.acks": "1"}, False),
    ],
)
def test_settings_under_which_records_are_lost_silently_are_reported(
    kind: str, config: dict[str, str | None], lost: bool
) -> None:
    assert ("CONFIG018" in found(config, kind)) is lost


def test_debezium_connectors_are_sources_where_no_worker_tells() -> None:
    base = "io.debezium.connector."
    kinds = {name: Subject("c", {"connector.class": base + name, "topics": "t"}).kind for name in (
        "postgresql.PostgresConnector", "mongodb.MongoDbSinkConnector", "jdbc.JdbcSinkConnector", "jdbc.Jdbc"
    )}  # fmt: skip
    assert list(kinds.values()) == ["source", "sink", "sink", "sink"]
    creates = {
        "connector.class": f"{base}mysql.MySqlConnector",
        "topic.creation.default.partitions": "6",
    }
    assert "topic.creation.default.replication.factor" in found(creates)["CONFIG015"][0]


@pytest.mark.parametrize(("timeout", "severity", "words"), [
    ("60000", "warning", "the broker may roll them back after 60000 ms"),
    ("59999", "error", "the broker rolls them back after 59999 ms"),
    ("80000", "warning", "the broker may roll them back after 80000 ms"),
    ("80001", None, ""),
])  # fmt: skip
def test_an_interval_nearly_as_long_as_the_timeout_may_be_rolled_back(
    timeout: str, severity: str | None, words: str
) -> None:
    config = {
        "connector.class": SOURCE,
        **BY_INTERVAL,
        "producer.override.transaction.timeout.ms": timeout,
    }
    told = [
        each
        for each in evaluate(Subject("c", config, Goal.ENABLED)).findings
        if each.id == "EOS011"
    ]
    assert [each.severity for each in told] == ([severity] if severity else [])
    assert all(words in each.message for each in told)


def test_workers_before_3_3_accept_what_requires_exactly_once_and_do_not_know_it() -> None:
    old = Validation("w", kind="source", support=Support.NOT_SUPPORTED)
    config = {"connector.class": SOURCE, "topic": "t", "exactly.once.support": "required"}
    judged = evaluate(Subject("c", config, validations=(old,)))
    (finding,) = [each for each in judged.findings if each.id == "EOS001"]
    assert (finding.severity, judged.outcome) == ("warning", ConfigOutcome.TAKEN)
    assert "workers before 3.3 do not know the property" in finding.message

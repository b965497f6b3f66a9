"""Every rule for configurations by a table, and what workers say besides, told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.worker import NOT_ENABLED, Support
from connectctl.ops.connector_config import validations
from connectctl.ops.connector_config.evaluation import ConfigOutcome, evaluate
from connectctl.ops.connector_config.exactly_once_rules import (
    NO_ANSWER_OF_CLASS,
    NOT_SUPPORTED_BY_CLASS,
)
from connectctl.ops.connector_config.property_values import listed, number_problem, topic_problem
from connectctl.ops.connector_config.subject import PluginAnswer, Subject, Validation, comparable
from connectctl.ops.core.errors import ConnectctlError, TimedOut, Unreachable
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule_docs import rule_docs
from hypothesis import given
from hypothesis import strategies as st

FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SUPPORT, BOUNDARY, INTERVAL = (
    "exactly.once.support",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
)
TIMEOUT = "producer.override.transaction.timeout.ms"
IDS = {id_ for id_ in rule_docs() if id_.startswith(("CONFIG", "EOS"))}


def validation(
    errors: Mapping[str, tuple[str, ...]] | None = None,
    *,
    enabled: bool = True,
    plugin: PluginAnswer = PluginAnswer.SUPPORTED,
    worker: str = "one:8083",
    kind: str = "source",
    **more: Any,
) -> Validation:
    support = Support.ENABLED if enabled else Support.NOT_ENABLED
    if kind == "sink":
        return Validation(worker, errors or {}, kind=kind)
    return Validation(worker, errors or {}, support=support, plugin=plugin, kind=kind, **more)


def subject(
    config: Mapping[str, str | None],
    *answers: Validation,
    goal: Goal = Goal.NOW,
    name: str = "c",
    **more: Any,
) -> Subject:
    return Subject(
        name, {"connector.class": FILE, "topic": "t"} | dict(config), goal, answers, **more
    )


def ids(found: Subject) -> list[str]:
    return sorted(finding.id for finding in evaluate(found).findings)


ELSEWHERE = "producer.override.bootstrap.servers"


def test_offsets_on_servers_that_the_context_names_give_no_finding() -> None:
    config = {ELSEWHERE: "there:9092,more:9092", "offsets.storage.topic": "o"}
    assert ids(subject(config, named_servers=("here:9092", "there:9092"))) == []
    assert ids(subject(config, named_servers=("here:9092",))) == ["CONFIG029"]
    own = {"producer.override.security.protocol": "SSL"}
    said = [evaluate(subject(config | more)).findings[0].message for more in ({}, own)]
    assert "connections are made without a login" in said[0]
    assert "connections are made with the connector's own login only" in said[1]


@pytest.mark.parametrize("goal", Goal)
@pytest.mark.parametrize("plugin", [PluginAnswer.SUPPORTED, PluginAnswer.UNKNOWN])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_connector_in_order_gives_no_finding(
    goal: Goal, plugin: PluginAnswer, enabled: bool
) -> None:
    config = {"connector.class": FILE, "topic": "t", "file": "x", "tasks.max": "1", "name": "c"}
    answers = (validation(enabled=enabled, plugin=plugin),)
    found = Subject(
        "c", config, goal, answers, group_id="g", offsets_topic="g-offsets", running=True
    )
    assert evaluate(found).findings == ()


SOURCE_TABLE: list[tuple[dict[str, str | None], Goal, list[str]]] = [
    ({SUPPORT: "required"}, Goal.ENABLED, []),
    ({SUPPORT: "required"}, Goal.PREPARING, ["EOS001"]),
    ({SUPPORT: " REQUIRED "}, Goal.DOWNGRADE, ["EOS001"]),
    ({SUPPORT: "requested"}, Goal.PREPARING, []),
    ({SUPPORT: "maybe"}, Goal.NOW, ["EOS006"]),
    ({SUPPORT: ""}, Goal.NOW, ["EOS006"]),
    ({SUPPORT: "${file:x:y}"}, Goal.PREPARING, []),
    ({BOUNDARY: "never"}, Goal.NOW, ["EOS007"]),
    ({BOUNDARY: "Poll"}, Goal.ENABLED, []),
    ({BOUNDARY: "poll"}, Goal.PREPARING, ["EOS013"]),
    ({INTERVAL: "-1"}, Goal.NOW, ["EOS009"]),
    ({INTERVAL: "1.5"}, Goal.NOW, ["EOS009"]),
    ({INTERVAL: str(2**63)}, Goal.NOW, ["EOS009"]),
    ({INTERVAL: "5"}, Goal.ENABLED, ["EOS010"]),
    ({BOUNDARY: "interval", INTERVAL: "44999"}, Goal.ENABLED, []),
    ({BOUNDARY: "interval", INTERVAL: "45000"}, Goal.ENABLED, ["EOS011"]),
    ({BOUNDARY: "interval", INTERVAL: "60000"}, Goal.ENABLED, ["EOS011"]),
    ({BOUNDARY: "interval", INTERVAL: "60000", TIMEOUT: "600000"}, Goal.ENABLED, []),
    ({BOUNDARY: "interval", INTERVAL: "60000"}, Goal.PREPARING, ["EOS013"]),
    ({BOUNDARY: "interval"}, Goal.ENABLED, ["EOS012"]),
    ({BOUNDARY: "interval", TIMEOUT: "80000"}, Goal.ENABLED, ["EOS012"]),
    ({BOUNDARY: "interval", TIMEOUT: "80001"}, Goal.ENABLED, []),
    ({"exactly.once.source.support": "enabled"}, Goal.NOW, ["EOS014"]),
    ({"offset.storage.topic": "o"}, Goal.NOW, ["EOS014"]),
    ({"transaction.boundary.latency.ms": "100"}, Goal.NOW, ["EOS016"]),
    ({"connector.class": " "}, Goal.NOW, ["CONFIG001"]),
    ({"name": "d"}, Goal.NOW, ["CONFIG002"]),
    ({"tasks.max": "0"}, Goal.NOW, ["CONFIG004"]),
    ({"tasks.max": "1.0"}, Goal.NOW, ["CONFIG004"]),
    ({"tasks.max": " +2 "}, Goal.NOW, []),
    ({"tasks.max.enforce": "no"}, Goal.NOW, ["CONFIG006"]),
    ({"tasks.max.enforce": "FALSE"}, Goal.NOW, ["CONFIG005"]),
    ({"errors.tolerance": "ALL"}, Goal.NOW, ["CONFIG006"]),
    ({"errors.tolerance": "all"}, Goal.NOW, ["CONFIG018"]),
    ({"errors.tolerance": "all", "errors.log.enable": "true"}, Goal.NOW, []),
    ({"errors.retry.timeout": ""}, Goal.NOW, ["CONFIG006"]),
    ({"errors.retry.delay.max.ms": "-7"}, Goal.NOW, []),
    ({"errors.log.enable": "yes"}, Goal.NOW, ["CONFIG006"]),
    ({"config.action.reload": "RESTART"}, Goal.NOW, ["CONFIG006"]),
    ({"anything": None}, Goal.NOW, ["CONFIG007"]),
    ({"transforms": "a"}, Goal.NOW, ["CONFIG012"]),
    ({"transforms": "a,a", "transforms.a.type": "x"}, Goal.NOW, ["CONFIG012"]),
    (
        {"transforms": "a,,b", "transforms.a.type": "x", "transforms.b.type": "x"},
        Goal.NOW,
        ["CONFIG012"],
    ),
    (
        {"transforms": "a", "transforms.a.type": "x", "transforms.a.negate": "true"},
        Goal.NOW,
        ["CONFIG012"],
    ),
    (
        {"transforms": "a", "transforms.a.type": "x", "transforms.a.predicate": "p"},
        Goal.NOW,
        ["CONFIG013"],
    ),
    (
        {"transforms": "a", "transforms.a.type": "x", "predicates": "p", "predicates.p.type": "y"},
        Goal.NOW,
        [],
    ),
    ({"predicates": "p"}, Goal.NOW, ["CONFIG012"]),
    ({"transforms.a.type": "x"}, Goal.NOW, ["CONFIG014"]),
    ({"predicates.p.type": "x"}, Goal.NOW, ["CONFIG014"]),
    ({"topic.creation.default.partitions": "1"}, Goal.NOW, ["CONFIG015"]),
    ({"topic.creation.groups": "g"}, Goal.NOW, ["CONFIG015", "CONFIG015"]),
    ({"producer.override.enable.idempotence": "false"}, Goal.ENABLED, ["CONFIG020"]),
    ({"producer.override.enable.idempotence": "TRUE"}, Goal.ENABLED, []),
    ({"producer.override.enable.idempotence": "false"}, Goal.PREPARING, []),
    ({"producer.override.transactional.id": "x"}, Goal.ENABLED, ["CONFIG020"]),
    ({"producer.override.transactional.id": "x"}, Goal.PREPARING, ["CONFIG023"]),
    ({"consumer.override.isolation.level": "read_uncommitted"}, Goal.ENABLED, ["CONFIG020"]),
    ({"consumer.override.isolation.level": "read_committed"}, Goal.ENABLED, []),
    ({"producer.override.acks": "1"}, Goal.ENABLED, ["CONFIG021"]),
    ({"producer.override.acks": "-1"}, Goal.ENABLED, []),
    ({"producer.override.acks": "1"}, Goal.PREPARING, []),
    (
        {"producer.override.acks": "0", "producer.override.enable.idempotence": "true"},
        Goal.PREPARING,
        ["CONFIG021"],
    ),
    ({"producer.override.retries": "0"}, Goal.ENABLED, ["CONFIG021"]),
    ({"producer.override.max.in.flight.requests.per.connection": "6"}, Goal.ENABLED, ["CONFIG021"]),
    ({"producer.override.max.in.flight.requests.per.connection": "5"}, Goal.ENABLED, []),
    ({TIMEOUT: "0"}, Goal.ENABLED, ["CONFIG022"]),
    ({TIMEOUT: "-5"}, Goal.PREPARING, []),
    ({"producer.override.acks": "ALL"}, Goal.PREPARING, ["CONFIG024"]),
    ({TIMEOUT: "soon"}, Goal.NOW, ["CONFIG024"]),
    ({"producer.override.security.protocol": "TLS"}, Goal.NOW, ["CONFIG024"]),
    ({"producer.override.security.protocol": "sasl_ssl"}, Goal.NOW, []),
    ({"producer.override.bootstrap.servers": " "}, Goal.NOW, ["CONFIG024"]),
    ({"admin.override.retry.backoff.ms": "-1"}, Goal.ENABLED, ["CONFIG024"]),
    ({"admin.override.retry.backoff.ms": "-1"}, Goal.PREPARING, []),
    (
        {"admin.override.retry.backoff.ms": "-1", "offsets.storage.topic": "o"},
        Goal.PREPARING,
        ["CONFIG024"],
    ),
    ({ELSEWHERE: "there:9092"}, Goal.ENABLED, ["CONFIG029"]),
    ({ELSEWHERE: "there:9092"}, Goal.PREPARING, []),
    ({ELSEWHERE: "there:9092", "offsets.storage.topic": "o"}, Goal.PREPARING, ["CONFIG029"]),
    ({"offsets.storage.topic": " "}, Goal.NOW, ["CONFIG026"]),
    ({"offsets.storage.topic": "a b"}, Goal.NOW, ["CONFIG026"]),
    ({"offsets.storage.topic": ".."}, Goal.NOW, ["CONFIG026"]),
    ({"offsets.storage.topic": "x" * 250}, Goal.NOW, ["CONFIG026"]),
    ({"offsets.storage.topic": "o"}, Goal.NOW, []),
    ({"topic": "a b"}, Goal.NOW, ["CONFIG027"]),
    ({"offsets.storage.topic": "t"}, Goal.ENABLED, ["STORE008"]),
    ({"topic": "workers-offsets"}, Goal.ENABLED, ["STORE008"]),
    ({"topic": "workers-offsets"}, Goal.PREPARING, []),
]


@pytest.mark.parametrize(("config", "goal", "expected"), SOURCE_TABLE)
def test_what_is_found_about_a_source(
    config: dict[str, str | None], goal: Goal, expected: list[str]
) -> None:
    assert ids(subject(config, goal=goal, offsets_topic="workers-offsets")) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, []),
        ({"topics": " "}, ["CONFIG008"]),
        ({"topics.regex": "x"}, ["CONFIG008"]),
        ({"topics": "a,a"}, ["CONFIG008"]),
        ({"topics": "a,,b"}, ["CONFIG008"]),
        ({"topics": "a b"}, ["CONFIG027"]),
        ({"errors.deadletterqueue.topic.name": "a", "errors.tolerance": "all"}, ["CONFIG009"]),
        ({"errors.deadletterqueue.topic.name": "d", "errors.tolerance": "all"}, []),
        ({"errors.deadletterqueue.topic.name": "d"}, ["CONFIG010"]),
        ({"errors.deadletterqueue.topic.name": "d!", "errors.tolerance": "all"}, ["CONFIG027"]),
        ({"errors.deadletterqueue.topic.replication.factor": "40000"}, ["CONFIG006"]),
        ({"errors.deadletterqueue.context.headers.enable": "x"}, ["CONFIG006"]),
        ({"consumer.override.group.id": "workers"}, ["CONFIG011"]),
        ({"consumer.override.isolation.level": "dirty"}, ["CONFIG024"]),
        ({"producer.override.acks": "1"}, []),
        ({SUPPORT: "required", BOUNDARY: "never", INTERVAL: "-1"}, ["EOS013"]),
    ],
)
@pytest.mark.parametrize("goal", [Goal.NOW, Goal.ENABLED])
def test_what_is_found_about_a_sink(
    config: dict[str, str | None], expected: list[str], goal: Goal
) -> None:
    whole = {"connector.class": SINK, "topics": "a"} | config
    assert ids(Subject("c", whole, goal, group_id="workers")) == expected


def test_a_sink_by_its_name_in_the_workers_group() -> None:
    found = Subject("x", {"connector.class": SINK, "topics": "a"}, group_id="connect-x")
    assert ids(found) == ["CONFIG011"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", ["CONFIG002"]),
        ("a\tb", ["CONFIG002"]),
        ("a\x85b", ["CONFIG002"]),
        ("a/b", ["CONFIG003"]),
        ("a\\b", ["CONFIG003"]),
        ("50%", ["CONFIG003"]),
        ("..", ["CONFIG003"]),
        ("a b-c.d_ü", []),
    ],
)
def test_names(name: str, expected: list[str]) -> None:
    assert ids(subject({}, name=name)) == expected


@pytest.mark.parametrize(
    ("support", "plugin", "enabled", "expected", "outcome"),
    [
        ("required", PluginAnswer.SUPPORTED, True, [], ConfigOutcome.TAKEN),
        ("required", PluginAnswer.SUPPORTED, False, ["EOS001"], ConfigOutcome.REFUSED),
        ("required", PluginAnswer.UNSUPPORTED, True, ["EOS002"], ConfigOutcome.REFUSED),
        ("required", PluginAnswer.UNSUPPORTED, False, ["EOS001", "EOS002"], ConfigOutcome.REFUSED),
        ("required", PluginAnswer.UNKNOWN, True, ["EOS003"], ConfigOutcome.REFUSED),
        ("required", PluginAnswer.FAILS, True, ["EOS004"], ConfigOutcome.REFUSED),
        ("requested", PluginAnswer.UNSUPPORTED, True, ["EOS005"], ConfigOutcome.TAKEN),
        ("requested", PluginAnswer.UNSUPPORTED, False, [], ConfigOutcome.TAKEN),
        ("requested", PluginAnswer.FAILS, True, ["EOS005"], ConfigOutcome.TAKEN),
        ("requested", PluginAnswer.UNKNOWN, True, [], ConfigOutcome.TAKEN),
    ],
)
def test_what_the_plugin_says(
    support: str, plugin: PluginAnswer, enabled: bool, expected: list[str], outcome: ConfigOutcome
) -> None:
    texts = {
        PluginAnswer.UNSUPPORTED: NOT_SUPPORTED_BY_CLASS,
        PluginAnswer.UNKNOWN: NO_ANSWER_OF_CLASS,
        PluginAnswer.FAILS: "An unexpected error",
    }
    said = (*(() if enabled else (NOT_ENABLED,)), *([texts[plugin]] if plugin in texts else []))
    errors = {SUPPORT: said} if support == "required" and said else {}
    detail = "An unexpected error" if plugin is PluginAnswer.FAILS else None
    found = subject(
        {SUPPORT: support}, validation(errors, enabled=enabled, plugin=plugin, detail=detail)
    )
    assert (ids(found), evaluate(found).outcome) == (expected, outcome)


def test_a_boundary_that_the_connector_does_not_define_is_told_in_the_workers_words() -> None:
    text = (
        "The connector does not support connector-defined transaction boundaries with the "
        "given configuration."
    )
    (found,) = evaluate(subject({BOUNDARY: "connector"}, validation({BOUNDARY: (text,)}))).findings
    assert (found.id, found.message) == ("EOS008", text)


def test_the_words_to_choose_from_are_in_the_workers_order_and_told_once() -> None:
    text = (
        "Invalid value never for configuration transaction.boundary: String must be one of "
        "(case insensitive): "
    )
    theirs = f"{text}INTERVAL, POLL, CONNECTOR"
    (found,) = evaluate(subject({BOUNDARY: "never"}, validation({BOUNDARY: (theirs,)}))).findings
    assert (found.id, found.message) == ("EOS007", theirs)


def test_what_validation_decides_counts_for_nothing_where_workers_do_not_say_it() -> None:
    assert ids(subject({"errors.tolerance": "ALL"}, validation())) == []
    gave_up = validation(
        {"": ("Invalid value x for configuration linger.ms: Not a number of type LONG",)}
    )
    assert ids(subject({"errors.tolerance": "ALL"}, gave_up)) == ["CONFIG006", "CONFIG030"]


def test_an_error_that_no_rule_knows_is_the_workers_own() -> None:
    (found,) = evaluate(subject({}, validation({"batch.size": ("is too small",)}))).findings
    assert (found.id, found.message, found.next_step) == (
        "CONFIG030",
        "batch.size: is too small",
        "Correct batch.size.",
    )


def test_errors_that_follow_from_others_are_left_out() -> None:
    texts = (
        "Invalid value x for configuration n: Not a number",
        "Invalid value null for configuration n: must be",
    )
    assert ids(subject({"n": "x"}, validation({"n": texts}))) == ["CONFIG030"]


def test_a_refused_override_is_the_policys_and_for_enabled_before_it_is_asked() -> None:
    text = (
        "The 'None' policy does not allow 'acks' to be overridden in the connector configuration."
    )
    name = "producer.override.acks"
    assert ids(subject({name: "all"}, validation({name: (text,)}))) == ["CONFIG025"]
    later = validation(enabled=False, once_enabled={"admin.override.retries": (text,)})
    assert ids(subject({}, later)) == []
    assert ids(subject({}, later, goal=Goal.ENABLED)) == ["CONFIG025"]


@pytest.mark.parametrize(
    ("release", "policy", "expected"),
    [
        ((5, 0), None, ["CONFIG028"]),
        ((5, 1), None, ["CONFIG028"]),
        ((4, 3), None, []),
        (None, None, []),
        ((5, 0), "All", []),
        ((5, 0), "Allowlist", []),  # what it allows the workers' own validation tells today
    ],
)
def test_overrides_that_the_default_of_a_later_release_refuses(
    release: tuple[int, int] | None, policy: str | None, expected: list[str]
) -> None:
    config = {
        "producer.override.linger.ms": "5",
        "admin.override.retries": "9",
        "offsets.storage.topic": "own",
    }
    found = evaluate(subject(config, validation(), release=release, policy=policy)).findings
    assert [f.id for f in found] == expected
    if found:
        assert "producer.override.linger.ms, admin.override.retries" in found[0].message
        assert "connector.client.config.override.allowlist=linger.ms,retries" in str(
            found[0].next_step
        )


def test_overrides_of_clients_that_a_connector_has_not_are_not_asked_about() -> None:
    found = subject({"admin.override.retries": "9"}, goal=Goal.PREPARING, release=(5, 0))
    assert ids(found) == []
    assert ids(subject({"admin.override.retries": "9"}, goal=Goal.ENABLED, release=(5, 0))) == [
        "CONFIG028"
    ]
    sink = {"connector.class": "x.Sink", "topics": "t", "consumer.override.max.poll.records": "9"}
    assert "CONFIG028" in ids(subject(sink, release=(5, 0)))


def test_a_class_that_no_worker_has_is_told_without_the_list_of_all_others() -> None:
    text = (
        "Failed to find any class that implements Connector and which name matches x, "
        "available connectors are: y, z"
    )
    (found,) = evaluate(subject({}, validation({"": (text,)}))).findings
    assert (found.id, found.message) == ("CONFIG001", "No such class x.")


def test_workers_that_disagree_are_named_with_what_they_say() -> None:
    one = validation({SUPPORT: (NOT_ENABLED,)}, enabled=False)
    two = validation(worker="two:8083")
    found = evaluate(subject({SUPPORT: "required"}, one, two)).findings
    assert [finding.id for finding in found] == ["EOS001", "EOS015"]
    assert found[1].message == f"one:8083 reports: {NOT_ENABLED} two:8083 accepts it.".replace(
        ". two", "; two"
    )


def test_plugins_that_answer_differently_are_a_disagreement() -> None:
    answers = (validation(), validation(worker="two:8083", plugin=PluginAnswer.UNKNOWN))
    (found,) = evaluate(subject({}, *answers)).findings
    assert found.id == "EOS015"
    assert "supported on one:8083; unknown on two:8083" in found.message


@pytest.mark.parametrize("goal", [Goal.PREPARING, Goal.DOWNGRADE])
@pytest.mark.parametrize(
    "plugin", [PluginAnswer.SUPPORTED, PluginAnswer.UNSUPPORTED, PluginAnswer.FAILS]
)
@pytest.mark.parametrize("enabled", [True, False])
def test_a_connector_that_requires_exactly_once_is_no_reason_not_to_go_down(
    goal: Goal, plugin: PluginAnswer, enabled: bool
) -> None:
    said = {} if enabled else {SUPPORT: (NOT_ENABLED,)}
    answer = validation(said, enabled=enabled, plugin=plugin)
    (found,) = evaluate(subject({SUPPORT: "required"}, answer, goal=goal, running=True)).findings
    assert (found.id, found.severity) == ("EOS001", Severity.WARNING)
    assert "keeps running" in found.message
    assert "requested" in str(found.next_step)
    (created,) = evaluate(
        subject({SUPPORT: "required"}, validation(plugin=PluginAnswer.SUPPORTED), goal=goal)
    ).findings
    assert (created.id, created.severity) == ("EOS001", Severity.ERROR)


@pytest.mark.parametrize("enabled", [True, False])
def test_for_enabled_and_for_preparing_do_not_depend_on_what_workers_are(enabled: bool) -> None:
    said = {SUPPORT: (NOT_ENABLED,)} if not enabled else {}
    answer = validation(said, enabled=enabled)
    assert ids(subject({SUPPORT: "required"}, answer, goal=Goal.ENABLED)) == []
    assert ids(subject({SUPPORT: "required"}, answer, goal=Goal.PREPARING)) == ["EOS001"]


def test_secrets_appear_in_no_finding_even_where_a_worker_looked_them_up() -> None:
    config = {"database.password": "hunter22", "db.url": "${file:/x:url}", "other": "x"}
    errors = {
        "database.password": (
            "Invalid value hunter22 for configuration database.password: too short",
        ),
        "db.url": ("Invalid value jdbc:a:b@c for configuration db.url: no",),
        "other": ("cannot log in with hunter22",),
    }
    told = " ".join(f.message for f in evaluate(subject(config, validation(errors))).findings)
    assert "hunter22" not in told
    assert "jdbc" not in told
    assert "${file:/x:url}" not in told


@pytest.mark.parametrize(
    ("value", "type_", "least", "fine"),
    [
        ("1", "INT", 1, True),
        (" 1 ", "INT", 1, True),
        ("0", "INT", 1, False),
        ("2147483647", "INT", None, True),
        ("2147483648", "INT", None, False),
        ("-32768", "SHORT", None, True),
        ("32768", "SHORT", None, False),
        ("1_000", "LONG", None, False),
        ("", "LONG", None, False),
    ],
)
def test_numbers_are_read_as_java_reads_them(
    value: str, type_: str, least: int | None, fine: bool
) -> None:
    assert (number_problem("x", value, type_, least) is None) == fine


def test_lists_are_split_as_connect_splits_them() -> None:
    assert [listed(text) for text in (None, " ", "a", "a , b", "a,,b", "a,")] == [
        [],
        [],
        ["a"],
        ["a", "b"],
        ["a", "", "b"],
        ["a", ""],
    ]


@given(st.permutations(["A", "B", "C"]))
def test_the_order_of_words_makes_no_difference(words: list[str]) -> None:
    assert comparable(f"x must be one of: {', '.join(words)}") == comparable(
        "x must be one of: A, B, C"
    )


@given(st.text(max_size=300))
def test_a_topic_is_fine_only_as_kafka_has_it(name: str) -> None:
    fine = (
        0 < len(name) < 250
        and name not in (".", "..")
        and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)
    )
    assert (topic_problem(name) is None) == fine


NAMES = st.sampled_from(
    [name for config, _, _ in SOURCE_TABLE for name in config]
    + ["name", "topics", "topics.regex", "file", "a.password"]
)


@given(
    st.dictionaries(NAMES, st.none() | st.text(max_size=8), max_size=8),
    st.text(max_size=5),
    st.sampled_from(Goal),
)
def test_any_configuration_is_judged_and_every_finding_can_be_explained(
    config: dict[str, str | None], name: str, goal: Goal
) -> None:
    for finding in evaluate(Subject(name, config, goal, group_id="g", offsets_topic="o")).findings:
        assert finding.id in IDS | {"STORE008"}
        assert finding.next_step
        assert finding.why


# ------------------------------------------------------------------------------- asking the workers


class Calls:
    """Workers that answer validations: by URL a function of the configuration, or an error."""

    def __init__(self, answers: Mapping[str, Any]):
        self.answers = answers
        self.urls = tuple(answers)
        self.asked: list[tuple[str, str, Mapping[str, str]]] = []

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        raise AssertionError

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        url: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        assert method == "PUT"
        self.asked.append((url or "", path, body))
        answer = self.answers[url or ""]
        found = answer(body) if callable(answer) else answer
        if isinstance(found, Exception):
            raise found
        return found


def source(
    *,
    enabled: bool = True,
    plugin: tuple[str, ...] = (),
    more: Mapping[str, tuple[str, ...]] | None = None,
) -> Any:
    def answer(config: Mapping[str, str]) -> Any:
        own = (
            (*(() if enabled else (NOT_ENABLED,)), *plugin)
            if config.get(SUPPORT) == "required"
            else ()
        )
        errors = {SUPPORT: own} | dict(more or {})
        return {
            "configs": [
                {"value": {"name": name, "errors": list(texts)}} for name, texts in errors.items()
            ]
        }

    return answer


def ask(
    answers: Mapping[str, Any], config: Mapping[str, str | None] | None = None
) -> tuple[Validation, ...]:
    return validations.ask(
        Calls(answers), tuple(answers), {"c": {"connector.class": FILE} | dict(config or {})}
    )["c"]


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ((), PluginAnswer.SUPPORTED),
        ((NOT_SUPPORTED_BY_CLASS,), PluginAnswer.UNSUPPORTED),
        ((NO_ANSWER_OF_CLASS,), PluginAnswer.UNKNOWN),
        (("An unexpected error occurred during validation: oops",), PluginAnswer.FAILS),
    ],
)
def test_the_plugins_answer_is_known_on_any_worker(
    said: tuple[str, ...], expected: PluginAnswer, enabled: bool
) -> None:
    (found,) = ask({"http://one:8083": source(enabled=enabled, plugin=said)})
    assert (found.worker, found.plugin, found.kind, found.errors) == (
        "one:8083",
        expected,
        "source",
        {},
    )
    assert found.support is (Support.ENABLED if enabled else Support.NOT_ENABLED)


def test_a_sink_is_not_asked_about_exactly_once() -> None:
    calls = Calls(
        {"http://one:8083": {"configs": [{"value": {"name": "topics.regex", "errors": ["no"]}}]}}
    )
    (found,) = validations.ask(calls, calls.urls, {"c": {"connector.class": SINK}})["c"]
    assert (found.kind, found.errors, len(calls.asked)) == ("sink", {"topics.regex": ("no",)}, 1)


def test_a_worker_before_3_3_supports_nothing() -> None:
    (found,) = ask({"u": {"configs": [{"value": {"name": "topic.creation.groups", "errors": []}}]}})
    assert (found.support, found.plugin) == (Support.NOT_SUPPORTED, PluginAnswer.NOT_ASKED)


def test_overrides_of_clients_to_come_are_checked_with_an_offsets_topic() -> None:
    calls = Calls({"u": source(enabled=False)})
    validations.ask(calls, ("u",), {"c": {"connector.class": FILE, "admin.override.retries": "5"}})
    assert [body.get("offsets.storage.topic") for _, _, body in calls.asked] == [
        None,
        "connectctl-probe",
    ]


def test_a_probe_that_the_worker_gives_up_on_does_not_hide_the_plugins_answer() -> None:
    text = "Invalid value x for configuration retries: Not a number of type INT"

    def answer(config: Mapping[str, str]) -> Any:
        if "offsets.storage.topic" in config:
            return ConnectctlError(
                "500",
                why=f"org.apache.kafka.common.config.ConfigException: {text}",
                code="worker-error",
            )
        return source(enabled=False)(config)

    (found,) = ask({"u": answer}, {"admin.override.retries": "x"})
    assert (found.plugin, found.once_enabled, found.errors) == (
        PluginAnswer.SUPPORTED,
        {"": (text,)},
        {},
    )


def test_what_a_worker_answers_instead_of_a_validation_is_an_error_of_the_whole_configuration() -> (
    None
):
    error = ConnectctlError(
        "500", why="org.apache.kafka.x.BadRequestException: no such class", code="worker-error"
    )
    (found,) = ask({"u": error})
    assert (found.errors, found.problem) == ({"": ("no such class",)}, None)


@pytest.mark.parametrize(
    "answer",
    [
        Unreachable("gone", why="refused"),
        TimedOut("late"),
        ConnectctlError("x", code="not-connect"),
        {"a": 1},
        [1],
        None,
    ],
)
def test_a_worker_without_an_answer_is_a_problem_and_no_pass(answer: Any) -> None:
    found = validations.ask(
        Calls({"http://one:1": answer, "http://two:2": source()}),
        ["http://one:1", "http://two:2"],
        {"a": {"connector.class": FILE}, "b": {"connector.class": FILE}},
    )
    assert all(each[0].problem and each[1].problem is None for each in found.values())
    (unseen,) = validations.unseen(found)
    assert unseen.what == "the validation of 2 connectors on one:1"


def test_a_configuration_without_a_class_is_asked_about_nowhere() -> None:
    calls = Calls({"u": source()})
    assert validations.ask(calls, ("u",), {"c": {"connector.class": " "}, "d": {}}) == {
        "c": (),
        "d": (),
    }
    assert calls.asked == []


def test_the_name_is_sent_whatever_the_file_says() -> None:
    calls = Calls({"u": source()})
    validations.ask(calls, ("u",), {"c": {"connector.class": "a b/c", "name": "x"}})
    assert {(path, body["name"]) for _, path, body in calls.asked} == {
        ("/connector-plugins/a%20b%2Fc/config/validate", "c")
    }


# --------------------------------------------------------------------------- asking many about much

WORKERS = [f"http://w{n}:8083" for n in range(50)]


def many(count: int, *classes: str) -> dict[str, dict[str, str]]:
    """So many configurations, of which the last has a property of its own."""
    kinds = classes or (FILE,)
    found = {f"c{n}": {"connector.class": kinds[n % len(kinds)], "n": str(n)} for n in range(count)}
    return found | {f"c{count - 1}": found[f"c{count - 1}"] | {"odd": "1"}}


def test_what_is_few_is_asked_of_every_worker() -> None:
    pairs = validations.assignments(WORKERS, many(20), 1_000)
    assert (len(pairs), len(set(pairs))) == (1_000, 1_000)
    assert len(validations.assignments(WORKERS, many(21))) == 1_050


@pytest.mark.parametrize("count", [21, 1_000, 10_000])
def test_no_worker_is_asked_more_in_a_check_however_many_connectors_there_are(count: int) -> None:
    pairs = validations.assignments(WORKERS, many(count, FILE, SINK, "x.Other"), 1_000)
    by_worker = Counter(url for _, url in pairs)
    assert len(pairs) <= 1_000
    assert max(by_worker.values()) <= 20
    everywhere = [
        name for name, n in Counter(name for name, _ in pairs).items() if n == len(WORKERS)
    ]
    assert everywhere[:3] == ["c0", "c1", "c2"]
    assert f"c{count - 1}" in {name for name, _ in pairs}


def test_many_classes_are_each_asked_about_once_at_least() -> None:
    configs = many(700, *(f"x.C{n}" for n in range(700)))
    pairs = validations.assignments(WORKERS, configs, 1_000)
    assert len({name for name, _ in pairs}) == 510
    assert (
        len(validations.assignments([f"http://w{n}" for n in range(2_000)], many(2), 1_000))
        == 1_000
    )


def test_what_no_worker_was_asked_about_is_told_with_how_to_ask() -> None:
    configs = many(3_000) | {"none": {}}
    calls = Calls(dict.fromkeys(WORKERS, source()))
    answers = validations.ask(calls, WORKERS, configs, most=1_000)
    (unseen,) = validations.not_validated(WORKERS, answers, configs)
    assert unseen.what == "the workers' validation of 2,049 of 3,001 configurations"
    assert unseen.why == "with 50 workers a check asks each worker to validate at most 20 of them"
    assert len(calls.asked) == 2_000
    assert list(validations.not_validated(WORKERS[:1], {"none": ()}, {"none": {}})) == []


def test_workers_that_were_not_asked_about_a_configuration_are_known_by_what_they_prove_elsewhere() -> (
    None
):
    assert Subject("c", {}, supports=frozenset({Support.ENABLED, Support.UNKNOWN})).modes == {True}
    asked = (Validation("w", support=Support.NOT_ENABLED),)
    assert Subject("c", {}, validations=asked, supports=frozenset({Support.ENABLED})).modes == {
        False
    }
    assert Subject("c", {}).modes == frozenset()

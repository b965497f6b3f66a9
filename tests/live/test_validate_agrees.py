"""What ``validate`` says of a configuration is what a real worker then does with it, in each of the
three modes.

A configuration is refused (the worker answers the creation with an error), fails (it is created,
and connector or task become FAILED), or is taken. Where running adds nothing the connector is
created stopped, to be quick.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.missing_class import missing_class
from connectctl.ops.sandbox.cluster import SandboxSpec, down
from connectctl.ops.sandbox.jars.versions import LATEST
from connectctl.ops.sandbox.properties import internal_topics
from fakes.sandboxes import extra_group
from live.real import FILE_SOURCE, Workers, connectctl, eventually, write
from otherbrokers import KAFKA, up_as_asked

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live

FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
TESTABLE = "org.apache.kafka.connect.integration.TestableSourceConnector"
VERIFIABLE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
INSERT = "org.apache.kafka.connect.transforms.InsertField$Value"
NOT_ENABLED = "This worker does not have exactly-once source support enabled."
AT_ONCE = 12
RELEASE = KAFKA or LATEST
REFUSED, FAILS, TAKEN = "refused", "fails", "taken"


@dataclass(frozen=True)
class Case:
    """A configuration, what becomes of it, and whether it has to run to show it. ``{own}`` stands
    for its own topic.
    """

    label: str
    outcome: str
    more: dict[str, Any] = field(default_factory=dict)
    base: str = "file"
    runs: bool = False


def override(label: str, outcome: str, name: str, value: str, *, runs: bool = True) -> Case:
    return Case(label, outcome, {name: value}, runs=runs)


ANYWHERE = [
    Case("nothing special", TAKEN, runs=True),
    Case("a short class name", TAKEN, {"connector.class": "FileStreamSource"}),
    Case(
        "numbers and switches that are no text",
        TAKEN,
        {"tasks.max": 2, "errors.log.enable": True, "x": 1.50},
    ),
    Case(
        "blanks around words and numbers",
        TAKEN,
        {"tasks.max": " 2 ", "transaction.boundary": " Poll "},
    ),
    Case("an unknown property", TAKEN, {"some.property": "x"}),
    Case(
        "versions of plugins",
        TAKEN,
        {
            "connector.plugin.version": "[4.0,5.0)",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.plugin.version": RELEASE,
            "transforms": "t",
            "transforms.t.type": INSERT,
            "transforms.t.static.field": "f",
            "transforms.t.static.value": "v",
            "transforms.t.plugin.version": RELEASE,
        },
    ),
    Case("a version that no worker has", REFUSED, {"connector.plugin.version": "9.9"}),
    Case("a class that is nowhere", REFUSED, {"connector.class": "no.such.Connector"}),
    Case("a missing topic", REFUSED, {"topic": None, "file": "x"}),
    Case("support neither", REFUSED, {"exactly.once.support": "maybe"}),
    Case("support empty", REFUSED, {"exactly.once.support": ""}),
    Case("boundary neither", REFUSED, {"transaction.boundary": "never"}),
    Case("boundary unsupported", REFUSED, {"transaction.boundary": "connector"}),
    Case(
        "boundary null",
        REFUSED,
        {"transaction.boundary": "connector", "custom.transaction.boundaries": "null"},
        "testable",
    ),
    Case(
        "boundary fails",
        REFUSED,
        {"transaction.boundary": "connector", "custom.transaction.boundaries": "fail"},
        "testable",
    ),
    Case(
        "boundary of the connector",
        TAKEN,
        {"transaction.boundary": "connector", "custom.transaction.boundaries": "supported"},
        "testable",
    ),
    Case("interval negative", REFUSED, {"transaction.boundary.interval.ms": "-1"}),
    Case("interval no number", REFUSED, {"transaction.boundary.interval.ms": "1.5"}),
    Case("interval not used", TAKEN, {"transaction.boundary.interval.ms": "500"}),
    Case("tasks.max 0", REFUSED, {"tasks.max": "0"}),
    Case("tasks.max no number", REFUSED, {"tasks.max": "many"}),
    Case("tasks.max.enforce no switch", REFUSED, {"tasks.max.enforce": "perhaps"}),
    Case("tasks.max.enforce false", TAKEN, {"tasks.max.enforce": "false"}),
    Case("tolerance neither", REFUSED, {"errors.tolerance": "ALL"}),
    Case("retry no number", REFUSED, {"errors.retry.timeout": "soon"}),
    Case("reload neither", REFUSED, {"config.action.reload": "RESTART"}),
    Case("a converter that is nowhere", REFUSED, {"value.converter": "no.such.Converter"}),
    Case("a transformation without a type", REFUSED, {"transforms": "a"}),
    Case("a transformation twice", REFUSED, {"transforms": "a,a", "transforms.a.type": INSERT}),
    Case("a transformation not listed", TAKEN, {"transforms.a.type": INSERT}),
    Case(
        "an unknown predicate",
        FAILS,
        {
            "transforms": "a",
            "transforms.a.type": INSERT,
            "transforms.a.static.field": "f",
            "transforms.a.static.value": "v",
            "transforms.a.predicate": "p",
        },
        runs=True,
    ),
    Case(
        "negation of nothing",
        REFUSED,
        {"transforms": "a", "transforms.a.type": INSERT, "transforms.a.negate": "true"},
    ),
    Case(
        "topic creation without defaults",
        FAILS,
        {"topic.creation.default.partitions": "1"},
        runs=True,
    ),
    Case("topic creation groups twice", REFUSED, {"topic.creation.groups": "a,a"}),
    Case("no offsets topic", REFUSED, {"offsets.storage.topic": ""}),
    Case(
        "an offsets topic that cannot be", FAILS, {"offsets.storage.topic": "bad topic!"}, runs=True
    ),
    Case("a sink", TAKEN, base="sink"),
    Case("a sink without topics", REFUSED, {"topics": " "}, "sink"),
    Case("a sink with topics twice", REFUSED, {"topics.regex": "x"}, "sink"),
    Case("a sink with a doubled topic", REFUSED, {"topics": "a,a"}, "sink"),
    Case(
        "a sink with its dead letters",
        REFUSED,
        {"errors.deadletterqueue.topic.name": "{own}"},
        "sink",
    ),
    Case(
        "a sink in the workers' group", REFUSED, {"consumer.override.group.id": "{group}"}, "sink"
    ),
    Case("a sink that requires exactly-once", TAKEN, {"exactly.once.support": "required"}, "sink"),
    Case("a sink with a topic that cannot be", FAILS, {"topics": "bad topic!"}, "sink", runs=True),
]
WITH_OVERRIDES = [
    override("acks that are no word", FAILS, "producer.override.acks", "ALL"),
    override("compression unknown", FAILS, "producer.override.compression.type", "zip"),
    override(
        "in flight no number",
        REFUSED,
        "producer.override.max.in.flight.requests.per.connection",
        "x",
        runs=False,
    ),
    Case(
        "a sink's isolation unknown",
        FAILS,
        {"consumer.override.isolation.level": "dirty"},
        "sink",
        runs=True,
    ),
    Case(
        "idempotence asked for, acks not",
        FAILS,
        {"producer.override.enable.idempotence": "true", "producer.override.acks": "1"},
        runs=True,
    ),
]
ENABLED = [
    *ANYWHERE,
    *WITH_OVERRIDES,
    Case("required", TAKEN, {"exactly.once.support": "REQUIRED"}, runs=True),
    *(
        Case(
            f"required, {said}",
            REFUSED,
            {"exactly.once.support": "required", "custom.exactly.once.support": said},
            "testable",
        )
        for said in ("unsupported", "null", "fail")
    ),
    override("acks", FAILS, "producer.override.acks", "1"),
    override("retries", FAILS, "producer.override.retries", "0"),
    override("in flight", FAILS, "producer.override.max.in.flight.requests.per.connection", "6"),
    override("idempotence ignored", TAKEN, "producer.override.enable.idempotence", "false"),
    override("transactional id ignored", TAKEN, "producer.override.transactional.id", "mine"),
    override("isolation ignored", TAKEN, "consumer.override.isolation.level", "read_uncommitted"),
    override("a poll of no number", REFUSED, "consumer.override.max.poll.records", "x", runs=False),
    override("a negative back-off", FAILS, "admin.override.retry.backoff.ms", "-1"),
    Case(
        "its own offsets topic",
        FAILS,
        {"topic": "{own}", "offsets.storage.topic": "{own}"},
        "verifiable",
        runs=True,
    ),
]
NOT_ENABLED_EITHER = [
    Case("required", REFUSED, {"exactly.once.support": "required"}),
    Case("required, null", REFUSED, {"exactly.once.support": "required"}, "verifiable"),
    Case("requested", TAKEN, {"exactly.once.support": "requested"}, runs=True),
]
DISABLED = [
    *NOT_ENABLED_EITHER,
    *WITH_OVERRIDES,
    override("acks", TAKEN, "producer.override.acks", "1"),
    override("retries", TAKEN, "producer.override.retries", "0"),
    override("transactional id", FAILS, "producer.override.transactional.id", "mine"),
    override("a poll of no number", TAKEN, "consumer.override.max.poll.records", "x"),
    override("a negative back-off", TAKEN, "admin.override.retry.backoff.ms", "-1"),
]
PREPARING = [
    *NOT_ENABLED_EITHER,
    override("acks not allowed", REFUSED, "producer.override.acks", "1", runs=False),
    override(
        "a principal's mechanism", TAKEN, "producer.override.sasl.mechanism", "PLAIN", runs=False
    ),
    override(
        "an admin's that nobody looks at",
        TAKEN,
        "admin.override.retry.backoff.ms",
        "10",
        runs=False,
    ),
    Case(
        "a dedicated topic brings an admin",
        REFUSED,
        {"offsets.storage.topic": "{own}", "admin.override.retries": "5"},
    ),
]


@dataclass(frozen=True)
class Group:
    """Workers of one mode."""

    url: str
    id: str
    options: tuple[str, ...]
    bootstrap: str = ""

    @property
    def workers(self) -> Workers:
        return Workers(self.url)


@pytest.fixture(scope="module")
def others(state_home: Path) -> Iterator[dict[str, Group]]:
    """A worker that is disabled, and one that is preparing and lets connectors override a principal
    only.
    """
    policy = {"connector.client.config.override.policy": "Principal"}
    try:
        sandbox = up_as_asked(SandboxSpec(name="validate", workers=1))
        preparing = extra_group(
            sandbox, "validate-preparing", support="preparing", properties=policy
        )
        yield {
            "disabled": _by_rest(sandbox.rest_urls[0], sandbox.group_id, sandbox.bootstrap_servers),
            "preparing": _by_rest(
                preparing.rest_urls[0], preparing.group_id, sandbox.bootstrap_servers
            ),
        }
    finally:
        down("validate")


def _by_rest(url: str, group: str, bootstrap: str) -> Group:
    return Group(url, group, ("--rest", url, "--group-id", group), bootstrap)


@contextmanager
def _from_before(group: Group, name: str, config: dict[str, str]) -> Iterator[Workers]:
    """A connector that was there before the workers became what they are: nobody validates what the
    config topic has.
    """
    key, value = f"connector-{name}", {"properties": {**config, "name": name, "tasks.max": "1"}}
    write(group.bootstrap, internal_topics(group.id)["config"], (key, value))
    try:
        yield group.workers
    finally:
        group.workers.delete(name)


def _enabled(cluster: Sandbox) -> Group:
    return Group(
        cluster.rest_urls[0], cluster.group_id, ("--context", f"sandbox-{cluster.spec.name}")
    )


def _configs(
    cases: list[Case], group: Group, directory: Path
) -> dict[str, tuple[Case, dict[str, Any]]]:
    """The cases by a name of their own."""
    source, out = directory / "in.txt", directory / "out.txt"
    source.write_text("one\ntwo\n")
    found = {}
    for case in cases:
        name = f"validate-{uuid.uuid4().hex[:10]}"
        bases: dict[str, dict[str, Any]] = {
            "file": {"connector.class": FILE_SOURCE, "topic": name, "file": str(source)},
            "sink": {"connector.class": FILE_SINK, "topics": name, "file": str(out)},
            "testable": {"connector.class": TESTABLE, "topic": name, "throughput": "1"},
            "verifiable": {"connector.class": VERIFIABLE, "topic": name, "throughput": "5"},
        }
        config = {"tasks.max": "1"} | bases[case.base] | case.more
        words = {"{own}": name, "{group}": group.id}
        found[name] = case, {k: words.get(str(v), v) for k, v in config.items() if v is not None}
    return found


def _said(
    group: Group, configs: dict[str, tuple[Case, dict[str, Any]]], directory: Path, *more: str
) -> Any:
    files = []
    for name, (_, config) in configs.items():
        path = directory / f"{name}.json"
        path.write_text(json.dumps({"name": name, "config": config}))
        files += ["-f", str(path)]
    ran = connectctl(*group.options, "validate", *files, *more, "-o", "json")
    assert ran.code in (0, 1), ran.out + ran.err
    return ran.json


def _becomes(workers: Workers, name: str, case: Case) -> str | None:
    """What has become of a connector that was created; None while that is open.

    A task that runs may still fail, at its first record: one that is to fail has time for it.
    """
    if not case.runs:
        return TAKEN
    answer = workers.call("GET", path_of("connectors", name, "status"))
    if answer.status_code != 200:
        return None
    status = answer.json()
    states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
    if "FAILED" in states:
        return FAILS
    if case.outcome == FAILS:
        return None
    return TAKEN if states[1:] and set(states) == {"RUNNING"} else None


@contextmanager
def _created(
    workers: Workers, configs: dict[str, tuple[Case, dict[str, Any]]]
) -> Iterator[dict[str, int]]:
    """The connectors for the time of a test, with the answers to their creation.

    Many are sent at once, so that the leader performs them between two rebalances and not each
    before one of its own.
    """

    def create(name: str) -> int:
        case, config = configs[name]
        body = {
            "name": name,
            "config": config,
            "initial_state": "RUNNING" if case.runs else "STOPPED",
        }
        return workers.call("POST", "/connectors", body).status_code

    with ThreadPoolExecutor(AT_ONCE) as pool:
        created = {name: pool.submit(create, name) for name in configs}
        try:
            yield {name: answer.result() for name, answer in created.items()}
        finally:
            there = [
                name
                for name, answer in created.items()
                if not answer.exception() and answer.result() == 201
            ]
            list(pool.map(workers.delete, there))


def _compare(group: Group, cases: list[Case], directory: Path) -> None:
    """Ask connectctl, create the connectors, and see whether it comes as it was said."""
    configs = _configs(cases, group, directory)
    said = {c["name"]: c["outcome"] for c in _said(group, configs, directory)["configurations"]}
    workers = group.workers
    with _created(workers, configs) as answers:
        became = {}
        for name, (case, _) in configs.items():
            if answers[name] == 201:
                became[name] = eventually(partial(_becomes, workers, name, case))
            else:
                assert answers[name] in (400, 500), case.label
                became[name] = REFUSED
    labels = {name: case.label for name, (case, _) in configs.items()}
    assert {labels[n]: what for n, what in said.items()} == {
        labels[n]: what for n, what in became.items()
    }
    assert {labels[n]: what for n, what in said.items()} == {
        case.label: case.outcome for case in cases
    }


def test_workers_that_are_enabled_do_what_was_said(cluster: Sandbox, tmp_path: Path) -> None:
    assert len(ENABLED) >= 40
    _compare(_enabled(cluster), ENABLED, tmp_path)
    _forget_topics(cluster)


@pytest.mark.parametrize(("mode", "cases"), [("disabled", DISABLED), ("preparing", PREPARING)])
def test_workers_that_are_not_enabled_do_what_was_said(
    mode: str, cases: list[Case], others: dict[str, Group], tmp_path: Path
) -> None:
    _compare(others[mode], cases, tmp_path)


def _forget_topics(cluster: Sandbox) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    left = [name for name in admin.list_topics(timeout=120).topics if name.startswith("validate-")]
    for future in admin.delete_topics(left).values() if left else ():
        future.result()


def test_what_is_refused_is_told_in_the_workers_own_words(cluster: Sandbox, tmp_path: Path) -> None:
    group = _enabled(cluster)
    cases = [
        case
        for case in ENABLED
        if case.outcome == REFUSED and case.label != "a class that is nowhere"
    ]
    configs = _configs(cases, group, tmp_path)
    findings = _said(group, configs, tmp_path)["findings"]
    for name, (case, config) in configs.items():
        answer = group.workers.call("POST", "/connectors", {"name": name, "config": config}).json()[
            "message"
        ]
        told = [finding["message"] for finding in findings if finding["subject"] == name]
        lines = {
            line
            for line in answer.splitlines()
            if not line.startswith(("Connector configuration is", "You can"))
        }
        follows = {line for line in lines if line.startswith("Invalid value null")}
        # The worker's sentence about a class that it lacks differs from property to property.
        words = [str(missing_class(line) or line) for line in lines - follows]
        assert any(word in message for word in words for message in told), (
            case.label,
            answer,
            told,
        )


def test_for_enabled_and_for_preparing_are_judged_on_any_worker(
    cluster: Sandbox, others: dict[str, Group], tmp_path: Path
) -> None:
    required = Case("required", TAKEN, {"exactly.once.support": "required"})
    hidden = override(
        "an admin's that nobody looks at", TAKEN, "admin.override.retry.backoff.ms", "10"
    )
    for group, wish, outcomes in [
        (others["disabled"], "now", [REFUSED, TAKEN]),
        (others["disabled"], "enabled", [TAKEN, TAKEN]),
        (others["preparing"], "enabled", [TAKEN, REFUSED]),
        (_enabled(cluster), "preparing", [REFUSED, TAKEN]),
    ]:
        configs = _configs([required, hidden], group, tmp_path)
        said = _said(group, configs, tmp_path, "--for", wish)
        assert [c["outcome"] for c in said["configurations"]] == outcomes, (group.id, wish)
        if outcomes[1] == REFUSED:
            policy = "The 'Principal' policy does not allow 'retry.backoff.ms' to be overridden"
            assert any(
                f["message"].startswith(policy) and f["id"] == "CONFIG025" for f in said["findings"]
            )


def test_workers_that_disagree_are_a_finding_that_names_them(
    cluster: Sandbox, others: dict[str, Group], tmp_path: Path
) -> None:
    both = Group("", "", ("--rest", others["disabled"].url, "--rest", cluster.rest_urls[0]))
    configs = _configs(
        [Case("required", TAKEN, {"exactly.once.support": "required"})], both, tmp_path
    )
    found = _said(both, configs, tmp_path)
    messages = [f["message"] for f in found["findings"] if f["id"] == "EOS015"]
    disabled, enabled = (
        url.removeprefix("http://") for url in (others["disabled"].url, cluster.rest_urls[0])
    )
    assert messages == [f"{disabled} reports: {NOT_ENABLED.rstrip('.')}; {enabled} accepts it."]
    assert [w["plugin"] for w in found["configurations"][0]["workers"]] == [
        "supported",
        "supported",
    ]


def test_a_worker_that_does_not_answer_is_a_finding_and_the_others_are_asked(
    cluster: Sandbox, tmp_path: Path
) -> None:
    both = Group("", "", ("--rest", "http://127.0.0.1:1", "--rest", cluster.rest_urls[0]))
    configs = _configs([Case("nothing special", TAKEN)], both, tmp_path)
    found = _said(both, configs, tmp_path)
    assert [(f["id"], f["subject"].endswith("on 127.0.0.1:1")) for f in found["findings"]] == [
        ("UNSEEN001", True)
    ]
    assert [w["exactlyOnceSupport"] for w in found["configurations"][0]["workers"]] == [
        "unknown",
        "enabled",
    ]


def test_what_plugins_answer_is_known_on_workers_of_every_mode(
    cluster: Sandbox, others: dict[str, Group], tmp_path: Path
) -> None:
    answers = {
        "supported": "supported",
        "unsupported": "unsupported",
        "null": "unknown",
        "fail": "fails",
    }
    cases = [
        Case(said, TAKEN, {"custom.exactly.once.support": said}, "testable") for said in answers
    ]
    for group in (_enabled(cluster), *others.values()):
        found = _said(group, _configs(cases, group, tmp_path), tmp_path)
        told = [{w["plugin"] for w in c["workers"]} for c in found["configurations"]]
        assert told == [{answer} for answer in answers.values()]
        # Where exactly-once is enabled a plugin that cannot do it is worth a warning.
        warned = sum(finding["id"] == "EOS005" for finding in found["findings"])
        assert warned == (2 if "--context" in group.options else 0)


def test_a_timeout_of_nothing_keeps_tasks_from_starting_without_a_failure(
    cluster: Sandbox, tmp_path: Path
) -> None:
    group = _enabled(cluster)
    timeout = {"producer.override.transaction.timeout.ms": "0"}
    configs = _configs([Case("no time", FAILS, timeout, runs=True)], group, tmp_path)
    found = _said(group, configs, tmp_path)
    assert [(f["id"], found["configurations"][0]["outcome"]) for f in found["findings"]] == [
        ("CONFIG022", FAILS)
    ]
    (name,) = configs
    logs = cluster.layout.logs
    with _created(group.workers, configs):
        sign = f"connector-producer-{name}-0"
        eventually(lambda: _logged(logs, sign, "transaction timeout value is not positive: 0"))
        assert "FAILED" not in group.workers.state(name)
        assert group.workers.state(name)[1:] in ([], ["UNASSIGNED"])


def _listed(workers: Workers, name: str) -> bool:
    return name in workers.call("GET", "/connectors").json()


def _logged(logs: Path, sign: str, words: str) -> bool:
    texts = [path.read_text(errors="replace") for path in logs.glob("worker-*.log")]
    return any(words in text.partition(sign)[2] for text in texts)


def test_names_that_no_request_can_use_are_created_and_then_out_of_reach(
    others: dict[str, Group], tmp_path: Path
) -> None:
    group = others["disabled"]
    (path := tmp_path / "in.txt").write_text("one\n")
    for name in ("validate/slash", "validate\\back", "validate%25", ".."):
        config = {"connector.class": FILE_SOURCE, "topic": "validate", "file": str(path)}
        file = tmp_path / "config.json"
        file.write_text(json.dumps({"name": name, "config": config}))
        ran = connectctl(*group.options, "validate", "-f", str(file), "-o", "json")
        assert [f["id"] for f in ran.json["findings"]] == ["CONFIG003"]
        body = {"name": name, "config": config, "initial_state": "STOPPED"}
        assert group.workers.call("POST", "/connectors", body).status_code == 201
        eventually(partial(_listed, group.workers, name))
        assert group.workers.call("DELETE", path_of("connectors", name)).status_code in (
            400,
            404,
            405,
        )
        assert _listed(group.workers, name)


def _runs(workers: Workers, name: str) -> bool:
    answer = workers.call("GET", f"/connectors/{name}/status")
    if answer.status_code != 200:
        return False
    status = answer.json()
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])] == [
        "RUNNING",
        "RUNNING",
    ]


def test_a_connector_that_requires_exactly_once_goes_on_where_it_is_not_enabled_and_cannot_be_changed(
    others: dict[str, Group], tmp_path: Path
) -> None:
    group, name = others["disabled"], "validate-requires"
    (path := tmp_path / "in.txt").write_text("one\n")
    config = {
        "connector.class": FILE_SOURCE,
        "topic": name,
        "file": str(path),
        "tasks.max": "1",
        "exactly.once.support": "required",
    }
    with _from_before(group, name, config) as workers:
        eventually(partial(_runs, workers, name))
        identical = workers.call("PUT", f"/connectors/{name}/config", config)
        assert (identical.status_code, NOT_ENABLED in identical.text) == (400, True)
        assert (
            workers.call("POST", f"/connectors/{name}/restart?includeTasks=true").status_code < 300
        )
        eventually(partial(_runs, workers, name))
        where = ("--bootstrap-servers", group.bootstrap, *group.options)
        ran = connectctl(*where, "preflight", name, "--for", "downgrade", "-o", "json")
        (found,) = [finding for finding in ran.json["findings"] if finding["id"] == "EOS001"]
        assert (found["severity"], "keeps running" in found["message"]) == ("warning", True)
        requested = workers.call(
            "PUT", f"/connectors/{name}/config", config | {"exactly.once.support": "requested"}
        )
        assert requested.status_code == 200, requested.text


def test_an_override_that_the_policy_refuses_fails_the_connector_that_was_there_before(
    others: dict[str, Group], tmp_path: Path
) -> None:
    group, name = others["preparing"], "validate-refused"
    (path := tmp_path / "in.txt").write_text("one\n")
    config = {
        "connector.class": FILE_SOURCE,
        "topic": name,
        "file": str(path),
        "producer.override.linger.ms": "5",
    }
    with _from_before(group, name, config) as workers:

        def failed() -> str | None:
            answer = workers.call("GET", f"/connectors/{name}/status")
            status = answer.json()["connector"] if answer.status_code == 200 else {"state": None}
            return str(status["trace"]) if status["state"] == "FAILED" else None

        assert "Client Config Overrides not allowed" in eventually(failed)


def test_a_creation_that_workers_refuse_for_what_stands_beside_the_configuration(
    others: dict[str, Group], tmp_path: Path
) -> None:
    group, name = others["disabled"], "validate-beside"
    config = {"connector.class": FILE_SOURCE, "topic": name, "file": str(tmp_path / "in.txt")}
    offsets = [{"partition": {"filename": "x"}, "offset": {"position": 1}}]
    for more, id_ in (
        ({"initial_state": "BOGUS"}, "CONFIG033"),
        ({"offsets": offsets}, "CONFIG034"),
    ):
        body = {"name": name, "config": config} | more
        assert group.workers.call("POST", "/connectors", body).status_code >= 400
        (path := tmp_path / "body.json").write_text(json.dumps(body))
        said = connectctl(*group.options, "validate", "-f", str(path), "-o", "json").json
        assert [f["id"] for f in said["findings"]] == [id_]
        assert said["configurations"][0]["outcome"] == REFUSED

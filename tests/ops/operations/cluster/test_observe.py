from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import replace

import pytest
from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.connect import cluster_findings as say
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.worker import Support, Worker
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, NotTrusted, Unreachable
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.operations.cluster import observe
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.connectors.observe import connector_listing
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.restserver import Answer, Asked, rest_server
from fakes.workers import FakeConnector, FakeWorkers

NAMED: dict[str, str | None] = {"config": "cfg", "offsets": "off", "status": "sta"}
GROUP = connect_group("connect", one=[("a", -1), ("a", 0)], two=[])


def kafka() -> FakeKafka:
    running = {"state": "RUNNING", "trace": None, "worker_id": "one:8083", "generation": 1}
    return FakeKafka(
        {
            "cfg": records(
                ("connector-a", {"properties": {"connector.class": "x.Source"}}),
                ("task-a-0", {"properties": {}}),
                ("commit-a", {"tasks": 1}),
            ),
            "off": [],
            "sta": records(("status-connector-a", running), ("status-task-a-0", running)),
        },
        {"connect": GROUP},
    )


def workers() -> FakeWorkers:
    return FakeWorkers({"a": FakeConnector()}, urls=("http://one:8083", "http://two:8083"))


def look(
    kafka: FakeKafka,
    calls: ConnectCalls,
    group: ConnectGroup,
    named: Mapping[str, str | None],
    *,
    lists_only: bool = False,
) -> ClusterView:
    """The view of a cluster whose coordinator describes ``group``."""
    kafka.groups[group.id] = group
    return observe.observe_cluster(kafka, calls, group, named, lists_only=lists_only)


def ids(view: ClusterView) -> list[str]:
    return [finding.id for finding in view.findings]


def test_a_healthy_cluster_has_no_findings() -> None:
    view = look(kafka(), workers(), GROUP, NAMED)
    assert ids(view) == []
    assert [(w.address, w.leader, w.support, w.tasks) for w in view.workers] == [
        ("one:8083", True, Support.ENABLED, 1),
        ("two:8083", False, Support.ENABLED, 0),
    ]
    assert [(j.name, str(j.verdict), j.workers) for j in view.connectors] == [
        ("a", "RUNNING", ("one:8083",))
    ]
    assert view.connectors_from == "workers"


def test_a_worker_that_does_not_answer_is_a_finding_and_the_rest_is_seen() -> None:
    calls = workers()
    calls.errors["http://one:8083"] = Unreachable("gone", why="Connection refused")
    view = look(kafka(), calls, GROUP, NAMED)
    assert [(w.address, w.problem) for w in view.workers] == [
        ("one:8083", "Connection refused"),
        ("two:8083", None),
    ]
    assert ids(view) == ["CLUSTER004"]
    assert view.connectors_from == "workers"


def test_with_no_worker_answering_connectors_are_read_from_the_topics() -> None:
    calls = workers()
    calls.errors[""] = Unreachable("gone", why="Connection refused")
    view = look(kafka(), calls, GROUP, NAMED)
    assert view.connectors_from == "topics"
    assert [str(j.verdict) for j in view.connectors] == ["RUNNING"]
    assert "CLUSTER010" in ids(view)


@pytest.mark.parametrize(
    "shut",
    [
        NotAuthorized("The worker does not allow GET /", why="Unauthorized"),
        NotTrusted("The worker cannot be reached", why="its certificate has expired"),
    ],
)
def test_workers_that_let_nobody_in_are_not_taken_for_workers_that_are_down(
    shut: ConnectctlError,
) -> None:
    closed = workers()
    closed.errors[""] = shut
    with pytest.raises(type(shut)):
        look(kafka(), closed, GROUP, {})
    with pytest.raises(type(shut)):
        connector_listing(closed, kafka(), GROUP, {})


def test_doctor_goes_on_from_the_topics_where_no_worker_grants_access_and_says_so() -> None:
    closed = workers()
    closed.errors[""] = NotAuthorized("The worker does not allow GET /", why="Unauthorized")
    view = look(kafka(), closed, GROUP, NAMED, lists_only=True)
    assert view.connectors_from == "topics"
    assert [str(j.verdict) for j in view.connectors] == ["RUNNING"]
    found = {finding.id: finding for finding in view.findings}
    assert "grants access" in found["CLUSTER010"].message
    assert found["CLUSTER004"].next_step == "Check rest_auth and rest_tls: connectctl context show."


@pytest.mark.parametrize("urls", [("http://one:8083",), ("http://one:8083", "http://two:8083")])
def test_a_connector_without_any_status_is_listed_and_contradicts_nothing(
    urls: tuple[str, ...],
) -> None:
    hanging = FakeWorkers({"a": FakeConnector()}, urls=urls, without_status=frozenset("a"))
    seen = connector_listing(hanging, kafka(), GROUP, NAMED)
    ((name, doubt, status),) = {
        (judged.name, judged.connector.doubt, judged.connector.status) for judged in seen.connectors
    }
    assert (name, doubt, status) == ("a", None, None)
    assert seen.findings == ()


def test_a_list_without_target_states_says_that_the_config_topic_could_not_be_seen() -> None:
    blind = kafka()
    blind.forbidden = {"cfg"}
    seen = connector_listing(workers(), blind, GROUP, NAMED)
    assert [judged.connector.target_state for judged in seen.connectors] == [None]
    assert [(finding.id, finding.subject) for finding in seen.findings] == [
        ("SIGHT001", "config topic of connect")
    ]
    assert connector_listing(workers(), kafka(), GROUP, NAMED).findings == ()


def test_with_every_worker_down_nothing_runs_whatever_the_statuses_say() -> None:
    view = look(kafka(), FakeWorkers(urls=()), connect_group(state="Empty"), NAMED)
    assert [str(j.verdict) for j in view.connectors] == [
        "UNASSIGNED not assigned to a worker, last seen RUNNING on one:8083"
    ]
    assert ids(view) == ["CLUSTER001", "CLUSTER010"]


def test_a_topic_that_is_not_there_is_a_finding_and_no_error() -> None:
    view = look(kafka(), workers(), GROUP, NAMED | {"offsets": "nowhere"})
    assert ids(view) == ["TOPIC002"]
    assert [topic.name for topic in view.topics] == ["cfg", None, "sta"]


def test_a_fresh_clusters_topics_without_records_are_no_error_but_topics_that_were_named_are() -> (
    None
):
    fresh = FakeKafka({"cfg": records(("session-key", {"algorithm": "x"})), "off": [], "sta": []})
    group = connect_group("connect", one=[])
    view = look(fresh, FakeWorkers(), group, {})
    found = [(f.id, f.severity, f.subject) for f in view.findings if f.id.startswith("TOPIC")]
    assert sorted(found) == [
        ("TOPIC002", "warning", "offsets topic"),
        ("TOPIC002", "warning", "status topic"),
    ]
    assert all(
        f.next_step and "-topic TOPIC" in f.next_step for f in view.findings if f.id == "TOPIC002"
    )
    lost = look(fresh, FakeWorkers(), group, {"offsets": "nowhere"})
    assert [f.severity for f in lost.findings if f.subject == "offsets topic"] == ["error"]
    silent = look(fresh, FakeWorkers(urls=()), group, {})
    assert {f.severity for f in silent.findings if f.id == "TOPIC002"} == {"error"}


def test_with_neither_workers_nor_topics_the_view_says_that_it_knows_nothing() -> None:
    view = look(FakeKafka(), FakeWorkers(urls=()), connect_group(state="Dead"), {})
    assert view.connectors_from == "nothing"
    assert ids(view) == ["CLUSTER001", "CLUSTER011", "TOPIC002", "TOPIC002", "TOPIC002"]


def test_a_worker_that_hangs_does_not_hang_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectctl.ops.operations.cluster.worker_answers.PATIENCE", 0.5)
    monkeypatch.setattr("connectctl.ops.operations.connectors.observe.AGREEING", 0.0)
    answers = {
        "GET /": (200, {"version": "4.3.1", "kafka_cluster_id": "fake-cluster"}),
        "GET /connector-plugins": (200, []),
    }
    released, answered = threading.Event(), threading.Event()

    def late(_: Asked) -> Answer:
        released.wait(60)
        answered.set()
        return 200, {}

    with rest_server() as hanging, rest_server(answers) as good:
        hanging.on("GET /", late)
        good.on("GET /connectors?expand=status&expand=info", (200, {}))
        urls = (hanging.url, good.url)
        members = [replace(m, url=url) for m, url in zip(GROUP.members, urls, strict=True)]
        calls = Connect(urls, auth={}, tls={}, timeout=30)
        view = look(kafka(), calls, replace(GROUP, members=tuple(members)), NAMED)
        assert not answered.is_set()
        released.set()
    assert {w.url: w.problem for w in view.workers} == {
        hanging.url: "it did not answer within 0.5 s",
        good.url: None,
    }


def worker(address: str = "one:8083", **known: object) -> Worker:
    return replace(Worker(address, f"http://{address}", version="4.3.1"), **known)  # type: ignore[arg-type]


def facts(
    partitions: int = 1, replicas: int = 3, in_sync: int = 3, policy: str | None = "compact"
) -> TopicFacts:
    config = {} if policy is None else {"cleanup.policy": policy}
    each = range(partitions)
    return TopicFacts(
        "t", partitions, dict.fromkeys(each, replicas), dict.fromkeys(each, in_sync), config
    )


REBALANCING = ConnectGroup("g", "PreparingRebalance", "sessioned", GROUP.members)
DELAYED = replace(
    GROUP,
    members=tuple(
        replace(m, assignment=m.assignment and replace(m.assignment, delay_ms=300_000))
        for m in GROUP.members
    ),
)
MISMATCH = replace(
    GROUP,
    members=tuple(
        replace(m, assignment=m.assignment and replace(m.assignment, config_mismatch=True))
        for m in GROUP.members
    ),
)


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (say.no_members(GROUP), None),
        (say.no_members(connect_group(state="Dead")), "CLUSTER001 error"),
        (say.rebalancing(GROUP), None),
        (say.rebalancing(REBALANCING), "CLUSTER002 info"),
        (say.rebalance_delayed(GROUP), None),
        (say.rebalance_delayed(DELAYED), "CLUSTER003 warning"),
        (say.worker_silent(worker()), None),
        (say.worker_silent(worker(problem="refused")), "CLUSTER004 warning"),
        (say.worker_silent(worker(problem="refused", leader=True)), "CLUSTER004 error"),
        (
            say.versions_differ([worker(), worker("two:8083"), worker("three:8083", version=None)]),
            None,
        ),
        (
            say.versions_differ([worker(), worker("two:8083", version="4.2.0")]),
            "CLUSTER005 warning",
        ),
        (
            say.support_differs(
                [worker(support=Support.NOT_ENABLED), worker(support=Support.UNKNOWN)]
            ),
            None,
        ),
        (
            say.support_differs([worker(support=Support.ENABLED), worker(support=Support.UNKNOWN)]),
            None,
        ),
        (
            say.support_differs(
                [worker(support=Support.ENABLED), worker(support=Support.NOT_ENABLED)]
            ),
            "CLUSTER006 warning",
        ),
        (
            say.support_differs(
                [worker(support=Support.ENABLED), worker(support=Support.NOT_SUPPORTED)]
            ),
            "CLUSTER006 warning",
        ),
        (say.other_cluster(worker(cluster_id="x"), "x"), None),
        (say.other_cluster(worker(), "x"), None),
        (say.other_cluster(worker(cluster_id="y"), "x"), "CLUSTER007 error"),
        (say.same_address([worker(), worker("two:8083")]), None),
        (say.same_address([worker(), worker()]), "CLUSTER008 error"),
        (say.config_lag(GROUP), None),
        (say.config_lag(MISMATCH), "CLUSTER009 warning"),
        (say.unreported([]), None),
        (say.unreported(["a"]), "CLUSTER012 warning"),
        (say.too_many_partitions("config", facts()), None),
        (say.too_many_partitions("offsets", facts(25)), None),
        (say.too_many_partitions("config", facts(2)), "TOPIC003 error"),
        (say.not_compacted("status", facts()), None),
        (say.not_compacted("status", facts(policy=None)), None),
        (say.not_compacted("status", facts(policy="")), "TOPIC004 warning"),
        (say.not_compacted("status", facts(policy="delete")), "TOPIC004 error"),
        (say.not_compacted("status", facts(policy="compact,delete")), "TOPIC004 error"),
        (say.under_replicated("status", facts()), None),
        (say.under_replicated("status", facts(in_sync=2)), "TOPIC005 warning"),
        (say.not_replicated("status", facts(replicas=1), 1), None),
        (say.not_replicated("status", facts(), 3), None),
        (say.not_replicated("status", facts(replicas=1), 3), "TOPIC006 warning"),
    ],
)
def test_each_finding_is_raised_for_what_it_is_about_and_for_nothing_else(
    finding: Finding | None, expected: str | None
) -> None:
    assert (f"{finding.id} {finding.severity.value}" if finding else None) == expected


@pytest.mark.parametrize(
    ("out_of_sync", "brokers"), [((), "the brokers"), ((2,), "broker 2"), ((3, 2), "brokers 2, 3")]
)
def test_brokers_whose_replicas_are_not_in_sync_are_named(
    out_of_sync: tuple[int, ...], brokers: str
) -> None:
    found = say.under_replicated(
        "status", replace(facts(in_sync=1), out_of_sync=frozenset(out_of_sync))
    )
    assert found is not None
    assert found.next_step == f"Check {brokers}."
    assert f"replicas on {brokers} are not in sync" in found.message


def test_every_finding_is_listed_once_with_its_id_in_its_docstring() -> None:
    rules = [
        rule
        for name, rule in vars(say).items()
        if callable(rule) and getattr(rule, "__module__", "") == say.__name__
    ]
    listed = [
        found[0] for rule in rules if (found := re.findall(r"\b[A-Z]+\d{3}\b", str(rule.__doc__)))
    ]
    assert len(listed) == len(rules)
    assert listed == sorted(set(listed))
    found_by = {name: rule.id for name, rule in vars(say).items() if isinstance(rule, Rule)}
    used = [
        {found_by[name] for name in rule.__code__.co_names if name in found_by} for rule in rules
    ]
    assert used == [{id_} for id_ in listed]


def test_an_internal_topic_that_may_not_be_seen_is_not_said_to_be_missing() -> None:
    hidden = kafka()
    hidden.hidden = {"off"}
    view = look(hidden, workers(), GROUP, NAMED)
    assert ids(view) == ["SIGHT001"]
    assert "Describe on Topic off is missing" in view.findings[0].message
    assert [(topic.name, topic.facts is None) for topic in view.topics] == [
        ("cfg", False),
        ("off", True),
        ("sta", False),
    ]


def test_settings_of_an_internal_topic_that_may_not_be_seen_are_told() -> None:
    secret = kafka()
    secret.config = {"cfg": {}}
    (finding,) = look(secret, workers(), GROUP, NAMED).findings
    assert (finding.id, finding.subject) == ("SIGHT001", "settings of cfg")

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.checks.workers import observe as worker_observe
from connectctl.ops.checks.workers import rules
from connectctl.ops.checks.workers.observe import (
    ConfigTopic,
    LeaderWrite,
    Proof,
    WorkersSeen,
    newest_write,
)
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.transactional_ids import LeaderId
from connectctl.ops.connect.worker import Support, Worker
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.kafka.visibility import Gap, Observation, Reason
from connectctl.ops.operations.cluster import observe as cluster_observe
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import FakeKafka, connect_group
from fakes.workers import FakeConnector, FakeWorkers

NOW = 1_000_000.0
ID = "connect-cluster-connect"
ON, OFF, OLD, ANY = Support.ENABLED, Support.NOT_ENABLED, Support.NOT_SUPPORTED, Support.UNKNOWN
GROUP = connect_group("connect", one=[("a", -1), ("a", 0)], two=[])
LEADER = Transaction(ID, "CompleteCommit", 7, 3)
WROTE = ConfigTopic(
    "cfg",
    frozenset({"a"}),
    LeaderWrite("commit-a", 5, NOW - 90, outside=False),
    leader_wrote=NOW - 90,
)
PLAIN = replace(
    WROTE, newest=LeaderWrite("commit-a", 9, NOW - 10, outside=True), leader_wrote=NOW - 900
)
HIDDEN = Gap("the leader's id", Reason.NO_ANSWER)
NEVER = replace(WROTE, leader_wrote=None)


def seen(
    *supports: Support,
    leader: Transaction | None = LEADER,
    config: ConfigTopic | None = WROTE,
    version: str = "4.3.1",
    **more: Any,
) -> WorkersSeen:
    """Workers ``w0``, which leads, ``w1`` and so on, with these supports."""
    found = tuple(
        Worker(f"w{n}:8083", f"http://w{n}:8083", leader=n == 0, version=version, support=support)
        for n, support in enumerate(supports)
    )
    return replace(WorkersSeen(GROUP, found, LeaderId(leader), NOW, config=config), **more)


def ids(view: WorkersSeen, goal: Goal = Goal.NOW) -> list[str]:
    return [f.id for f in check(rules, view, goal)]


def text(view: WorkersSeen, goal: Goal = Goal.NOW) -> str:
    return " ".join(f"{f.subject}: {f.message} {f.next_step}" for f in check(rules, view, goal))


CLEAN = seen(ON, ON)
NO_WISH: list[str] = []


@pytest.mark.parametrize(
    ("view", "by_wish"),
    [
        (CLEAN, {}),
        (seen(OFF, OFF), {Goal.ENABLED: ["WORKER006"]}),
        (seen(OFF), {}),
        (seen(OFF, OFF, config=NEVER), {Goal.ENABLED: ["WORKER006"]}),
        (seen(OFF, OFF, leader=None), {Goal.ENABLED: ["WORKER005"]}),
        (seen(OFF, OFF, config=PLAIN), {Goal.ENABLED: ["WORKER005"]}),
        (seen(ON, OFF), {Goal.ENABLED: ["WORKER006"]}),
        (seen(OFF, OFF, leader_id=HIDDEN), {}),
        (seen(ANY, ANY), {}),
    ],
)
def test_the_modes_are_judged_by_the_wish(
    view: WorkersSeen, by_wish: Mapping[Goal, list[str]]
) -> None:
    assert {goal: ids(view, goal) for goal in Goal} == {
        goal: by_wish.get(goal, NO_WISH) for goal in Goal
    }


@pytest.mark.parametrize(
    ("view", "goal", "expected"),
    [
        (seen(OLD, OLD, version="3.2.3", leader=None), Goal.PREPARING, ["WORKER001", "WORKER001"]),
        (seen(ANY, version="3.2.3", leader=None), Goal.ENABLED, ["WORKER001"]),
        (seen(ANY, version="6.2.0-ccs", leader=None), Goal.ENABLED, ["WORKER001"]),
        (seen(OLD, version="3.2.3", leader=None), Goal.NOW, []),
        (seen(OLD, version="3.2.3", leader=None), Goal.DOWNGRADE, []),
        (seen(ON, group=replace(GROUP, protocol="compatible")), Goal.NOW, ["WORKER002"]),
        (seen(ON, group=replace(GROUP, protocol="default")), Goal.NOW, ["WORKER003"]),
        (seen(ON, group=replace(GROUP, protocol="")), Goal.NOW, []),
        (seen(OFF, ON, leader=None), Goal.NOW, ["WORKER004"]),
        (seen(OFF, ON, config=PLAIN), Goal.NOW, ["WORKER004"]),
        (seen(OFF, ON, leader=None), Goal.ENABLED, ["WORKER004", "WORKER005"]),
        (seen(OFF, ON), Goal.NOW, []),
        (seen(ON, ON, leader=None), Goal.NOW, ["WORKER007"]),
        (seen(ON, ON, leader_id=HIDDEN), Goal.NOW, []),
        (
            seen(ON, leader=replace(LEADER, state="Ongoing", started_ms=int(NOW - 61) * 1000)),
            Goal.NOW,
            ["WORKER008"],
        ),
        (
            seen(ON, leader=replace(LEADER, state="Ongoing", started_ms=int(NOW - 5) * 1000)),
            Goal.NOW,
            [],
        ),
        (seen(ON, leader=replace(LEADER, partitions=(TopicPartition("cfg", 0),))), Goal.NOW, []),
        (
            seen(ON, leader=replace(LEADER, partitions=(TopicPartition("data", 0),))),
            Goal.NOW,
            ["WORKER009"],
        ),
        (seen(ON, config=PLAIN), Goal.NOW, ["WORKER011"]),
        (seen(ON, config=replace(PLAIN, leader_wrote=NOW - 50)), Goal.NOW, []),
        (seen(ON, config=NEVER), Goal.NOW, []),
        (seen(ON, lists={"w0": frozenset("ab"), "w1": frozenset("a")}), Goal.NOW, ["WORKER012"]),
        (seen(ON, lists={"w0": frozenset("ab"), "w1": frozenset("ab")}), Goal.NOW, []),
    ],
)
def test_what_is_found(view: WorkersSeen, goal: Goal, expected: list[str]) -> None:
    assert ids(view, goal) == expected


def writer(number: int, *, seconds_ago: float = 0, opened: int | None = None) -> PartitionProducer:
    return PartitionProducer(number, 0, 0, int((NOW - seconds_ago) * 1000), opened)


@pytest.mark.parametrize(
    ("producer", "owners", "version", "said"),
    [
        (writer(9), {9: "connect-cluster-other"}, "4.3.1", ("error", "leader of the group other")),
        (
            writer(9, seconds_ago=130),
            {9: "intruder"},
            "4.3.1",
            ("warning", "the transactional id intruder wrote to it 2"),
        ),
        (writer(9, opened=4), {9: "intruder"}, "4.3.1", ("warning", "and has a transaction open")),
        (writer(9), {}, "4.3.1", ("warning", "A producer (id 9) wrote to it just now")),
        (writer(9), {}, "3.1.0", None),
        (writer(9), {9: "intruder"}, "3.1.0", ("warning", "intruder")),
    ],
)
def test_other_writers_are_told_by_what_is_known_of_them(
    producer: PartitionProducer,
    owners: Mapping[int, str],
    version: str,
    said: tuple[str, str] | None,
) -> None:
    config = replace(WROTE, foreign=(producer,), owners=owners)
    found = list(check(rules, seen(ON, config=config, version=version), Goal.NOW))
    assert [f.id for f in found] == ([] if said is None else ["WORKER010"])
    if said is not None:
        assert found[0].severity == said[0]
        assert said[1] in found[0].message


NEIGHBOUR = connect_group("other", three=[("a", -1), ("a", 0)])


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, []),
        ({"groups_sharing_topics": frozenset({"other"})}, [("WORKER013", "warning")]),
        (
            {"groups_sharing_topics": frozenset({"other"}), "statuses": {("a", 0): "three:8083"}},
            [("WORKER013", "error"), ("WORKER014", "warning")],
        ),
        ({"statuses": {("a", 0): "three:8083", ("a", -1): "one:8083"}}, [("WORKER014", "warning")]),
        ({"statuses": {("a", 0): "gone:8083", ("b", 0): "three:8083"}}, []),
    ],
)
def test_another_group_on_our_topics(
    more: Mapping[str, Any], expected: list[tuple[str, str]]
) -> None:
    view = seen(ON, other_groups=(NEIGHBOUR,), **more)
    assert [(f.id, f.severity.value) for f in check(rules, view, Goal.NOW)] == expected


def test_another_leader_that_writes_makes_a_shared_topic_certain() -> None:
    config = replace(WROTE, foreign=(writer(9),), owners={9: "connect-cluster-other"})
    view = seen(
        ON, other_groups=(NEIGHBOUR,), groups_sharing_topics=frozenset({"other"}), config=config
    )
    assert {(f.id, f.severity.value) for f in check(rules, view, Goal.NOW)} == {
        ("WORKER010", "error"),
        ("WORKER013", "error"),
    }


def test_messages_name_workers_and_evidence() -> None:
    assert text(seen(OFF, ON, leader=None)).startswith(
        f"w0:8083: The leader is disabled, and w1:8083 enabled. The transactional id {ID}, which "
        "a preparing"
    )
    assert "It wrote commit-a to the config topic without" in text(
        seen(OFF, config=PLAIN), Goal.ENABLED
    )
    assert "w1 does not list b" in text(
        seen(ON, lists={"w0": frozenset("ab"), "w1": frozenset("a")})
    )
    many = {"w0": frozenset("abcde"), "w1": frozenset()}
    assert "w1 does not list a, b, c and 2 more" in text(seen(ON, lists=many))
    assert "whether w1:8083, w2:8083 also are" in text(seen(ON, OFF, OFF), Goal.ENABLED)


# -------------------------------------------------------------------------------------------- facts


def image(*records: tuple[int, str, float], end: int, superseded: Sequence[int] = ()) -> TopicImage:
    made = [
        ConsumerRecord(key.encode(), b"{}", 0, offset, int(at * 1000))
        for offset, key, at in records
    ]
    older = tuple(r for r in made if r.offset in superseded)
    return TopicImage(
        "cfg", len(made), tuple(r for r in made if r not in older), {0: end}, superseded=older
    )


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (image(end=0), None),
        (image((0, "connector-a", 1), end=1), None),
        (
            image((0, "connector-a", 1), (1, "commit-a", 2), end=2),
            LeaderWrite("commit-a", 1, 2.0, outside=True),
        ),
        (
            image((0, "connector-a", 1), (1, "commit-a", 2), end=3),
            LeaderWrite("commit-a", 1, 2.0, outside=False),
        ),
        (
            image((1, "commit-a", 2), (2, "target-state-a", 3), end=3),
            LeaderWrite("commit-a", 1, 2.0, outside=True),
        ),
        (
            image((1, "commit-a", 2), (3, "target-state-a", 3), end=4),
            LeaderWrite("commit-a", 1, 2.0, outside=False),
        ),
        (
            image(
                (1, "session-key", 2),
                (2, "logger-cluster-x", 3),
                (9, "logger-cluster-x", 3),
                end=10,
                superseded=[2],
            ),
            LeaderWrite("session-key", 1, 2.0, outside=True),
        ),
    ],
)
def test_a_record_behind_a_leaders_record_proves_that_there_was_no_marker(
    topic: TopicImage, expected: LeaderWrite | None
) -> None:
    assert newest_write(topic) == expected


NAMED: dict[str, str | None] = {"config": "cfg", "offsets": "off", "status": "sta"}
STATUS = b'{"state":"RUNNING","trace":null,"worker_id":"three:8083","generation":1}'


def kafka(*, other_groups: Mapping[str, ConnectGroup] | None = None) -> FakeKafka:
    config = [
        ConsumerRecord(
            b"connector-a", b'{"properties":{"connector.class":"x.Source"}}', 0, 0, int(NOW * 1000)
        ),
        ConsumerRecord(b"task-a-0", b'{"properties":{}}', 0, 1, int(NOW * 1000)),
        ConsumerRecord(b"commit-a", b'{"tasks":1}', 0, 2, int(NOW * 1000)),
    ]
    status = [ConsumerRecord(b"status-task-a-0", STATUS, 0, 0, int(NOW * 1000))]
    return FakeKafka({"cfg": config, "off": [], "sta": status}, groups=dict(other_groups or {}))


def coordinators(*producers: PartitionProducer, **known: Transaction) -> FakeCoordinators:
    ids = {transaction.id: transaction for transaction in (LEADER, *known.values())}
    return FakeCoordinators(
        known=ids,
        partitions={TopicPartition("cfg", 0): producers},
        groups=frozenset({"connect", "other"}),
    )


class Apart(FakeWorkers):
    """Workers that list different connectors, the second one ``lag`` times before it lists all."""

    lag, asked = 0, 0

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        if path != "/connectors":
            return super().get(path, url=url, timeout=timeout)
        self.asked += 1
        if url == "http://two:8083" and self.lag:
            self.lag -= 1
            return []
        return list(self.connectors)


def calls(lag: int = 0) -> Apart:
    made = Apart({"a": FakeConnector()}, urls=("http://one:8083", "http://two:8083"))
    made.lag = lag
    return made


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectctl.ops.operations.connectors.observe.AGREEING", 0.0)
    monkeypatch.setattr("connectctl.ops.operations.fencing.observe.PAUSES", (0.0,))


def observe(reads: FakeKafka, rest: Apart, transactions: FakeCoordinators) -> WorkersSeen:
    view = cluster_observe.observe_cluster(reads, rest, GROUP, NAMED)
    return worker_observe.observe(view, reads, transactions, time.time())


def test_a_clean_cluster_is_seen_whole_and_clean() -> None:
    view = observe(kafka(), calls(), coordinators(writer(7)))
    assert (view.unseen, view.proof, view.leader) == ((), Proof.PREPARING, LEADER)
    assert view.config is not None
    assert (view.config.connectors, view.config.foreign, view.config.leader_wrote) == (
        frozenset("a"),
        (),
        NOW,
    )
    assert {goal: ids(view, goal) for goal in Goal} == {goal: [] for goal in Goal}


def test_lists_that_differ_for_a_moment_are_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids(observe(kafka(), calls(lag=99), coordinators(writer(7)))) == ["WORKER012"]
    monkeypatch.setattr("connectctl.ops.operations.connectors.observe.AGREEING", 30.0)
    monkeypatch.setattr("connectctl.ops.operations.connectors.observe.PAUSE", 0.0)
    assert ids(observe(kafka(), calls(lag=2), coordinators(writer(7)))) == []


def test_workers_are_asked_once_for_their_lists_by_the_judge_of_connectors() -> None:
    rest = calls()
    observe(kafka(), rest, coordinators(writer(7)))
    assert rest.asked == len(rest.urls)


def test_members_are_compared_where_the_rest_server_in_use_is_none_of_their_addresses() -> None:
    rest = calls(lag=99)
    rest.urls = ("http://ingress:8083",)
    assert ids(observe(kafka(), rest, coordinators(writer(7)))) == ["WORKER012"]


def test_foreign_writers_are_named_by_their_transactional_ids() -> None:
    intruder = Transaction("intruder", "CompleteCommit", 9, 0)
    view = observe(kafka(), calls(), coordinators(writer(7), writer(9), intruder=intruder))
    assert view.config is not None
    assert (view.config.owners, ids(view)) == ({9: "intruder"}, ["WORKER010"])


def test_a_neighbour_with_our_connectors_and_no_topic_of_its_own_shares_ours() -> None:
    view = observe(kafka(other_groups={"other": NEIGHBOUR}), calls(), coordinators(writer(7)))
    assert (view.groups_sharing_topics, ids(view)) == (
        frozenset({"other"}),
        ["WORKER013", "WORKER014"],
    )
    reads = kafka(other_groups={"other": NEIGHBOUR})
    reads.records["theirs"] = list(reads.records["cfg"])
    reads.records["sta"] = []
    assert ids(observe(reads, calls(), coordinators(writer(7)))) == []


def test_what_may_not_be_looked_at_is_told_and_the_rest_is_judged() -> None:
    denied = coordinators(writer(7))
    denied.denied[ID] = Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    denied.partitions[TopicPartition("cfg", 0)] = Code.TOPIC_AUTHORIZATION_FAILED
    view = observe(kafka(), calls(), denied)
    assert [u.what for u in view.unseen] == [
        f"the leader's transactional id {ID}",
        "who writes to the config topic cfg",
    ]
    assert (view.proof, ids(view, Goal.ENABLED)) == (Proof.UNKNOWN, [])


def test_brokers_that_tell_nothing_of_transactions_cost_findings_and_not_the_answer() -> None:
    class Ancient(FakeCoordinators):
        def describe(self, ids: Sequence[str]) -> dict[str, Transaction | Code]:
            raise ConnectctlError("too old", why="needs 3.0")

        def producers(self, places: Sequence[TopicPartition]) -> Any:
            raise ConnectctlError("too old", why="needs 3.0")

        def connect_groups(self) -> Observation[frozenset[str]]:
            raise ConnectctlError("too old", why="needs 3.0")

    view = observe(kafka(), calls(), Ancient())
    assert {u.why.removeprefix("too old: ") for u in view.unseen} == {"needs 3.0"}
    assert len(view.unseen) == 3
    assert ids(view, Goal.ENABLED) == []


def test_topics_that_may_not_be_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = kafka(other_groups={"other": NEIGHBOUR})
    view = cluster_observe.observe_cluster(reads, calls(), GROUP, NAMED)

    def denied(*_: object, **__: object) -> dict[str, Any]:
        raise NotAuthorized("Not allowed to read", why="no Read")

    monkeypatch.setattr(reads, "image", denied)
    found = worker_observe.observe(view, reads, coordinators(writer(7)), time.time())
    assert [u.what for u in found.unseen] == ["the config topic cfg", "the status topic sta"]
    assert (found.config, ids(found)) == (None, [])

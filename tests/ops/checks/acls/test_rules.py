from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from connectctl.ops.checks.acls import rules
from connectctl.ops.checks.acls.observe import AclFacts, observe
from connectctl.ops.checks.acls.principals import parse_principals
from connectctl.ops.connect.config_topic import ConfigState, ConfiguredConnector
from connectctl.ops.connect.connect_protocol import ConnectGroup, Member
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import check
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.kafka.acls import Authorizer, Binding, Operation, Resource
from connectctl.ops.kafka.visibility import Complete
from fakes.acls import FakeAcls, allow
from fakes.check_context import check_context

ALL, READ, WRITE, CREATE, _, _, DESCRIBE = list(Operation)[1:8]
TOPIC, GROUP, CLUSTER, ID = (
    Resource.TOPIC,
    Resource.GROUP,
    Resource.CLUSTER,
    Resource.TRANSACTIONAL_ID,
)
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
INTERNAL = {"config": "g-config", "offsets": "g-offsets", "status": "g-status"}
W, P, C, A = "User:w", "User:p", "User:c", "User:a"
WORKER = [allow(W, ALL, GROUP, "g"), allow(W, ALL, TOPIC, "g-", prefixed=True)]
LEADER = [allow(W, WRITE, ID, "connect-cluster-g")]
CLIENTS = [
    allow(P, WRITE, TOPIC, "g-offsets"),
    allow(C, READ, TOPIC, "g-offsets"),
    allow(A, DESCRIBE, TOPIC, "g-offsets"),
    *(allow(who, WRITE, ID, f"g-src-{n}") for who in (P, A) for n in range(2)),
]
SAID = ("User:w", "producer=User:p", "consumer=User:c", "admin=User:a")


class Topics:
    """Workers that tell active topics only."""

    urls: tuple[str, ...] = ("http://one:8083",)

    def __init__(self, topics: Mapping[str, list[str] | None]):
        self.topics = topics

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        name = path.split("/")[2]
        if self.topics.get(name) is None:
            raise ConnectctlError("Topic tracking is disabled")
        return {name: {"topics": self.topics[name]}}

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        raise AssertionError(path)


@dataclass
class World:
    """A Connect cluster with one source connector of two tasks, and everything allowed that it
    needs.
    """

    acls: FakeAcls = field(
        default_factory=lambda: FakeAcls(
            [*WORKER, *LEADER, *CLIENTS], topics=set(INTERNAL.values())
        )
    )
    other: FakeAcls = field(
        default_factory=lambda: FakeAcls([], bootstrap="other:9092", id="other")
    )
    connectors: list[Connector] = field(default_factory=lambda: [source("src")])
    said: tuple[str, ...] = SAID
    topics: dict[str, list[str] | None] = field(default_factory=dict)
    hosts: tuple[str, ...] = ("/10.0.0.1",)
    state: ConfigState | None = None
    groups: frozenset[str] = frozenset({"g"})
    enabled: bool = False

    def look(self) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
        members = tuple(Member(h, "c", h, "http://one:8083", 1, None) for h in self.hosts)
        topics = {**{c.name: list[str]() for c in self.connectors}, **self.topics}
        context = check_context(
            *self.connectors,
            calls=Topics(topics),
            transactions=self,
            acls=self.acls,
            other_acls=lambda bootstrap, overrides: self.other,
            group=ConnectGroup("g", "Stable", "sessioned", members),
            internal=INTERNAL,
            state=self.state,
            enabled=self.enabled,
        )
        return observe(context, parse_principals(self.said))

    def connect_groups(self) -> Complete[frozenset[str]]:
        """The groups of workers on the Kafka cluster, as its brokers tell them."""
        if not self.groups:
            raise NotAuthorized("no rights")
        return Complete(self.groups)

    def found(self, goal: Goal = Goal.ENABLED) -> list[Finding]:
        facts, unseen = self.look()
        assert facts is not None
        assert unseen == ()
        return list(check(rules, facts, goal))

    def without(self, *gone: Binding) -> World:
        assert self.acls.acls is not None
        assert set(gone) <= set(self.acls.acls)
        self.acls.acls = [b for b in self.acls.acls if b not in gone]
        return self

    def also(self, *more: Binding) -> World:
        assert self.acls.acls is not None
        self.acls.acls.extend(more)
        return self


def source(name: str, config: Mapping[str, str] | None = None, tasks: int = 2) -> Connector:
    return Connector(
        name,
        None,
        dict.fromkeys(range(tasks)),
        {"tasks.max": str(tasks)} | dict(config or {}),
        "source",
    )


def ids(findings: list[Finding]) -> list[str]:
    return [finding.id for finding in findings]


@pytest.mark.parametrize("goal", list(Goal))
def test_a_cluster_with_all_its_permissions_gives_no_finding(goal: Goal) -> None:
    assert World().found(goal) == []


@pytest.mark.parametrize("goal", list(Goal))
def test_without_an_authorizer_nothing_is_needed_and_nobody_has_to_say_who_anybody_is(
    goal: Goal,
) -> None:
    world = World(FakeAcls(None), said=())
    assert world.found(goal) == []


def test_sinks_need_nothing_of_kip_618() -> None:
    sink = Connector("snk", None, {0: None}, {}, "sink")
    world = World(connectors=[source("src"), sink]).also(allow(C, READ, GROUP, "connect-snk"))
    assert world.found() == []


@pytest.mark.parametrize(
    ("gone", "rule", "says", "wishes"),
    [
        (
            LEADER[0],
            "ACL001",
            "Write and Describe on TransactionalId connect-cluster-g",
            (Goal.PREPARING, Goal.ENABLED),
        ),
        (WORKER[0], "ACL001", "User:w, the workers' principal, lacks Read on Group g", tuple(Goal)),
        (
            WORKER[1],
            "ACL001",
            "Read, Write and Describe on Topic g-config, g-offsets and g-status",
            tuple(Goal),
        ),
        (
            CLIENTS[0],
            "ACL002",
            "User:p, its producer, lacks Write on Topic g-offsets",
            (Goal.ENABLED,),
        ),
        (
            CLIENTS[1],
            "ACL003",
            "User:c, its consumer, lacks Read on Topic g-offsets",
            (Goal.ENABLED,),
        ),
        (
            CLIENTS[2],
            "ACL004",
            "User:a, its admin, lacks Describe on Topic g-offsets",
            (Goal.ENABLED,),
        ),
        (
            CLIENTS[4],
            "ACL002",
            "lacks Write and Describe on TransactionalId g-src-1",
            (Goal.ENABLED,),
        ),
        (
            CLIENTS[5],
            "ACL004",
            "lacks Write and Describe on TransactionalId g-src-0",
            (Goal.ENABLED,),
        ),
    ],
)
def test_what_is_missing_is_told_under_the_wishes_that_need_it(
    gone: Binding, rule: str, says: str, wishes: tuple[Goal, ...]
) -> None:
    for goal in Goal:
        findings = [f for f in World().without(gone).found(goal) if f.severity is not Severity.INFO]
        assert ids(findings) == ([rule] if goal in wishes else [])
        for finding in findings:
            assert says in finding.message
            assert finding.severity is Severity.ERROR
            assert "--emit kafka-acls" in str(finding.next_step)


def test_a_cluster_that_is_enabled_now_needs_all_of_it_now() -> None:
    assert ids(World(enabled=True).without(CLIENTS[0]).found(Goal.NOW)) == ["ACL002"]
    assert World(enabled=True).without(CLIENTS[0]).found(Goal.DOWNGRADE) == []


def test_write_is_enough_because_it_brings_describe() -> None:
    assert all(b.operation is not DESCRIBE or b.resource is not ID for b in CLIENTS)
    assert World().found() == []
    only_describe = replace(CLIENTS[3], operation=DESCRIBE)
    (finding,) = World().without(CLIENTS[3]).also(only_describe).found()
    assert "lacks Write on TransactionalId g-src-0." in finding.message


def test_many_ids_are_counted_and_not_listed() -> None:
    (producer, admin) = World(connectors=[source("src", tasks=20)]).found()
    assert (
        "Write and Describe on TransactionalId g-src-2, g-src-3, g-src-4 and 15 more."
        in producer.message
    )
    assert admin.id == "ACL004"


@pytest.mark.parametrize(
    ("connector", "known", "most"),
    [
        (source("src", {"tasks.max": "5"}, tasks=2), None, 5),
        (source("src", {"tasks.max": "1"}, tasks=4), None, 4),
        (
            source("src", {"tasks.max": "1"}, tasks=1),
            ConfiguredConnector("src", {}, task_count=3),
            3,
        ),
        (
            source("src", {"tasks.max": "1"}, tasks=1),
            ConfiguredConnector("src", {}, task_count_record=7),
            7,
        ),
        (source("src", {"tasks.max": "many"}, tasks=0), None, 1),
    ],
)
def test_the_ids_of_every_count_of_tasks_are_needed(
    connector: Connector, known: ConfiguredConnector | None, most: int
) -> None:
    state = ConfigState({"src": known}) if known else None
    facts, _ = World(connectors=[connector], state=state).look()
    assert facts is not None
    assert facts.sources[0].ids == most


DEDICATED = source("src", {"offsets.storage.topic": "own"})


def test_an_offsets_topic_of_its_own_is_needed_in_every_mode_and_created_where_it_is_missing() -> (
    None
):
    missing = World(connectors=[DEDICATED]).found(Goal.NOW)
    assert [(f.id, f.message) for f in missing] == [
        ("ACL002", "User:p, its producer, lacks Write on Topic own."),
        ("ACL003", "User:c, its consumer, lacks Read on Topic own."),
        ("ACL004", "User:a, its admin, lacks Describe and Create on Topic own."),
    ]
    there = World(connectors=[DEDICATED]).also(
        allow(P, WRITE, TOPIC, "own"),
        allow(C, READ, TOPIC, "own"),
        allow(A, DESCRIBE, TOPIC, "own"),
    )
    there.acls.topics.add("own")
    assert there.found(Goal.NOW) == []


def test_whoever_may_create_anything_may_create_a_topic() -> None:
    world = World(connectors=[DEDICATED]).also(
        allow(P, WRITE, TOPIC, "own"),
        allow(C, READ, TOPIC, "own"),
        allow(A, DESCRIBE, TOPIC, "own"),
    )
    assert ids(world.found(Goal.NOW)) == ["ACL004"]
    assert world.also(allow(A, CREATE, CLUSTER, "kafka-cluster")).found(Goal.NOW) == []


def test_target_topics_are_those_that_it_has_written_to() -> None:
    world = World(topics={"src": ["out"]})
    (finding,) = world.found(Goal.NOW)
    assert finding.message == "User:p, its producer, lacks Write and Describe on Topic out."
    world.also(allow(P, WRITE, TOPIC, "out"))
    assert world.found() == []
    world.connectors = [source("src", {"topic.creation.default.partitions": "3"})]
    (finding,) = world.found(Goal.NOW)
    assert finding.message == "User:a, its admin, lacks Describe on Topic out."


def test_brokers_before_2_8_want_an_acl_for_idempotence() -> None:
    world = World()
    world.acls.old = True
    assert ["IdempotentWrite on Cluster kafka-cluster" in f.message for f in world.found()] == [
        True,
        True,
    ]


def test_a_deny_is_told_as_such_with_the_command_that_takes_it_away() -> None:
    (finding,) = (
        World()
        .also(allow("User:*", WRITE, ID, "g-src", prefixed=True, deny=True, host="10.0.0.1"))
        .found()[:1]
    )
    assert finding.id == "ACL005"
    assert "Deny User:* from 10.0.0.1 Write on TransactionalId g-src… (prefixed)" in finding.message
    assert finding.next_step is not None
    assert (
        "--remove --force --deny-principal 'User:*' --deny-host 10.0.0.1 --operation Write"
        in finding.next_step
    )
    assert "--transactional-id g-src --resource-pattern-type prefixed" in finding.next_step
    assert set(ids(World().also(allow("User:*", ALL, ID, "*", deny=True)).found())) == {"ACL005"}


def test_an_acl_that_holds_for_some_workers_hosts_only_is_missing_on_the_others() -> None:
    world = World(hosts=("/10.0.0.1", "/10.0.0.2")).without(CLIENTS[0])
    (finding,) = world.also(replace(CLIENTS[0], host="10.0.0.1")).found()
    assert finding.message.endswith(
        "lacks Write on Topic g-offsets from 10.0.0.2, though other workers have it."
    )
    assert world.also(replace(CLIENTS[0], host="10.0.0.2")).found() == []


def test_super_users_need_no_acl() -> None:
    world = World(FakeAcls([], Authorizer(STANDARD, None, False), topics=set(INTERNAL.values())))
    hint = "If it is a super user, which the brokers do not report: --principal super="
    assert all(hint in str(f.next_step) for f in world.found())
    world.said = (*SAID, *(f"super={who}" for who in (W, P, C, A)))
    assert world.found() == []


def test_without_describe_configs_a_worker_sees_less_and_that_is_good_to_know() -> None:
    world = World().without(WORKER[1])
    world.also(*(allow(W, op, TOPIC, "g-", prefixed=True) for op in (READ, WRITE)))
    (finding,) = world.found()
    assert (finding.id, finding.severity) == ("ACL007", Severity.INFO)


# ----------------------------------------------------------------------------------------- patterns


def prefixed(name: str, *more: Connector, **said: Any) -> World:
    """A world whose producer has its ids by a prefix, beside other connectors with principals of
    their own.
    """
    world = World(connectors=[source("src"), *more], **said).without(CLIENTS[3], CLIENTS[4])
    others = [c.name for c in more]
    world.said = (
        *world.said,
        *(f"{n}:{role}=User:x" for n in others for role in ("producer", "consumer", "admin")),
    )
    world.also(allow("User:x", ALL, ID, "*"), allow("User:x", ALL, TOPIC, "*"))
    world.also(allow(P, WRITE, ID, name, prefixed=name != "*"))
    return world


def covered(world: World) -> list[str]:
    """What is said to be covered beside, of the producer's pattern."""
    found = [f for f in world.found() if "User:p" in f.message]
    assert set(ids(found)) <= {"ACL006"}
    return [f.message.rpartition("ids of ")[2] for f in found]


def test_a_prefix_that_covers_nobody_else_is_fine() -> None:
    assert covered(prefixed("g-src-")) == []
    assert covered(prefixed("g-src-", source("src2"), source("other"))) == []


def test_a_prefix_without_its_dash_covers_a_connector_with_a_longer_name() -> None:
    assert covered(prefixed("g-src", source("src2"))) == ["connector src2."]


def test_a_prefix_with_its_dash_covers_a_connector_whose_name_goes_on_with_one() -> None:
    assert covered(prefixed("g-src-", source("src-1"))) == ["connector src-1."]


def test_a_prefix_covers_another_group_whose_name_begins_so() -> None:
    assert covered(prefixed("g-", groups=frozenset({"g", "g-src", "h"}))) == ["group g-src."]
    assert covered(prefixed("g-src-", groups=frozenset({"g", "g-src", "h"}))) == ["group g-src."]


def test_a_wildcard_covers_everybody() -> None:
    assert covered(prefixed("*", source("src2"), groups=frozenset({"g", "h"}))) == [
        "connector src2, the leader and group h."
    ]


def test_a_prefix_over_connectors_of_the_same_principals_covers_nobody_else() -> None:
    world = World(connectors=[source("src"), source("src2")], said=("User:w",))
    world.acls.acls = [allow("User:w", ALL, kind, "*") for kind in (ID, TOPIC, GROUP)]
    assert world.found() == []


# --------------------------------------------------------------------------- other clusters, unseen


def elsewhere(**more: str) -> Connector:
    return source(
        "src",
        {
            f"{role}.override.bootstrap.servers": "other:9092"
            for role in ("producer", "consumer", "admin")
        }
        | more,
    )


def test_a_connector_that_writes_elsewhere_needs_its_permissions_there() -> None:
    world = World(connectors=[elsewhere()])
    assert ids(world.found()) == ["ACL002", "ACL003", "ACL004"]
    world.other.acls = CLIENTS
    (create,) = world.found()
    assert create.message == "User:a, its admin, lacks Create on Topic g-offsets."
    world.other.topics = {"g-offsets"}
    assert world.found() == []


def test_another_listener_of_the_same_cluster_is_that_cluster() -> None:
    world = World(connectors=[elsewhere()])
    world.other = FakeAcls(id="fake-cluster", errors={"bindings": NotAuthorized("no")})
    assert world.found() == []


def test_a_cluster_that_cannot_be_asked_is_told_and_the_rest_is_checked() -> None:
    world = World(connectors=[elsewhere()]).without(LEADER[0])
    world.other.errors["bindings"] = NotAuthorized(
        "no rights", why="lacks Describe on Cluster", next_step="Give it."
    )
    facts, unseen = world.look()
    assert unseen == (
        Unseen(
            "the ACLs of the Kafka cluster at other:9092",
            "no rights: lacks Describe on Cluster",
            "Give it.",
        ),
    )
    assert facts is not None
    assert ids(list(check(rules, facts, Goal.ENABLED))) == ["ACL001"]


def test_a_principal_that_may_not_list_acls_learns_that_nothing_was_checked() -> None:
    world = World()
    world.acls.errors["bindings"] = NotAuthorized(
        "no rights", next_step="Give it Describe on Cluster."
    )
    facts, (unseen,) = world.look()
    assert facts is None
    assert unseen.what == "the ACLs of the workers' Kafka cluster"
    assert unseen.next_step == "Give it Describe on Cluster."


def test_the_settings_of_the_authorizer_may_stay_unknown() -> None:
    world = World()
    world.acls.errors["authorizer"] = NotAuthorized("no rights")
    assert world.found() == []


def test_an_authorizer_that_may_decide_by_more_than_acls_is_told_and_makes_errors_warnings() -> (
    None
):
    world = World().without(LEADER[0])
    world.acls.settings = Authorizer("com.example.Ranger", frozenset(), False)
    facts, (unseen,) = world.look()
    assert "com.example.Ranger" in unseen.why
    assert facts is not None
    assert [(f.id, f.severity) for f in check(rules, facts, Goal.ENABLED)] == [
        ("ACL001", Severity.WARNING)
    ]


def test_principals_that_nobody_told_are_told_once_for_each_reason() -> None:
    _, unseen = World(said=(), connectors=[source("a"), source("b")]).look()
    assert [u.what for u in unseen] == ["the permissions of the workers and of the clients of a, b"]
    ssl = source("s", {"admin.override.security.protocol": "SSL"})
    _, (certificate,) = World(connectors=[ssl]).look()
    assert "certificate" in certificate.why
    assert certificate.what == "the permissions of the admin of s"
    assert certificate.next_step == "Give --principal s:admin=User:NAME."


def test_topics_that_workers_do_not_tell_are_told() -> None:
    facts, (unseen,) = World(hosts=(), topics={"src": None}).look()
    assert (unseen.what, unseen.why) == (
        "the topics that src write to",
        "Topic tracking is disabled",
    )
    assert facts is not None
    assert facts.hosts == ("*",)


def test_groups_that_cannot_be_listed_are_told() -> None:
    _, (unseen,) = World(groups=frozenset()).look()
    assert "other Connect clusters" in unseen.what


def test_the_next_step_is_a_command_with_the_same_principals() -> None:
    (finding,) = World().without(CLIENTS[0]).found()
    assert finding.next_step == (
        "connectctl preflight src --for enabled --principal worker=User:w --principal "
        "producer=User:p --principal consumer=User:c --principal admin=User:a --emit kafka-acls "
        "prints the commands that allow it."
    )

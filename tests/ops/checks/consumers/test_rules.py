from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from connectctl.ops.checks.consumers import rules
from connectctl.ops.checks.consumers.observe import ReaderFacts, observe
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.status_topic import topics as recorded_topics
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.brokers import ReaderGroup, ReaderMember
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Bounds, PartitionProducer
from fakes.brokers import FakeBrokers
from fakes.check_context import check_context
from fakes.coordinators import FakeCoordinators
from fakes.counted import Counted
from fakes.kafkareads import records
from hypothesis import given
from hypothesis import strategies as st

ORDERS, STABLE, END = TopicPartition("orders", 0), 90, 100
OPEN = {ORDERS: (PartitionProducer(7, 0, 0, 0, STABLE),)}
"""A transaction is open on ``orders`` from offset 90, and its end is at 100."""
SOURCE = {"connector.class": "x.Source", "topic": "orders"}
SINK = {"connector.class": "x.Sink", "topics": "orders,other"}
OVERRIDE = "consumer.override.isolation.level"
MIRROR = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.bootstrap.servers": "here:9092",
}
TRACKING_OFF = ConnectctlError("The worker refuses", why="Topic tracking is disabled.")


@dataclass
class Topics:
    """Workers that know which topics connectors write to, or fail to tell."""

    active: dict[str, list[str]] = field(default_factory=dict)
    error: ConnectctlError | None = None
    urls: tuple[str, ...] = ("http://one:8083",)

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        if self.error is not None:
            raise self.error
        name = path.split("/")[2]
        return {name: {"topics": self.active.get(name, [])}}

    def send(self, *args: Any, **named: Any) -> Any:
        raise AssertionError("nothing is changed")


def sources(
    *connectors: Connector, fake: FakeBrokers | None = None, **changes: Any
) -> CheckContext:
    """A cluster with these connectors, and a source called ``src`` that writes to ``orders``."""
    clean: dict[str, Any] = {
        "calls": Topics(),
        "transactions": FakeCoordinators(partitions=dict(OPEN)),
    }
    return check_context(source("src"), *connectors, brokers=fake, **(clean | changes))


def source(name: str, **config: str) -> Connector:
    return Connector(name, None, config=SOURCE | config, type="source")


def sink(name: str = "snk", base: dict[str, str] | None = None, **config: str) -> Connector:
    own = {key.replace("_", "."): value for key, value in config.items()}
    return Connector(name, None, config=(base or SINK) | own, type="sink")


def mirror(**config: str) -> Connector:
    own = {key.replace("_", "."): value for key, value in config.items()}
    return Connector("mirror", None, config=MIRROR | own, type="source")


def reading(*groups: ReaderGroup, **more: Any) -> FakeBrokers:
    return FakeBrokers(groups={group.id: group for group in groups}, **more)


def committed(id_: str, offset: int, state: str = "Stable") -> ReaderGroup:
    return ReaderGroup(id_, state=state, committed={ORDERS: offset})


def found(given: CheckContext, goal: Goal = Goal.ENABLED) -> list[Finding]:
    return list(check(rules, observe(given, goal), goal))


def ids(given: CheckContext, goal: Goal = Goal.ENABLED) -> list[tuple[str, str]]:
    return [
        (finding.id, finding.subject) for finding in found(given, goal) if finding.id != "SINK001"
    ]


@pytest.mark.parametrize("goal", Goal)
def test_a_cluster_without_sinks_and_readers_gives_no_finding(goal: Goal) -> None:
    assert found(sources(), goal) == []
    assert observe(sources(), goal).unseen == ()


# -------------------------------------------------------------------------------------------- sinks


@pytest.mark.parametrize(
    ("goal", "said"), [(Goal.NOW, 0), (Goal.PREPARING, 1), (Goal.ENABLED, 1), (Goal.DOWNGRADE, 0)]
)
@pytest.mark.parametrize("enabled", [True, False, None])
def test_that_sinks_are_untouched_is_said_once(goal: Goal, said: int, enabled: bool | None) -> None:
    given = sources(sink("a"), sink("b"), enabled=enabled)
    about = [finding for finding in found(given, goal) if finding.id == "SINK001"]
    assert len(about) == said
    assert all((each.severity, "a, b" in each.message) == (Severity.INFO, True) for each in about)


@pytest.mark.parametrize(
    ("config", "told", "judged"),
    [
        pytest.param({}, None, True, id="Kafka's default"),
        pytest.param(
            {OVERRIDE: "read_uncommitted"}, "read_committed", True, id="the override wins"
        ),
        pytest.param({OVERRIDE: "read_committed"}, None, False, id="read_committed"),
        pytest.param({}, "read_committed", False, id="read_committed by the workers"),
        pytest.param({"topics": "other"}, None, False, id="another topic"),
        pytest.param({"topics": "", "topics.regex": "ord.*"}, None, True, id="by a pattern"),
        pytest.param(
            {"topics": "", "topics.regex": "ord"}, None, False, id="a pattern fits whole names"
        ),
        pytest.param(
            {"topics": "", "topics.regex": "(?!x)orders++"}, None, True, id="a pattern of Java's"
        ),
        pytest.param(
            {"topics": "", "topics.regex": "\\p{L}+"},
            None,
            True,
            id="one that Python does not know",
        ),
        pytest.param(
            {"consumer.override.bootstrap.servers": "there:9092"},
            None,
            False,
            id="of another cluster",
        ),
    ],
)
def test_a_sink_without_read_committed_is_told(
    config: dict[str, str], told: str | None, judged: bool
) -> None:
    given = sources(
        sink("snk", SINK | config), told={"consumer.isolation.level": told} if told else {}
    )
    assert ids(given) == ([("READER001", "snk")] if judged else [])


def test_a_sink_whose_level_nobody_sets_may_have_it_of_the_workers() -> None:
    (finding,) = [each for each in found(sources(sink())) if each.id == "READER001"]
    assert "unless the workers set consumer.isolation.level" in finding.message
    assert finding.next_step == "Set consumer.override.isolation.level=read_committed"


def test_a_sinks_group_is_told_with_the_sink_and_not_once_more() -> None:
    fake = reading(committed("connect-snk", 50), committed("mine", 50))
    given = sources(sink(), sink("own", SINK | {"consumer.override.group.id": "mine"}), fake=fake)
    assert ids(given) == [("READER001", "snk"), ("READER001", "own")]


# ------------------------------------------------------------------------------------------ mirrors


@pytest.mark.parametrize(
    ("config", "judged"),
    [
        ({}, True),
        ({"source.consumer.isolation.level": "read_committed"}, False),
        ({"consumer.isolation.level": "read_committed"}, False),
        (
            {
                "consumer.isolation.level": "read_committed",
                "source.consumer.isolation.level": "read_uncommitted",
            },
            True,
        ),
        ({"topics": "or.*, x"}, True),
        ({"topics": "x"}, False),
        ({"topics.exclude": "orders"}, False),
        ({"topics.exclude": "\\p{L}+"}, True),
        ({"source.cluster.bootstrap.servers": "there:9092"}, False),
    ],
)
def test_a_mirror_of_this_cluster_without_read_committed_is_told(
    config: dict[str, str], judged: bool
) -> None:
    assert ids(sources(mirror(**config))) == ([("READER002", "mirror")] if judged else [])


def test_what_a_mirror_reads_is_not_taken_for_what_it_writes() -> None:
    seen = observe(sources(mirror(topics="upstream")), Goal.ENABLED)
    assert seen.sources == {"src": {"orders"}, "mirror": set()}


# ------------------------------------------------------------------------------------------- groups


@given(st.integers(0, 120))
def test_only_a_commit_above_the_last_stable_offset_proves_read_uncommitted(offset: int) -> None:
    proof = STABLE < offset <= END
    expected = [("READER003", "app")] if proof else [("READER005", "src")]
    assert ids(sources(fake=reading(committed("app", offset)))) == expected


@pytest.mark.parametrize(
    ("offset", "state", "doubt"),
    [(END, "Empty", True), (END, "Stable", False), (END - 1, "Empty", False)],
)
def test_offsets_at_the_end_of_a_group_that_nobody_reads_in_may_have_been_set_by_hand(
    offset: int, state: str, doubt: bool
) -> None:
    (finding,) = found(sources(fake=reading(committed("app", offset, state))))
    assert ("by hand" in finding.message) is doubt


def test_the_proof_names_who_reads() -> None:
    group = replace(
        committed("app", 95), members=(ReaderMember("billing", "/10.0.0.7", frozenset({"orders"})),)
    )
    (finding,) = found(sources(fake=reading(group)))
    assert finding.message == (
        "It committed 95 on orders-0; read_committed readers get no further than 90. Its members: "
        "billing at 10.0.0.7."
    )


def test_groups_of_which_nothing_shows_are_named_for_each_source() -> None:
    member = ReaderGroup("new", members=(ReaderMember("x", "/h", frozenset({"orders"})),))
    fake = reading(
        committed("app", 50),
        member,
        ReaderGroup("apart", committed={TopicPartition("other", 0): 1}),
    )
    (finding,) = found(sources(source("quiet", topic="nowhere"), fake=fake))
    assert (finding.id, finding.severity, finding.subject) == ("READER005", Severity.INFO, "src")
    assert "app, new;" in finding.message


def test_share_groups_are_named_because_nobody_looks_at_what_they_read() -> None:
    (finding,) = found(sources(fake=reading(ReaderGroup("queue", "share"))))
    assert (finding.id, finding.severity, finding.subject) == (
        "READER005",
        Severity.INFO,
        "share groups",
    )
    assert finding.message.startswith("queue: ")
    assert "share.isolation.level=read_committed" in (finding.next_step or "")


def test_many_groups_are_counted() -> None:
    fake = reading(*(committed(f"g{n:02}", 50) for n in range(25)))
    (finding,) = found(sources(fake=fake))
    assert "g19 and 5 more" in finding.message


@pytest.mark.parametrize(
    ("enabled", "goal", "asked"),
    [
        (True, Goal.NOW, True),
        (False, Goal.NOW, False),
        (None, Goal.NOW, False),
        (False, Goal.PREPARING, True),
        (True, Goal.PREPARING, False),
        (False, Goal.ENABLED, True),
        (True, Goal.DOWNGRADE, False),
    ],
)
def test_readers_matter_where_there_are_or_will_be_transactions(
    enabled: bool | None, goal: Goal, asked: bool
) -> None:
    given = sources(sink(), fake=reading(committed("app", 95)), enabled=enabled)
    assert ids(given, goal) == ([("READER001", "snk"), ("READER003", "app")] if asked else [])


# ----------------------------------------------------------------------------------- what is unseen


def unseen(given: CheckContext) -> list[str]:
    return [each.what for each in observe(given, Goal.ENABLED).unseen]


def test_topics_are_those_that_workers_saw_and_those_that_the_configuration_names() -> None:
    given = sources(calls=Topics({"src": ["payments"]}))
    assert observe(given, Goal.ENABLED).topics == {"orders", "payments"}


def test_where_no_worker_tells_topics_the_status_topic_does() -> None:
    given = sources(calls=Topics(error=TRACKING_OFF), recorded={"src": frozenset(["payments"])})
    assert (set(observe(given, Goal.ENABLED).topics), unseen(given)) == ({"orders", "payments"}, [])
    nothing: tuple[Any, ...] = (None, {})
    for told in nothing:
        assert unseen(sources(calls=Topics(error=TRACKING_OFF), recorded=told)) == [
            "the active topics of src"
        ]


def test_records_of_the_status_topic_that_are_no_topics_are_passed_over() -> None:
    said = {"topic": {"name": "t", "connector": "a"}}
    odd = [
        ConsumerRecord(b"status-topic-x:connector-a", b"{", 0, 9),
        ConsumerRecord(None, b"1", 0, 10),
    ]
    some = records(
        ("status-task-a-0", {"state": "RUNNING"}),
        ("status-topic-t:connector-a", said),
        ("status-topic-y", None),
    )
    assert recorded_topics([*some, *odd]) == {"a": {"t"}}


def test_a_source_that_writes_to_another_cluster_is_said_to_be_out_of_sight() -> None:
    far = source("far", **{"producer.override.bootstrap.servers": "there:9092"})
    assert unseen(sources(far)) == ["who reads from far"]


@pytest.mark.parametrize(
    ("fake", "said"),
    [
        (
            FakeBrokers(down=Unreachable("down")),
            ["consumer groups", "who reads the topics of source connectors"],
        ),
        (reading(complete=False), ["all consumer groups"]),
        (reading(problems={2: Unreachable("down")}), ["the groups of broker 2"]),
        (
            reading(ReaderGroup("app", problem=NotAuthorized("denied"))),
            ["the topics that app reads"],
        ),
        (FakeBrokers(unseen={"orders"}), ["who reads orders"]),
    ],
)
def test_what_cannot_be_seen_of_readers_is_said(fake: FakeBrokers, said: list[str]) -> None:
    assert unseen(sources(fake=fake)) == said


class SilentCoordinators(FakeCoordinators):
    """Leaders of partitions that do not answer."""

    def bounds(self, places: Any) -> dict[TopicPartition, Bounds | Code]:
        raise Unreachable("Kafka does not answer")


def test_without_last_stable_offsets_groups_are_named_and_the_gap_is_said() -> None:
    given = sources(fake=reading(committed("app", 95)), transactions=SilentCoordinators())
    assert (unseen(given), ids(given)) == (["last stable offsets"], [("READER005", "src")])


def test_facts_without_anything_give_no_finding() -> None:
    assert list(check(rules, ReaderFacts(), Goal.ENABLED)) == []


def test_the_readers_of_a_cluster_are_gone_through_once_however_many_connectors_write() -> None:
    written = {f"c{n}": frozenset({f"t{n}", "shared"}) for n in range(100)}
    groups = Counted(
        ReaderGroup(f"g{n}", committed={TopicPartition(f"t{n}", 0): 1}) for n in range(100)
    )
    told = list(check(rules, ReaderFacts(written, groups=groups, enabled=True), Goal.ENABLED))
    assert sorted(f.subject for f in told if f.id == "READER005") == sorted(written)
    assert groups.passes < 5

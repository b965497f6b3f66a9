"""Which offset store a connector has, and everything that can be wrong with it, from facts made by
hand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.offset_stores import rules
from connectctl.ops.checks.offset_stores.observe import (
    ConnectorStore,
    StoreCluster,
    StoreFacts,
    observe,
    target_mode,
)
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.connector_class import configured_topics
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.offset_store import Kind, Store, StoreMode, store_of
from connectctl.ops.connect.source_keys import SourceKey, parse_key
from connectctl.ops.connect.source_offsets import (
    ConnectorOffsets,
    SourceOffset,
    StoredOffset,
    effective,
    worker_reads,
)
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.topics import TopicFacts
from fakes.check_context import check_context
from fakes.kafkareads import FakeKafka, records
from hypothesis import given
from hypothesis import strategies as st

HERE, THERE = "a:9092,b:9092", "far:9092"
GLOBAL = "connect-offsets"
NAMED, ELSEWHERE = {"offsets.storage.topic": "own"}, {"producer.override.bootstrap.servers": THERE}
ALL_ELSEWHERE = {
    f"{client}.override.bootstrap.servers": THERE for client in ("producer", "consumer", "admin")
}
NOW_MS = 1_000_000_000
SEPARATE, OWN, WORKERS = Kind.SEPARATE, Kind.OWN_CLIENTS, Kind.WORKERS


@pytest.mark.parametrize(
    ("mode", "config", "store"),
    [
        (StoreMode.NOT_ENABLED, {}, Store(WORKERS, GLOBAL)),
        (StoreMode.NOT_ENABLED, ELSEWHERE, Store(WORKERS, GLOBAL)),
        (StoreMode.NOT_ENABLED, {"offsets.storage.topic": GLOBAL}, Store(OWN, GLOBAL)),
        (StoreMode.NOT_ENABLED, NAMED, Store(SEPARATE, "own")),
        (StoreMode.NOT_ENABLED, NAMED | ELSEWHERE, Store(SEPARATE, "own", THERE)),
        (StoreMode.ENABLED, {}, Store(OWN, GLOBAL)),
        (StoreMode.ENABLED, {"offsets.storage.topic": GLOBAL}, Store(OWN, GLOBAL)),
        (StoreMode.ENABLED, ELSEWHERE, Store(SEPARATE, GLOBAL, THERE, implicit=True)),
        (
            StoreMode.ENABLED,
            {"offsets.storage.topic": GLOBAL} | ELSEWHERE,
            Store(SEPARATE, GLOBAL, THERE),
        ),
        (StoreMode.ENABLED, NAMED, Store(SEPARATE, "own")),
        (StoreMode.STANDALONE, NAMED | ELSEWHERE, Store(WORKERS, GLOBAL)),
    ],
)
def test_the_store_is_the_one_that_the_worker_chooses(
    mode: StoreMode, config: dict[str, str], store: Store
) -> None:
    assert store_of(mode, config, GLOBAL, HERE) == store


@pytest.mark.parametrize(
    ("servers", "same"),
    [
        ("a:9092,b:9092", True),
        ("b:9092, a:9092", True),
        ("a:9092,b:9092,a:9092", True),
        ("a:9092", False),
        ("a:9092,b:9092,", False),
        ("", False),
        ("a.:9092,b:9092", False),
        ("A:9092,b:9092", False),
        ("a:09092,b:9092", False),
    ],
)
def test_bootstrap_servers_are_compared_as_sets_of_texts(servers: str, same: bool) -> None:
    config = {"producer.override.bootstrap.servers": servers}
    assert (store_of(StoreMode.ENABLED, config, GLOBAL, HERE).kind is OWN) is same


def test_the_workers_own_producer_servers_count_where_the_connector_has_none() -> None:
    assert store_of(StoreMode.ENABLED, {}, GLOBAL, HERE, THERE) == Store(
        SEPARATE, GLOBAL, THERE, implicit=True
    )
    config = {"producer.override.bootstrap.servers": HERE}
    assert store_of(StoreMode.ENABLED, config, GLOBAL, HERE, THERE).kind is OWN


@given(st.permutations(["a:1", "b:2", "c:3"]), st.sampled_from(StoreMode))
def test_the_order_of_servers_makes_no_store(order: list[str], mode: StoreMode) -> None:
    config = {"producer.override.bootstrap.servers": ", ".join(order)}
    assert store_of(mode, config, GLOBAL, "a:1,b:2,c:3").kind is not SEPARATE


@pytest.mark.parametrize(
    ("mode", "goal", "leads_to"),
    [
        (StoreMode.ENABLED, Goal.NOW, StoreMode.ENABLED),
        (StoreMode.NOT_ENABLED, Goal.NOW, StoreMode.NOT_ENABLED),
        (None, Goal.NOW, None),
        (StoreMode.NOT_ENABLED, Goal.PREPARING, StoreMode.ENABLED),
        (StoreMode.ENABLED, Goal.PREPARING, StoreMode.NOT_ENABLED),
        (None, Goal.ENABLED, StoreMode.ENABLED),
        (StoreMode.ENABLED, Goal.DOWNGRADE, StoreMode.NOT_ENABLED),
    ],
)
def test_preparing_is_the_way_to_enabled_and_the_way_back(
    mode: StoreMode | None, goal: Goal, leads_to: StoreMode | None
) -> None:
    assert target_mode(mode, goal) == leads_to


# ---------------------------------------------------------------------------------------- the rules


def entry(
    global_: Any = None,
    dedicated: Any = None,
    *,
    ages: tuple[int, int] = (0, 0),
    separate: bool = True,
) -> Any:
    """One source partition; ``ages`` in seconds of the global and the dedicated record."""
    key = parse_key(b'["c",{"t":"x"}]')
    assert isinstance(key, SourceKey)
    left = (
        None if global_ is None else StoredOffset({"pos": global_}, NOW_MS - ages[0] * 1000, 0, 0)
    )
    right = (
        None
        if dedicated is None
        else StoredOffset({"pos": dedicated}, NOW_MS - ages[1] * 1000, 0, 0)
    )
    value, origin = effective(left, right)
    return SourceOffset(
        key, left, right, value, origin, worker_reads(key, left, right, has_dedicated=separate)
    )


def layout(name: str, replicas: int = 1) -> TopicFacts:
    return TopicFacts(name, 1, {0: replicas}, {0: replicas}, {"cleanup.policy": "compact"})


def facts(
    config: dict[str, str],
    *entries: SourceOffset,
    mode: StoreMode = StoreMode.ENABLED,
    goal: Goal = Goal.NOW,
    topics: tuple[str, ...] = ("own",),
    there: StoreCluster | None = None,
    targets: tuple[str, ...] = (),
    **more: Any,
) -> StoreFacts:
    """A connector ``c`` with this configuration and these offsets; ``there`` is the cluster at
    ``far``.
    """
    now = store_of(mode, config, GLOBAL, HERE)
    then = store_of(target_mode(mode, goal) or mode, config, GLOBAL, HERE)
    own = then if then.kind is SEPARATE else now
    offsets = ConnectorOffsets("c", own.topic if own.kind is SEPARATE else None, entries)
    clients = {
        c: config.get(f"{c}.override.bootstrap.servers", HERE)
        for c in ("producer", "consumer", "admin")
    }
    here = StoreCluster("here", 3, {name: layout(name, 3) for name in (GLOBAL, *topics)})
    found = StoreFacts(
        (ConnectorStore("c", config, now, then, offsets, frozenset(targets), clients),),
        mode,
        "4.3.1",
        GLOBAL,
        HERE,
        internal={"config": "cfg", "status": "sta", "offsets": GLOBAL},
        clusters={HERE: here} | ({THERE: there} if there else {}),
        taken_at=NOW_MS / 1000,
    )
    return replace(found, **more)


def only(found: StoreFacts, id: str, goal: Goal = Goal.NOW) -> Finding:
    """The one finding with this id."""
    (finding,) = [finding for finding in check(rules, found, goal) if finding.id == id]
    return finding


def ids(found: StoreFacts, goal: Goal = Goal.NOW) -> set[str]:
    return {finding.id for finding in check(rules, found, goal)}


FAR = StoreCluster("far", 3, {GLOBAL: layout(GLOBAL, 3)})


@pytest.mark.parametrize("goal", list(Goal))
@pytest.mark.parametrize("mode", [StoreMode.ENABLED, StoreMode.NOT_ENABLED])
def test_a_connector_without_overrides_gives_no_finding(mode: StoreMode, goal: Goal) -> None:
    found = facts(
        {"topic": "lines"}, entry(5, separate=False), mode=mode, goal=goal, targets=("lines",)
    )
    assert list(check(rules, found, goal)) == []


def test_a_dedicated_topic_that_is_not_seeded_loses_the_place() -> None:
    finding = only(facts(NAMED, entry(5)), "STORE001")
    assert (finding.severity, finding.subject) == ("error", "c")
    assert "restart 1 source partition from the beginning" in finding.message
    assert finding.next_step == "connectctl offsets merge c --into dedicated --stop"
    assert "KIP-618, Smooth migration" in (finding.why or "")


def test_a_seeded_topic_loses_nothing_and_one_that_is_half_seeded_is_told_by_its_offsets() -> None:
    assert ids(facts(NAMED, entry(5, 5))) == {"STORE012"}
    half = facts(
        NAMED,
        entry(5, 5),
        entry(6),
        offsets_findings=(Finding("OFFSETS001", Severity.ERROR, "c", "half"),),
    )
    assert ids(half) == {"STORE012", "OFFSETS001"}
    none = replace(facts(NAMED, entry(6)), offsets_findings=half.offsets_findings)
    assert ids(none) == {"STORE012", "STORE001"}, "not said twice"


def test_an_implicit_topic_is_foreseen_for_enabled_and_only_warned_of_for_preparing() -> None:
    def of(goal: Goal) -> StoreFacts:
        return facts(ALL_ELSEWHERE, entry(5), mode=StoreMode.NOT_ENABLED, goal=goal, there=FAR)

    finding = only(of(Goal.ENABLED), "STORE001", Goal.ENABLED)
    assert finding.severity == "error"
    assert "implicitly" in finding.message
    assert "set offsets.storage.topic=c-offsets on it, then connectctl offsets merge c" in (
        finding.next_step or ""
    )
    assert only(of(Goal.PREPARING), "STORE001", Goal.PREPARING).severity == "warning"
    assert ids(of(Goal.NOW)) == set()
    assert ids(of(Goal.DOWNGRADE), Goal.DOWNGRADE) == set()


def test_an_old_implicit_topic_wins_when_exactly_once_comes_back() -> None:
    old = entry(50, 5, ages=(10, 100_000))
    found = facts(ALL_ELSEWHERE, old, mode=StoreMode.NOT_ENABLED, goal=Goal.ENABLED, there=FAR)
    finding = only(found, "STORE002", Goal.ENABLED)
    assert "99990 s older" in finding.message
    assert finding.severity == "error"
    same = facts(
        ALL_ELSEWHERE,
        entry(5, 5, ages=(10, 99)),
        mode=StoreMode.NOT_ENABLED,
        goal=Goal.ENABLED,
        there=FAR,
    )
    assert "STORE002" not in ids(same, Goal.ENABLED)


def test_a_topic_that_cannot_be_created_is_an_error_and_one_that_can_an_info() -> None:
    lonely = StoreCluster("far", 1, {})
    config = NAMED | ALL_ELSEWHERE
    finding = only(facts(config, there=lonely), "STORE003")
    assert "require 3 replicas, as connect-offsets has, of 1 brokers" in finding.message
    assert only(facts(config, there=replace(lonely, brokers=3)), "STORE004").severity == "info"
    told = (Finding("OFFSETS010", Severity.WARNING, "c", "does not exist"),)
    assert ids(facts(config, there=lonely, offsets_findings=told)) == {"STORE003", "STORE012"}
    assert ids(facts(NAMED, topics=())) == {"STORE004", "STORE012"}
    assert ids(facts(NAMED, entry(5), topics=())) == {"STORE001", "STORE012"}


def test_two_spellings_of_the_workers_own_cluster_make_a_needless_store() -> None:
    there = StoreCluster("here", 3, {GLOBAL: layout(GLOBAL)})
    found = facts(
        ELSEWHERE,
        entry(5, 5),
        there=there,
        offsets_findings=(Finding("OFFSETS015", Severity.WARNING, "c", "x"),),
    )
    finding = only(found, "STORE005")
    assert "unless the workers use the same spelling" in finding.message
    assert "unless" not in only(replace(found, bootstrap_configured=True), "STORE005").message
    assert ids(found) == {"STORE005", "STORE012"}
    assert "STORE005" not in ids(facts(ELSEWHERE, entry(5, 5), there=FAR))
    assert "STORE005" not in ids(facts(NAMED | ELSEWHERE, entry(5, 5), there=there)), (
        "a topic of its own is wanted"
    )


@pytest.mark.parametrize(("topic", "role"), [("cfg", "config"), ("sta", "status")])
def test_the_workers_other_topics_are_no_offsets_topics(topic: str, role: str) -> None:
    finding = only(facts({"offsets.storage.topic": topic}, topics=(topic,)), "STORE006")
    assert f"the workers' {role} topic" in finding.message


def test_clients_on_different_clusters_are_told_apart() -> None:
    finding = only(facts(ELSEWHERE, entry(5, 5), there=FAR), "STORE007")
    assert (
        "its consumer and admin connect to a:9092,b:9092, another Kafka cluster" in finding.message
    )
    assert "admin.override.bootstrap.servers=far:9092" in (finding.next_step or "")
    assert "STORE007" not in ids(facts(ALL_ELSEWHERE, entry(5, 5), there=FAR))
    assert "STORE007" not in ids(facts(ELSEWHERE, entry(5, 5), there=replace(FAR, id="here"))), (
        "spelled otherwise only"
    )
    assert ids(facts(ELSEWHERE, mode=StoreMode.NOT_ENABLED, there=FAR)) == set(), (
        "the workers' own clients do it"
    )


def test_a_connector_that_writes_to_its_own_offsets_topic_fails_with_exactly_once() -> None:
    assert only(facts(NAMED, targets=("own",)), "STORE008").severity == "error"
    assert only(facts({}, targets=(GLOBAL,)), "STORE008").severity == "error"
    assert only(facts(NAMED, targets=(GLOBAL,)), "STORE008").severity == "warning"
    disabled = facts({}, mode=StoreMode.NOT_ENABLED, targets=(GLOBAL,))
    assert only(disabled, "STORE008").severity == "warning"
    away = facts(ALL_ELSEWHERE, mode=StoreMode.NOT_ENABLED, there=FAR, targets=(GLOBAL,))
    assert ids(away) == set(), "a topic of that name on another cluster is another topic"


def test_an_implicit_topic_without_anything_to_lose_is_good_to_know() -> None:
    found = facts(ALL_ELSEWHERE, mode=StoreMode.NOT_ENABLED, goal=Goal.ENABLED, there=FAR)
    assert only(found, "STORE009", Goal.ENABLED).severity == "info"


@pytest.mark.parametrize(
    ("global_", "dedicated", "ages", "told"),
    [
        (5, 9, (200, 100), True),  # the copy did not come for longer than a minute
        (5, 9, (10, 5), False),  # it may be on its way
        (5, 9, (500, 5), True),  # it has not come for long, and the connector goes on
        (9, 5, (5, 500), False),  # the global one is newer: that is STORE002's and OFFSETS013's
        (9, 9, (500, 500), False),
        (None, 9, (0, 500), True),
        (None, 9, (0, 5), False),
    ],
)
def test_a_global_topic_that_is_behind_is_told_before_a_downgrade(
    global_: int | None, dedicated: int, ages: tuple[int, int], told: bool
) -> None:
    found = facts(
        ALL_ELSEWHERE, entry(global_, dedicated, ages=ages), goal=Goal.DOWNGRADE, there=FAR
    )
    assert ("STORE010" in ids(found, Goal.DOWNGRADE)) is told
    assert "STORE010" not in ids(found)


def test_a_topic_that_the_configuration_names_is_left_only_by_old_workers() -> None:
    found = facts(NAMED, entry(5, 9, ages=(500, 400)), goal=Goal.DOWNGRADE)
    finding = only(found, "STORE010", Goal.DOWNGRADE)
    assert finding.severity == "info"
    assert "Workers before 3.3" in finding.message
    assert finding.next_step == "connectctl offsets merge c --into global --stop"


def test_connectors_that_share_a_topic_are_named() -> None:
    found = facts(NAMED)
    (one,) = found.connectors
    finding = only(replace(found, connectors=(one, replace(one, name="d"))), "STORE011")
    assert (finding.subject, finding.severity) == ("own", "info")
    assert "c, d" in finding.message


@pytest.mark.parametrize(
    ("version", "told"), [("3.7.2", False), ("3.8.0", True), ("4.3.1", True), (None, False)]
)
def test_a_reset_that_the_workers_cannot_do_is_told_once(version: str | None, told: bool) -> None:
    assert ("STORE012" in ids(facts(NAMED, version=version))) is told
    assert "STORE012" not in ids(facts(NAMED, version=version, mode=StoreMode.NOT_ENABLED))


def test_properties_that_name_targets_are_told_from_those_that_do_not() -> None:
    config = {
        "topic": "a",
        "kafka.topic": "b",
        "topics": "c, d",
        "offsets.storage.topic": "own",
        "errors.topic": "e",
    }
    assert configured_topics(config | {"transforms.r.topic": "f", "topic.prefix": "g"}) == {
        "a",
        "b",
        "c",
        "d",
    }


# ------------------------------------------------------------------------------------------ looking


def sources(config: dict[str, str], enabled: bool | None = True) -> CheckContext:
    kafka = FakeKafka()
    named = {"properties": config | {"connector.class": "x.Source"}}
    kafka.records |= {
        "cfg": records(("connector-c", named)),
        GLOBAL: records(('["c",{"t":"x"}]', {"pos": 5})),
    }

    def nobody(bootstrap: str, overrides: Any) -> FakeKafka:
        raise Unreachable(f"Kafka at {bootstrap} does not answer", why="connection refused")

    mine, internal = Connector("c", None, config=config), {"config": "cfg", "offsets": GLOBAL}
    where: dict[str, Any] = {"bootstrap": HERE, "other_kafka": nobody, "internal": internal}
    return check_context(mine, kafka=kafka, enabled=enabled, **where)


def test_looking_reads_both_topics_and_judges_what_workers_will_do() -> None:
    seen = observe(sources(NAMED), Goal.NOW, 0.0)
    assert seen.unseen == ()
    assert ids(seen) == {"STORE001", "STORE012"}


def test_a_cluster_that_cannot_be_reached_is_no_silent_pass() -> None:
    seen = observe(sources(ALL_ELSEWHERE), Goal.NOW, 0.0)
    (unseen,) = seen.unseen
    assert "far:9092" in unseen.what
    assert "connection refused" in unseen.why
    assert "OFFSETS011" in ids(seen)


def test_workers_that_do_not_tell_their_mode_are_no_silent_pass() -> None:
    assert [unseen.what for unseen in observe(sources({}, None), Goal.NOW, 0.0).unseen] == [
        "offset stores"
    ]


def test_an_offsets_topic_that_may_not_be_read_is_no_silent_pass() -> None:
    given_ = sources(NAMED)
    given_.edges.kafka.forbidden.add(GLOBAL)  # type: ignore[attr-defined]
    (unseen,) = observe(given_, Goal.NOW, 0.0).unseen
    assert unseen.what == "source offsets"

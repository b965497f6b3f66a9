"""FLOW003 to FLOW008 on groups and commits made for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.checks.history.records import History, StatusRecord
from connectctl.ops.checks.sinks import rules
from connectctl.ops.checks.sinks.observe import SinkFacts, observe
from connectctl.ops.connect.connector import Connector, Status
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.errors import NotAuthorized, Unreachable
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.brokers import ReaderGroup, ReaderMember
from connectctl.ops.kafka.offset_commits import TOPIC, OffsetCommit, offset_commits
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.brokers import FakeBrokers
from fakes.check_context import check_context
from fakes.kafkareads import FakeKafka

NOW = 1_000_000.0
MINUTE, HOUR = 60.0, 3600.0
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MEMBER = ReaderMember("consumer", "/127.0.0.1")


def log(partition: int, *ages: float) -> list[ConsumerRecord]:
    """Records of a partition that are so many seconds old."""
    return [
        ConsumerRecord(b"k", b"v", partition, n, int((NOW - age) * 1000))
        for n, age in enumerate(ages)
    ]


def commit(offset: int, ago: float, partition: int, at: int) -> ConsumerRecord:
    """The record of ``__consumer_offsets`` about a commit of the sink, at its offset ``at``."""
    topic, group = b"t", b"connect-s"
    key = b"\0\1" + b"".join(len(text).to_bytes(2, "big") + text for text in (group, topic))
    value = (
        (3).to_bytes(2, "big")
        + offset.to_bytes(8, "big")
        + (0xFFFFFFFF).to_bytes(4, "big")
        + (0).to_bytes(2, "big")
        + int((NOW - ago) * 1000).to_bytes(8, "big")
    )
    return ConsumerRecord(key + partition.to_bytes(4, "big"), value, 0, at, int((NOW - ago) * 1000))


def observed(
    records: list[ConsumerRecord],
    committed: dict[TopicPartition, int],
    commits: list[ConsumerRecord],
    *,
    members: int = 1,
    running_since: float = NOW - 9 * HOUR,
    forbidden: tuple[str, ...] = (),
    config: dict[str, str] | None = None,
    state: str = "Stable",
    markers: int = 0,
    listed: bool = True,
    hidden_groups: tuple[str, ...] = (),
    later: Callable[[FakeKafka, FakeBrokers], None] = lambda kafka, brokers: None,
) -> SinkFacts:
    kafka: Any = FakeKafka(records={"t": records, TOPIC: commits}, partitions={"t": 2})
    kafka.markers = {("t", 0): markers}
    kafka.hidden = {"unseen"}
    kafka.forbidden = set(forbidden)
    kafka.hidden_groups = set(hidden_groups)
    group = ReaderGroup("connect-s", state=state, members=(MEMBER,) * members, committed=committed)
    sink = Connector(
        "s",
        Status("RUNNING", "w:1"),
        {0: Status("RUNNING", "w:1")},
        {"topics": "t"} | (config or {}),
        "sink",
    )
    status = StatusRecord(("s", 0), "RUNNING", "w:1", at=running_since)
    brokers = FakeBrokers(groups={"connect-s": group} if listed else {})
    context = check_context(
        sink,
        kafka=kafka,
        brokers=brokers,
        history=History({("s", 0): (status,)}),
        internal={"status": "statuses"},
        pause=lambda seconds: later(kafka, brokers),
    )
    return observe(context, NOW)


def found(*args: Any, **more: Any) -> dict[str, Finding]:
    return {each.id: each for each in check(rules, observed(*args, **more), Goal.NOW)}


def test_the_commits_of_groups_are_read_and_other_records_left_out() -> None:
    other = ConsumerRecord(b"\0\2\0\1g", b"x", 0, 1, 1)
    short = ConsumerRecord(b"\0\1\0\x09g", b"x", 0, 2, 1)
    gone = commit(5, 1, 0, 3)._replace(value=None)
    read = offset_commits([commit(7, 10, 1, 0), other, short, gone])
    assert read == [OffsetCommit("connect-s", T1, 7, NOW - 10)]


def test_a_sink_of_which_no_waiting_partition_moves_stands_still_since_its_last_commit() -> None:
    sick = found(log(0, 9 * HOUR, 2 * HOUR), {T0: 1}, [commit(1, 3 * HOUR, 0, 0)])
    assert list(sick) == ["FLOW003"]
    assert sick["FLOW003"].since == NOW - 3 * HOUR
    assert "1 record waits" in sick["FLOW003"].message


def test_one_partition_that_does_not_move_while_another_does_is_stuck() -> None:
    commits = [commit(1, 3 * HOUR, 0, 0), commit(1, HOUR, 1, 1), commit(2, MINUTE, 1, 2)]
    records = log(0, HOUR, HOUR) + log(1, HOUR, HOUR, HOUR)
    sick = found(records, {T0: 1, T1: 2}, commits)
    assert list(sick) == ["FLOW004"]
    assert "t-0" in sick["FLOW004"].message


def test_a_lag_that_grows_is_a_warning_and_one_that_shrinks_is_none() -> None:
    lagging = log(0, *[HOUR] * 10, *[MINUTE] * 5)
    slow = [commit(1, 20 * MINUTE, 0, 0), commit(3, MINUTE, 0, 1)]
    grows = found(lagging, {T0: 3}, slow)["FLOW005"]
    assert grows.severity is Severity.WARNING
    assert "5 records arrived, and 2 were committed" in grows.message
    assert found(lagging, {T0: 9}, [slow[0], commit(9, MINUTE, 0, 1)]) == {}


def test_without_the_commits_it_is_said_that_growth_is_unknown() -> None:
    facts = observed(log(0, HOUR, HOUR), {T0: 1}, [], forbidden=(TOPIC,))
    (finding,) = check(rules, facts, Goal.NOW)
    assert (finding.id, finding.severity) == ("FLOW005", Severity.INFO)
    assert "not known" in finding.message
    assert [gap.what for gap in facts.unseen] == [f"whether lag grows: the commits in {TOPIC}"]


@pytest.mark.parametrize(
    ("records", "committed", "more"),
    [
        (log(0, HOUR), {T0: 1}, {}),
        (log(0, 9 * HOUR, MINUTE), {T0: 1}, {}),  # new records after hours without any
        (log(0, HOUR), {}, {"running_since": NOW - MINUTE}),
        ([], {}, {}),
    ],
)
def test_a_sink_that_keeps_up_or_has_just_begun_is_not_reported(
    records: list[ConsumerRecord], committed: dict[TopicPartition, int], more: dict[str, Any]
) -> None:
    assert found(records, committed, [], **more) == {}


@pytest.mark.parametrize(
    ("committed", "markers", "ids"),
    [(2, 1, []), (2, 10, []), (1, 1, ["FLOW003"]), (2, 11, ["FLOW003"])],
)
def test_markers_of_transactions_do_not_wait_as_long_as_they_are_few(
    committed: int, markers: int, ids: list[str]
) -> None:
    records = log(0, 9 * HOUR, 2 * HOUR)
    commits = [commit(committed, 2 * HOUR, 0, 0)]
    assert list(found(records, {T0: committed}, commits, markers=markers)) == ids


def test_a_topic_that_does_not_exist_is_reported_once_the_sink_runs_for_a_while() -> None:
    wanted = {"config": {"topics": "t, gone, lost, unseen"}}
    missing = found([], {}, [], **wanted)["FLOW008"]
    assert "2 topics of its configuration do not exist: gone, lost." in missing.message
    assert found([], {}, [], running_since=NOW - MINUTE, **wanted) == {}


def test_a_running_task_that_is_not_in_its_group_is_reported_once_it_had_time_to_join() -> None:
    assert "FLOW006" in found([], {}, [], members=0, state="Empty")
    assert found([], {}, [], members=0, state="PreparingRebalance") == {}
    assert found([], {}, [], members=0, state="Empty", running_since=NOW - MINUTE) == {}


def test_a_group_that_its_coordinator_has_forgotten_has_no_members() -> None:
    """It had none, and had committed nothing: a task that hangs in its first put."""
    assert "FLOW006" in found([], {}, [], listed=False)
    hangs = found(log(0, HOUR), {}, [], listed=False)
    assert list(hangs) == ["FLOW003", "FLOW006"]
    assert "its group connect-s has 0 members" in hangs["FLOW006"].message


def test_a_group_that_no_broker_lists_is_not_judged_if_its_coordinator_does_not_answer() -> None:
    facts = observed([], {}, [], listed=False, hidden_groups=("connect-s",))
    assert [gap.what for gap in facts.unseen] == ["the group connect-s of s"]
    assert list(check(rules, facts, Goal.NOW)) == []


def test_a_task_that_is_stopped_or_restarted_while_the_group_is_described_is_not_missing() -> None:
    def joins(kafka: FakeKafka, brokers: FakeBrokers) -> None:
        brokers.join("connect-s", "t", "consumer")

    def is_stopped(kafka: FakeKafka, brokers: FakeBrokers) -> None:
        status = b'{"state":"UNASSIGNED","worker_id":"w:1","generation":1}'
        written = ConsumerRecord(b"status-task-s-0", status, 0, 0, int(NOW * 1000))
        kafka.records["statuses"] = [written]

    for later in (joins, is_stopped):
        assert found([], {}, [], members=0, state="Empty", later=later) == {}


def test_a_group_that_cannot_be_described_again_is_not_judged_and_said() -> None:
    def goes_down(kafka: FakeKafka, brokers: FakeBrokers) -> None:
        brokers.down = Unreachable("down")

    def is_hidden(kafka: FakeKafka, brokers: FakeBrokers) -> None:
        group = replace(brokers.groups["connect-s"], problem=NotAuthorized("no"))
        brokers.groups["connect-s"] = group

    for later, what in (
        (goes_down, "the groups of sinks"),
        (is_hidden, "the group connect-s of s"),
    ):
        facts = observed([], {}, [], members=0, state="Empty", later=later)
        assert [gap.what for gap in facts.unseen] == [what]
        assert list(check(rules, facts, Goal.NOW)) == []


def test_records_that_are_dropped_without_a_trace_are_reported_as_preflight_does() -> None:
    assert list(found([], {}, [], config={"errors.tolerance": "all"})) == ["CONFIG018"]

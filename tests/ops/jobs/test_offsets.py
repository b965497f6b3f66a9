"""Both engines give the same answer on random histories: the local one on all of it, and on what Spark keeps of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.connect.config_topic import ConfigState, ConfiguredConnector
from connectctl.ops.connect.offset_store import Kind, Store
from connectctl.ops.jobs import offsets, offsets_backup
from connectctl.ops.jobs.offsets import SCHEMA, Looked, Row, Source, named, source_of
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.operations.offsets import planning
from connectctl.ops.operations.offsets.backup_file import backup_lines
from connectctl.ops.operations.offsets.changes import MergeOffsets, Policy, RestoreOffsets, Side
from connectctl.ops.operations.offsets.diff import differences, said_by
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.key_filter import DifferingKeys, MisreadKeys, Purpose
from connectctl.ops.operations.offsets.record_changes import OffsetsTopicState, Saved, decide, topic_state
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark leaves the socket open over which a frame comes in parts.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)

History = Sequence[tuple[bytes | None, bytes | None, int | None, int | None]]
Histories = dict[str, list[ConsumerRecord]]
PARTITIONS = 3
TOPICS = {"global": Source(None, "offsets"), "dedicated": Source(None, "own")}
OURS = [
    b'["c",{"t":1}]', b'["c",{"t":2}]', b'["c", {"t":1}]', b'["\\u0063",{"t":1}]', b'["c",null]', b'["c",{"t":"\xc3\xa9"}]',
    b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]', b'["c",{"t":1}] more',
]  # fmt: skip
THEIRS = [b'["d",{"t":1}]', b'["cc",{"t":1}]', b'["\\"c",{"t":1}]']
GARBAGE = [
    None,
    b"",
    b"null",
    b"{}",
    b'["c"]',
    b'["c",{"t":1},2]',
    b'["c",[1]]',
    b"\xff\xfe",
    b'["c",{"t":NaN}]',
    b"[1,{}]",
]
VALUES = [
    None,
    b'{"o":1}',
    b'{"o":2}',
    b'{ "o":1}',
    b"null",
    b"7",
    b"\xff",
    b'{"o":{"n":1}}',
    b"",
    b'{"o":18446744073709551616}',
]

keys = st.one_of(st.sampled_from(OURS), st.sampled_from(OURS), st.sampled_from(THEIRS), st.sampled_from(GARBAGE))
written = st.tuples(
    keys,
    st.sampled_from(VALUES),
    st.one_of(st.none(), st.none(), st.none(), st.integers(0, PARTITIONS - 1)),
    st.one_of(st.none(), st.integers(0, 200_000)),
)
histories = st.lists(written, max_size=80)
rich = st.lists(written, min_size=40, max_size=160)


def records(history: History) -> list[ConsumerRecord]:
    """A history as a topic has it: where Java puts a key, unless a place is given; offsets count up per partition."""
    ends = dict.fromkeys(range(PARTITIONS), 0)
    found: list[ConsumerRecord] = []
    for key, value, elsewhere, at in history:
        partition = java_partition(key or b"", PARTITIONS) if elsewhere is None else elsewhere
        found.append(ConsumerRecord(key, value, partition, ends[partition], at))
        ends[partition] += 1 + len(found) % 2
    return found


def local(role: str, history: Sequence[ConsumerRecord]) -> ReadTopic:
    """The topic as the local engine has it in the end: a dictionary that newer records overwrite."""
    newest = {(r.partition, r.key): r for r in history}
    ends = dict.fromkeys(range(PARTITIONS), len(history) * 2)
    return ReadTopic(TopicImage(TOPICS[role].topic, len(history), tuple(newest.values()), ends), role)


def rows(by_role: Histories, saved: Saved) -> list[Row]:
    found = [_row(TOPICS[role], r) for role, history in by_role.items() for r in history]
    return found + [_row(Source(*where, "c"), r) for where, rs in saved.items() for r in rs]


def _row(source: Source, r: ConsumerRecord) -> Row:
    return Row(named(source), r.key, r.value, r.partition, r.offset, r.timestamp)


def empty() -> list[OffsetsTopicState]:
    return [topic_state(local(role, []), "c") for role in TOPICS]


def kept(spark: SparkSession | None, by_role: Histories, purpose: Purpose, saved: Saved | None = None) -> list[Row]:
    """What Spark keeps of everything, or without it the function that its tasks run."""
    if spark is None:
        ordered = sorted(rows(by_role, saved or {}), key=lambda row: row.key or b"")
        return list(offsets.filter_records(ordered, {"c": Looked(purpose, empty())}))
    frame = spark.createDataFrame(rows(by_role, saved or {}), SCHEMA)
    return list(offsets.collected(offsets.sift(frame, [Looked(purpose, empty())], 2)))


def seen(found: Sequence[Row]) -> Histories:
    """Rows as what the topics hold."""
    return {role: [row.record for row in found if row.source == named(source)] for role, source in TOPICS.items()}


def places(by_role: Histories) -> list[OffsetsTopicState]:
    return [topic_state(local(role, history), "c") for role, history in by_role.items()]


def both(left: History, right: History) -> Histories:
    return {"global": records(left), "dedicated": records(right)}


few = settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[
        Phase.explicit,
        Phase.reuse,
        Phase.generate,
    ],  # shrinking would take minutes
)
many = settings(max_examples=300, deadline=None)


def check_merge(spark: SparkSession | None, left: History, right: History, into: Side, policy: Policy) -> None:
    wish, by_role = MergeOffsets("c", into, policy), both(left, right)
    found = seen(kept(spark, by_role, wish))
    assert decide(wish, places(found)) == decide(wish, places(by_role))
    assert planning.stale(places(found)) == planning.stale(places(by_role))


def check_restore(
    spark: SparkSession | None, left: History, right: History, left_then: History, right_then: History, run: str | None
) -> None:
    wish, by_role, then = RestoreOffsets("c", "file", run), both(left, right), both(left_then, right_then)
    saved: Saved = {(None, TOPICS[role].topic): history for role, history in then.items() if history}
    found = kept(spark, by_role, wish, saved)
    sources = {row.source: source_of(row.source) for row in found}
    back: Saved = {
        (s.bootstrap, s.topic): [r.record for r in found if r.source == text]
        for text, s in sources.items()
        if s.saved_for
    }
    assert decide(wish, places(seen(found)), back) == decide(wish, places(by_role), saved)


def check_diff(spark: SparkSession | None, left: History, right: History) -> None:
    by_role = both(left, right)
    found = seen(kept(spark, by_role, DifferingKeys("c")))
    here, there = (tuple(said_by("c", at) for at in places(some)) for some in (found, by_role))
    assert differences(*here) == differences(*there)


def check_lost(spark: SparkSession | None, left: History, right: History) -> None:
    by_role = both(left, right)
    assert lost(seen(kept(spark, by_role, MisreadKeys("c")))) == lost(by_role)


sides, policies, runs = st.sampled_from(list(Side)), st.sampled_from(list(Policy)), st.sampled_from([None, "run"])


@many
@given(histories, histories, sides, policies)
def test_a_merge_needs_no_more_than_what_is_kept(left: History, right: History, into: Side, policy: Policy) -> None:
    check_merge(None, left, right, into, policy)


@few
@given(rich, rich, sides, policies)
def test_a_merge_writes_the_same(
    spark: SparkSession, left: History, right: History, into: Side, policy: Policy
) -> None:
    check_merge(spark, left, right, into, policy)


@many
@given(histories, histories, histories, histories, runs)
def test_a_restore_needs_no_more_than_what_is_kept(a: History, b: History, c: History, d: History, run: str) -> None:
    check_restore(None, a, b, c, d, run)


@few
@given(rich, rich, rich, histories, runs)
def test_a_restore_writes_the_same(
    spark: SparkSession, a: History, b: History, c: History, d: History, run: str
) -> None:
    check_restore(spark, a, b, c, d, run)


@many
@given(histories, histories)
def test_a_diff_and_a_check_need_no_more_than_what_is_kept(left: History, right: History) -> None:
    check_diff(None, left, right)
    check_lost(None, left, right)


@few
@given(rich, rich)
def test_a_diff_and_a_check_say_the_same(spark: SparkSession, left: History, right: History) -> None:
    check_diff(spark, left, right)
    check_lost(spark, left, right)


def lost(by_role: Histories) -> list[str]:
    configs = ConfigState({"c": ConfiguredConnector("c", {"offsets.storage.topic": "own"})})
    own = {"c": local("dedicated", by_role["dedicated"])}
    snapshot = OffsetsSnapshot(
        local("global", by_role["global"]), own, configs, stores={"c": Store(Kind.SEPARATE, "own")}
    )
    (connector,) = assemble(snapshot, OffsetsQuery(("c",))).connectors
    return [entry.key.text for entry in connector.offsets if entry.lost]


@few
@given(rich, rich)
def test_a_backup_has_the_same_lines_and_reads_as_what_it_saved(
    spark: SparkSession, left: History, right: History
) -> None:
    by_role = both(left, right)
    owners = {source: frozenset(["c"]) for source in TOPICS.values()}
    frame = spark.createDataFrame(rows(by_role, {}), SCHEMA)
    lines = offsets.backup(frame, owners, 2)
    expected = places(by_role)
    assert sorted(row.value for row in lines.toLocalIterator()) == sorted(backup_lines(expected))
    records_of = [(Source(at.bootstrap, at.topic, "c"), r) for at in expected for rs in at.records.values() for r in rs]
    assert set(offsets.collected(offsets_backup.parse(lines, "backup", "c"))) == {
        _row(source, r) for source, r in records_of
    }


def test_a_backup_without_names_holds_every_connector_but_keeps_to_the_owners_of_a_topic(spark: SparkSession) -> None:
    history = [ConsumerRecord(key, b"{}", 0, n, 5) for n, key in enumerate([*OURS, *THEIRS, *GARBAGE])]
    frame = spark.createDataFrame(rows({"global": history, "dedicated": history}, {}), SCHEMA)
    owners = {TOPICS["global"]: None, TOPICS["dedicated"]: frozenset(["d"])}
    found = [json.loads(row.value) for row in offsets.backup(frame, owners, 2).toLocalIterator()]
    assert len([d for d in found if d["topic"] == "offsets"]) == len(OURS) + len(THEIRS)
    assert [d["key"] for d in found if d["topic"] == "own"] == ['["d",{"t":1}]']


def test_only_what_matters_comes_back_and_one_key_of_each_topic(spark: SparkSession) -> None:
    same = [
        ConsumerRecord(b'["c",{"t":%d}]' % n, b'{"o":1}', java_partition(b'["c",{"t":%d}]' % n, PARTITIONS), n, 5)
        for n in range(500)
    ]
    by_role = {
        "global": same,
        "dedicated": [*same[:-1], ConsumerRecord(same[-1].key, b'{"o":2}', same[-1].partition, 999, 6)],
    }
    found = kept(spark, by_role, MergeOffsets("c", "dedicated", "global"))
    assert same[-1].key in {row.key for row in found}
    assert len(found) <= 8

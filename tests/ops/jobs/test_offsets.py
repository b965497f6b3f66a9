"""Both engines give the same answer on random histories: the local one on all of it, and on what
Spark keeps of it.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.connect.config_topic import ConfigState, ConfiguredConnector
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.connect.offset_store import Kind, Store
from connectctl.ops.jobs import offsets, offsets_engine
from connectctl.ops.jobs.offsets import ROWS, DecisionInput, Found, Source, source_of
from connectctl.ops.jobs.offsets_engine import whole
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.operations.offsets.changes import MergeOffsets, MergePolicy, RestoreBackup
from connectctl.ops.operations.offsets.diff import differences, live_values
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.engine import AllKeys, DifferingKeys, Purpose
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, Saved, decide
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic
from connectctl.ops.operations.offsets.topic_dump import backup_lines
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, stale, topic_state
from depth import deep
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException

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

keys = st.one_of(
    st.sampled_from(OURS), st.sampled_from(OURS), st.sampled_from(THEIRS), st.sampled_from(GARBAGE)
)
written = st.tuples(
    keys,
    st.sampled_from(VALUES),
    st.one_of(st.none(), st.none(), st.none(), st.integers(0, PARTITIONS - 1)),
    st.one_of(st.none(), st.integers(0, 200_000)),
)
histories = st.lists(written, max_size=80)
rich = st.lists(written, min_size=40, max_size=160)


def records(history: History) -> list[ConsumerRecord]:
    """A history as a topic has it: where Java puts a key, unless a place is given; offsets count up
    per partition.
    """
    ends = dict.fromkeys(range(PARTITIONS), 0)
    found: list[ConsumerRecord] = []
    for key, value, elsewhere, at in history:
        partition = java_partition(key or b"", PARTITIONS) if elsewhere is None else elsewhere
        found.append(ConsumerRecord(key, value, partition, ends[partition], at))
        ends[partition] += 1 + len(found) % 2
    return found


def local(role: str, history: Sequence[ConsumerRecord]) -> ReadTopic:
    """The topic as the local engine has it in the end: a dictionary that newer records
    overwrite.
    """
    newest = {(r.partition, r.key): r for r in history}
    ends = dict.fromkeys(range(PARTITIONS), len(history) * 2)
    return ReadTopic(
        TopicImage(TOPICS[role].topic, len(history), tuple(newest.values()), ends), role
    )


def blocks(by_role: Histories, saved: Saved) -> list[tuple[Source, list[ConsumerRecord]]]:
    """As tasks read them: of a topic also older records of keys, of a backup all."""
    found = [(TOPICS[role], history) for role, history in by_role.items()]
    found += [(Source(*where, "c"), list(records)) for where, records in saved.items()]
    return [(source, some[n : n + 7]) for source, some in found for n in range(0, len(some), 7)]


def empty() -> list[OffsetsTopicState]:
    return [topic_state(local(role, []), "c") for role in TOPICS]


def looked(
    spark: SparkSession | None, by_role: Histories, purpose: Purpose, saved: Saved | None = None
) -> Found:
    """What Spark's tasks find in everything, or without it the function that they run."""
    rows = list(offsets.in_buckets(blocks(by_role, saved or {}), 2))
    one = DecisionInput(purpose, empty(), tuple(saved or ()))
    if spark is None:
        parts = ([row for row in rows if row[1] == n] for n in range(2 * offsets.BUCKETS))
        return offsets.gather(
            found for part in parts for found in offsets.decisions_of_part(part, [one])
        )
    return offsets.collected(offsets.decisions_of(spark.createDataFrame(rows, ROWS), [one], 2, 3))


def seen(found: Found) -> Histories:
    """What was found as what the topics hold."""
    return {role: list(found.records.get(source, ())) for role, source in TOPICS.items()}


def places(by_role: Histories) -> list[OffsetsTopicState]:
    return [topic_state(local(role, history), "c") for role, history in by_role.items()]


def both(left: History, right: History) -> Histories:
    return {"global": records(left), "dedicated": records(right)}


few = settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take minutes
)
many = settings(max_examples=deep(300, 75), deadline=None)


def same_changes(found: OffsetChanges, expected: OffsetChanges) -> None:
    assert sorted(map(repr, found.writes)) == sorted(map(repr, expected.writes))
    # the records of a key that lie elsewhere are deleted in any order
    if len(found.writes) <= offsets.MOST:
        assert [write.key for write in found.writes] == [write.key for write in expected.writes]
    assert sorted(map(repr, found.conflicts)) == sorted(map(repr, expected.conflicts))
    assert sorted(found.refusals) == sorted(expected.refusals)
    assert (found.moved, found.merged) == (expected.moved, expected.merged)


def check_merge(
    spark: SparkSession | None, left: History, right: History, into: Side, policy: MergePolicy
) -> None:
    wish, by_role = MergeOffsets("c", into, policy), both(left, right)
    found = looked(spark, by_role, wish)
    changes = whole(wish, found.decided["c"], places(seen(found)), {})
    same_changes(changes, decide(wish, places(by_role)))
    assert stale(places(seen(found)), running=False) == stale(places(by_role), running=False)


def check_restore(
    spark: SparkSession | None,
    left: History,
    right: History,
    left_then: History,
    right_then: History,
    run: str | None,
) -> None:
    wish, by_role, then = (
        RestoreBackup("c", "file", run),
        both(left, right),
        both(left_then, right_then),
    )
    saved: Saved = {
        (None, TOPICS[role].topic): history for role, history in then.items() if history
    }
    found = looked(spark, by_role, wish, saved)
    back: Saved = {where: found.records.get(Source(*where, "c"), ()) for where in saved}
    changes = whole(wish, found.decided["c"], places(seen(found)), back)
    same_changes(changes, decide(wish, places(by_role), saved))


def check_diff(spark: SparkSession | None, left: History, right: History) -> None:
    by_role = both(left, right)
    found = seen(looked(spark, by_role, DifferingKeys("c")))
    here, there = (tuple(live_values("c", at) for at in places(some)) for some in (found, by_role))
    assert differences(*here) == differences(*there)


def check_lost(spark: SparkSession | None, left: History, right: History) -> None:
    by_role = both(left, right)
    assert lost(seen(looked(spark, by_role, DifferingKeys("c")))) == lost(by_role)


sides, policies, runs = (
    st.sampled_from(list(Side)),
    st.sampled_from(list(MergePolicy)),
    st.sampled_from([None, "run"]),
)


@many
@given(histories, histories, sides, policies)
def test_a_merge_needs_no_more_than_what_is_kept(
    left: History, right: History, into: Side, policy: MergePolicy
) -> None:
    check_merge(None, left, right, into, policy)


@few
@given(rich, rich, sides, policies)
def test_a_merge_writes_the_same(
    spark: SparkSession, left: History, right: History, into: Side, policy: MergePolicy
) -> None:
    check_merge(spark, left, right, into, policy)


@many
@given(histories, histories, histories, histories, runs)
def test_a_restore_needs_no_more_than_what_is_kept(
    a: History, b: History, c: History, d: History, run: str
) -> None:
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
def test_a_diff_and_a_check_say_the_same(
    spark: SparkSession, left: History, right: History
) -> None:
    check_diff(spark, left, right)
    check_lost(spark, left, right)


def lost(by_role: Histories) -> list[str]:
    """The keys that only the global topic has an offset of."""
    configs = ConfigState({"c": ConfiguredConnector("c", {"offsets.storage.topic": "own"})})
    own = {"c": local("dedicated", by_role["dedicated"])}
    snapshot = OffsetsSnapshot(
        local("global", by_role["global"]), own, configs, stores={"c": Store(Kind.SEPARATE, "own")}
    )
    (connector,) = assemble(snapshot, OffsetsQuery(("c",))).connectors
    return [
        entry.key.text for entry in connector.offsets if entry.lost and entry.origin == "global"
    ]


@few
@given(rich, rich)
def test_a_backup_has_the_same_lines_and_reads_as_what_it_saved(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, left: History, right: History
) -> None:
    by_role = both(left, right)
    lines = lines_of(by_role, dict.fromkeys(TOPICS.values(), frozenset(["c"])))
    expected = places(by_role)
    assert sorted(lines) == sorted(backup_lines(expected))
    path = tmp_path_factory.mktemp("backup") / "backup.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    frame = offsets_engine.read_saved(spark, path, "c", 2)
    rows = [
        (source_of(row.source), each) for row in frame.collect() for each in marshal.loads(row.rows)
    ]
    found = [(source, ConsumerRecord(*each)) for source, each in rows]
    records_of = [
        (Source(at.bootstrap, at.topic, "c"), r)
        for at in expected
        for rs in at.records.values()
        for r in rs
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, records_of))


def lines_of(by_role: Histories, owners: Mapping[Source, frozenset[str] | None]) -> list[str]:
    newest = {role: list(local(role, history).image.latest) for role, history in by_role.items()}
    return [
        line for _, text in offsets.texts(blocks(newest, {}), owners) for line in text.split("\n")
    ]


def test_a_backup_without_names_holds_every_connector_but_keeps_to_the_owners_of_a_topic() -> None:
    history = [
        ConsumerRecord(key, b"{}", 0, n, 5) for n, key in enumerate([*OURS, *THEIRS, *GARBAGE])
    ]
    owners = {TOPICS["global"]: None, TOPICS["dedicated"]: frozenset(["d"])}
    found = list(map(json.loads, lines_of({"global": history, "dedicated": history}, owners)))
    assert len([d for d in found if d["topic"] == "offsets"]) == len(OURS) + len(THEIRS)
    assert [d["key"] for d in found if d["topic"] == "own"] == ['["d",{"t":1}]']


def test_a_line_of_a_backup_that_is_none_is_shown(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "backup.jsonl"
    path.write_text('{"topic":"t","offset":1,"key":"k"}\n{"topic": 5\n')
    with pytest.raises(PythonException, match=r"backup\.jsonl, line 2: this is not a record"):
        offsets_engine.read_saved(spark, path, "c", 2).collect()


def test_a_backup_without_offsets_is_not_shared_out_among_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "backup.jsonl"
    path.write_text('{"topic":"t","key":"k"}\n')
    with pytest.raises(PythonException, match="it has no offset, which --engine spark needs"):
        offsets_engine.read_saved(spark, path, "c", 2).collect()


def test_values_of_any_size_are_given_in_small_parts() -> None:
    records = [ConsumerRecord(b'["c",{"t":%d}]' % n, b"{}", 0, n, 5) for n in range(5_000)]
    everything = [(TOPICS["global"], records)]
    rows = [marshal.loads(content) for _, _, content in offsets.in_buckets(everything, 1)]
    assert sum(map(len, rows)) == len(records)
    assert max(map(len, rows)) <= offsets.THOUSANDS
    lines = [
        text.count("\n") + 1 for _, text in offsets.texts(everything, {TOPICS["global"]: None})
    ]
    assert sum(lines) == len(records)
    assert max(lines) <= offsets.THOUSANDS


def test_only_what_matters_comes_back_and_one_key_of_each_topic(spark: SparkSession) -> None:
    same = [
        ConsumerRecord(
            b'["c",{"t":%d}]' % n,
            b'{"o":1}',
            java_partition(b'["c",{"t":%d}]' % n, PARTITIONS),
            n,
            5,
        )
        for n in range(500)
    ]
    by_role = {
        "global": same,
        "dedicated": [
            *same[:-1],
            ConsumerRecord(same[-1].key, b'{"o":2}', same[-1].partition, 999, 6),
        ],
    }
    found = looked(spark, by_role, MergeOffsets("c", "dedicated", "global"))
    assert [write.key for write in found.decided["c"].writes] == [same[-1].key]
    assert sum(map(len, found.records.values())) <= 2 * 2
    found = looked(spark, by_role, DifferingKeys("c"))
    assert same[-1].key in {record.key for some in found.records.values() for record in some}
    assert sum(map(len, found.records.values())) <= 2 * 3


@pytest.mark.parametrize("into", list(Side))
def test_what_is_decided_in_many_parts_is_the_same(
    into: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "MOST", 50)
    monkeypatch.setattr(offsets, "THOUSANDS", 7)
    keys = [b'["c",{"t":%d}]' % n for n in range(400)]
    history = [(key, b'{"o":%d}' % n, None, n) for n, key in enumerate(keys)]
    check_merge(None, history[:300], history[100:350:2], into, MergePolicy.NEWEST)
    check_restore(None, history[:300], history[100:], history[:200:3], history[50:], None)
    check_diff(None, history[:300], history[100:350:2])


def test_a_key_that_is_not_connects_is_shown_to_be_there() -> None:
    rows = offsets.in_buckets([(TOPICS["dedicated"], [GARBAGE_RECORD])], 2)
    one = DecisionInput(MergeOffsets("c", Side.GLOBAL, MergePolicy.GLOBAL), empty())
    found = offsets.gather(offsets.decisions_of_part(rows, [one]))
    assert list(found.records[TOPICS["dedicated"]]) == [GARBAGE_RECORD]
    assert not found.decided["c"].writes


def test_a_backup_keeps_all_records_of_its_connector_and_none_of_others() -> None:
    by_role = both([(key, b"{}", None, n) for n, key in enumerate([*OURS, *THEIRS, *OURS])], [])
    found = looked(None, by_role, AllKeys("c"))
    assert [dict(at.records) for at in places(seen(found))] == [
        dict(at.records) for at in places(by_role)
    ]
    assert len(found.records[TOPICS["global"]]) == len(OURS)


GARBAGE_RECORD = ConsumerRecord(b"user-1", b"{}", 0, 0, 5)

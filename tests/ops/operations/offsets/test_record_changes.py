"""What a wish comes to, record by record; and what holds of every wish on every history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.connect.source_keys import SourceKey, parse_key, spelled_by_rest
from connectctl.ops.core.errors import Refused
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.operations.offsets.changes import (
    CopyOffsets,
    MergeOffsets,
    MergePolicy,
    OffsetRequest,
    ResetOffsets,
    RestoreBackup,
    SetOffsets,
)
from connectctl.ops.operations.offsets.record_changes import decide, digest, effective_entries
from connectctl.ops.operations.offsets.topic_dump import backup_lines, read_backup
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, is_of, topic_state
from fakes.offsettopics import (
    PARTITIONS,
    UNREADABLE,
    histories,
    live,
    places,
    raw,
    record,
    saved,
    topic,
    written,
)
from hypothesis import given
from hypothesis import strategies as st

A, B, C = ["c", {"t": "a"}], ["c", {"t": "b"}], ["c", {"t": "c"}]
OLD, NEW = {"lsn": 1}, {"lsn": 2}
ENTRIES = (
    ('{"table": "a"}', '{"lsn": 7}'),
    ('{"server": "s", "table": "b"}', "null"),
    ('{"new": 1}', '{"z": 1, "a": 2}'),
)


def values(
    found: list[OffsetsTopicState], wish: OffsetRequest
) -> dict[tuple[str, bytes], bytes | None]:
    """What the wish writes, by topic and key."""
    return {(w.topic, w.key): w.value for w in decide(wish, found).writes}


def wishes_for(found: list[OffsetsTopicState]) -> st.SearchStrategy[OffsetRequest]:
    """Any wish that makes sense for these topics."""
    some: list[st.SearchStrategy[Any]] = [
        st.just(SetOffsets("c", ENTRIES)),
        st.just(ResetOffsets("c")),
        st.just(ResetOffsets("c", ('{"table": "a"}', '{"unknown": 1}'))),
        st.just(CopyOffsets("c", "d", (('["d",{"table": "a"}]', '{"lsn": 9}'),))),
    ]
    if len(found) == 2:
        some.append(
            st.builds(
                MergeOffsets,
                st.just("c"),
                st.sampled_from(["global", "dedicated"]),
                st.sampled_from(MergePolicy),
            )
        )
    return st.one_of(some)


topics = st.one_of(
    histories().map(places),
    st.tuples(histories(), histories()).map(lambda both: places(both[0], both[1])),
)
cases = topics.flatmap(lambda found: st.tuples(st.just(found), wishes_for(found)))

# ------------------------------------------------------------------------------------------- always


@given(cases)
def test_whatever_is_carried_out_twice_is_carried_out_once(
    case: tuple[list[OffsetsTopicState], OffsetRequest],
) -> None:
    found, wish = case
    assert decide(wish, written(found, decide(wish, found).writes)).writes == ()


@given(cases)
def test_no_key_of_another_connector_is_written(
    case: tuple[list[OffsetsTopicState], OffsetRequest],
) -> None:
    found, wish = case
    assert all(is_of(write.key, "c") for write in decide(wish, found).writes)


@given(cases)
def test_a_value_lands_where_javas_partitioner_puts_its_key_and_only_there(
    case: tuple[list[OffsetsTopicState], OffsetRequest],
) -> None:
    found, wish = case
    writes = decide(wish, found).writes
    assert all(
        w.partition == java_partition(w.key, PARTITIONS) for w in writes if w.value is not None
    )
    touched = {(w.topic, w.key) for w in writes}
    after = live(written(found, writes))
    assert all(p == java_partition(key, PARTITIONS) for t, key, p in after if (t, key) in touched)


@given(cases)
def test_every_write_tells_what_was_there(
    case: tuple[list[OffsetsTopicState], OffsetRequest],
) -> None:
    found, wish = case
    before = live(found)
    for write in decide(wish, found).writes:
        assert write.before == before.get((write.topic, write.key, write.partition))


@given(cases)
def test_undo_after_any_change_is_the_identity(
    case: tuple[list[OffsetsTopicState], OffsetRequest],
) -> None:
    found, wish = case
    after = written(found, decide(wish, found).writes)
    undo = decide(RestoreBackup("c", "backup-0.jsonl", "run"), after, saved(found))
    assert undo.refusals == ()
    assert live(written(after, undo.writes)) == live(found)


@given(topics)
def test_a_backup_is_read_back_byte_for_byte(found: list[OffsetsTopicState]) -> None:
    lines = "".join(line + "\n" for line in backup_lines(found))
    assert read_back(lines) == saved(found)


def read_back(text: str) -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "backup.jsonl")
        path.write_bytes(text.encode())
        return read_backup(path)


@given(cases)
def test_the_same_decision_has_the_same_digest_and_another_one_another(
    case: tuple[list[OffsetsTopicState], OffsetRequest],
) -> None:
    found, wish = case
    writes = tuple(decide(wish, found).writes)
    assert digest(writes) == digest(tuple(reversed(writes)))
    if writes:
        assert digest(writes) != digest(writes[1:])


# -------------------------------------------------------------------------------------------- merge


@given(histories(), histories(), st.sampled_from(["global", "dedicated"]))
def test_after_a_merge_the_target_says_what_was_effective(left: Any, right: Any, into: str) -> None:
    found = places(left, right)
    after = written(found, decide(MergeOffsets("c", into), found).writes)
    target = next(at for at in after if at.side == into)
    for key in {*found[0].records, *found[1].records}:
        assert target.value(key) == (found[1].value(key) or found[0].value(key))


@given(
    histories(), histories(), st.sampled_from(MergePolicy), st.sampled_from(["global", "dedicated"])
)
def test_a_merge_leaves_the_other_topic_alone(
    left: Any, right: Any, policy: MergePolicy, into: str
) -> None:
    found = places(left, right)
    names = {"global": "global", "dedicated": "own"}
    assert {w.topic for w in decide(MergeOffsets("c", into, policy), found).writes} <= {names[into]}


KIP = ([record(A, OLD), record(B, OLD)], [record(A, NEW), record(C, NEW)])


@pytest.mark.parametrize(
    ("into", "policy", "expected"),
    [
        ("global", "effective", {("global", "a"): NEW, ("global", "c"): NEW}),
        ("dedicated", "effective", {("own", "b"): OLD}),
        ("global", "global", {("global", "c"): NEW}),
        ("dedicated", "global", {("own", "a"): OLD, ("own", "b"): OLD}),
        ("global", "dedicated", {("global", "a"): NEW, ("global", "c"): NEW}),
    ],
)
def test_the_kips_example_is_merged_both_ways(
    into: str, policy: str, expected: dict[tuple[str, str], Any]
) -> None:
    wanted = {(t, raw(["c", {"t": name}])): raw(value) for (t, name), value in expected.items()}
    assert values(places(*KIP), MergeOffsets("c", into, policy)) == wanted


@pytest.mark.parametrize(
    ("global_", "dedicated", "policy", "taken"),
    [
        (record(A, OLD), record(A, None), "effective", OLD),
        (record(A, OLD), record(A, None), "dedicated", None),
        (record(A, OLD, at=5), record(A, NEW, at=6), "newest", NEW),
        (record(A, OLD, at=6), record(A, NEW, at=5), "newest", OLD),
        (record(A, OLD, at=5), record(A, NEW, at=5), "newest", NEW),
        (record(A, None, at=6), record(A, NEW, at=5), "newest", None),
        (record(A, None, at=6), record(A, NEW, at=5), "effective", NEW),
        (record(A, OLD), record(A, NEW), "global", OLD),
    ],
)
def test_the_policy_says_which_side_wins_and_the_plan_why(
    global_: Any, dedicated: Any, policy: str, taken: Any
) -> None:
    found = places([global_], [dedicated])
    for into in ("global", "dedicated"):
        decision = decide(MergeOffsets("c", into, policy), found)
        target = next(at for at in written(found, decision.writes) if at.side == into)
        assert target.value(raw(A) or b"") == raw(taken)
        (conflict,) = decision.conflicts
        assert conflict.taken == ("deleted" if taken is None else (raw(taken) or b"").decode())
        assert conflict.why


@pytest.mark.parametrize("bad", UNREADABLE)
def test_a_value_that_no_worker_can_read_refuses_to_be_merged_or_copied(bad: bytes) -> None:
    found = places([record(A, OLD), record(B, bad)], [])
    assert len(decide(MergeOffsets("c", "dedicated"), found).refusals) == 1
    with pytest.raises(Refused) as refusal:
        effective_entries(found)
    assert '"b"' in str(refusal.value)


def test_an_unreadable_value_that_loses_is_nobodys_concern() -> None:
    found = places([record(A, b"garbage")], [record(A, NEW)])
    decision = decide(MergeOffsets("c", "global"), found)
    assert decision.refusals == ()
    assert [w.value for w in decision.writes] == [raw(NEW)]


# ------------------------------------------------------------------------------------- set and copy


def test_a_new_key_is_spelled_as_a_worker_spells_it() -> None:
    partition = '{"zeta": 1, "table": "é", "schema": "x y"}'
    (write,) = decide(
        SetOffsets("c", ((partition, '{"b": 1.0, "a": 12345678901.5}'),)), places([])
    ).writes
    assert write.key == spelled_by_rest("c", {"zeta": 1, "table": "é", "schema": "x y"})
    assert b" " not in write.key.replace(b"x y", b"")
    assert write.value == b'{"a":1.23456789015E10,"b":1.0}'


def test_an_existing_key_is_kept_as_its_task_spelled_it() -> None:
    theirs = b'["c",{"zeta":1,"alpha":2}]'
    (write,) = decide(
        SetOffsets("c", (('{"alpha": 2, "zeta": 1}', '{"lsn": 5}'),)), places([record(theirs, OLD)])
    ).writes
    assert (write.key, write.value) == (theirs, b'{"lsn":5}')


def test_even_a_deleted_key_tells_how_its_task_spells() -> None:
    theirs = b'["c",{"zeta":1,"alpha":2}]'
    (write,) = decide(
        SetOffsets("c", (('{"alpha": 2, "zeta": 1}', '{"lsn": 5}'),)),
        places([record(theirs, None)]),
    ).writes
    assert write.key == theirs


def test_a_spelling_that_no_worker_finds_is_deleted_and_the_offset_put_where_they_look() -> None:
    odd = b'["c", {"t":"a"}]'
    assert values(places([record(odd, OLD)]), SetOffsets("c", (('{"t": "a"}', '{"lsn": 5}'),))) == {
        ("global", raw(A)): b'{"lsn":5}',
        ("global", odd): None,
    }


def test_other_spellings_of_a_source_partition_do_not_go_on_to_contradict() -> None:
    one, other = b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]'
    found = places([record(one, None), record(other, OLD)])
    assert values(found, SetOffsets("c", (('{"a": 1, "b": 2}', '{"lsn": 5}'),))) == {
        ("global", other): b'{"lsn":5}'
    }
    both = places([record(one, OLD), record(other, OLD)])
    changed = values(both, SetOffsets("c", (('{"a": 1, "b": 2}', '{"lsn": 5}'),)))
    assert set(changed.values()) == {None, b'{"lsn":5}'}


def test_what_is_set_is_set_in_both_topics_and_deletions_reach_the_global_one_first() -> None:
    found = places([record(A, OLD)], [record(A, OLD)])
    put = decide(SetOffsets("c", (('{"t": "a"}', '{"lsn": 5}'),)), found).writes
    assert [w.topic for w in put] == ["own", "global"]
    assert [w.topic for w in decide(ResetOffsets("c"), found).writes] == ["global", "own"]


def test_source_partitions_that_nobody_named_stay() -> None:
    found = places([record(A, OLD), record(B, OLD)])
    after = written(found, decide(SetOffsets("c", (('{"t": "a"}', '{"lsn": 5}'),)), found).writes)
    assert after[0].value(raw(B) or b"") == raw(OLD)


def test_a_copy_keeps_every_character_of_the_source_partition_and_of_the_offset() -> None:
    key, value = '["old",{"zeta":1,"alpha":"\\u00e9"}]', '{"lsn":1,  "x":2}'
    (write,) = decide(CopyOffsets("c", "old", ((key, value),)), places([])).writes
    assert (write.key, write.value) == (key.replace("old", "c").encode(), value.encode())


@given(histories(), st.one_of(st.none(), histories()))
def test_a_copy_takes_along_what_was_effective(left: Any, right: Any) -> None:
    found = places(left, right)
    entries = effective_entries(found)
    target = places([], connector="new")
    after = written(target, decide(CopyOffsets("new", "c", entries), target).writes)
    for key in {key for at in found for key in at.records}:
        value = (found[1].value(key) if right is not None else None) or found[0].value(key)
        parsed = parse_key(key)
        assert isinstance(parsed, SourceKey)
        there = [
            after[0].value(k)
            for k in after[0].records
            if parse_key(k).partition == parsed.partition
        ]
        assert value is None or value in there


# -------------------------------------------------------------------------------------------- reset


@given(topics)
def test_a_reset_leaves_no_live_key_of_the_connector(found: list[OffsetsTopicState]) -> None:
    assert live(written(found, decide(ResetOffsets("c"), found).writes)) == {}


def test_a_reset_of_one_source_partition_deletes_all_its_spellings_in_both_topics() -> None:
    odd = b'["c", {"t":"a"}]'
    found = places([record(A, OLD), record(odd, OLD), record(B, OLD)], [record(A, NEW)])
    after = live(written(found, decide(ResetOffsets("c", ('{"t": "a"}',)), found).writes))
    assert {key for _, key, _ in after} == {raw(B)}


@pytest.mark.parametrize(
    "wish",
    [
        ResetOffsets("c"),
        SetOffsets("c", (('{"t": "a"}', '{"lsn": 5}'),)),
        MergeOffsets("c", "global"),
    ],
)
def test_strays_on_other_partitions_are_deleted(wish: OffsetRequest) -> None:
    home = java_partition(raw(A) or b"", PARTITIONS)
    stray = record(A, OLD, partition=(home + 1) % PARTITIONS)
    found = places([stray, record(A, None, 1)], [record(B, NEW)])
    after = live(written(found, decide(wish, found).writes))
    assert ("global", raw(A), stray.partition) not in after


# ------------------------------------------------------------------------------------------ restore


def test_a_restore_keeps_topics_apart() -> None:
    found = places([record(A, OLD)], [record(A, NEW)])
    after = written(found, decide(ResetOffsets("c"), found).writes)
    back = written(after, decide(RestoreBackup("c", "x", "run"), after, saved(found)).writes)
    assert [at.value(raw(A) or b"") for at in back] == [raw(OLD), raw(NEW)]


def test_topics_of_one_name_on_two_clusters_are_two_topics() -> None:
    here = topic_state(topic("offsets", "global", record(A, OLD)), "c")
    there = topic_state(topic("offsets", "dedicated", record(A, NEW), bootstrap="other:9092"), "c")
    lines = "".join(line + "\n" for line in backup_lines([here, there]))
    after = written([here, there], decide(ResetOffsets("c"), [here, there]).writes)
    back = written(after, decide(RestoreBackup("c", "x", "run"), after, read_back(lines)).writes)
    assert [at.value(raw(A) or b"") for at in back] == [raw(OLD), raw(NEW)]


@pytest.mark.parametrize(
    ("backup", "reason"),
    [
        ({}, "has no offsets of c"),
        ({(None, "global"): [record(["d", {"t": "a"}], OLD)]}, "has no offsets of c"),
        ({(None, "elsewhere"): [record(A, OLD)]}, "the backup has offsets of c in elsewhere"),
        (
            {(None, "global"): [record(A, OLD)]},
            "does not include own: restoring it would delete 1 offset of c",
        ),
    ],
)
def test_a_backup_that_would_delete_what_it_does_not_know_is_refused(
    backup: Any, reason: str
) -> None:
    decision = decide(RestoreBackup("c", "x"), places([record(A, OLD)], [record(A, NEW)]), backup)
    assert reason in "; ".join(decision.refusals)


def test_a_backup_of_many_connectors_brings_back_one() -> None:
    backup: Any = {(None, "global"): [record(A, OLD), record(["d", {"t": "a"}], OLD)]}
    (write,) = decide(RestoreBackup("c", "x"), places([]), backup).writes
    assert write.key == raw(A)


def test_a_dump_without_partitions_is_laid_out_as_java_would_and_its_newest_record_counts() -> None:
    backup: Any = {
        (None, "global"): [record(A, NEW, 7, partition=-1), record(A, OLD, 3, partition=-1)]
    }
    (write,) = decide(RestoreBackup("c", "x"), places([]), backup).writes
    assert (write.partition, write.value) == (java_partition(raw(A) or b"", PARTITIONS), raw(NEW))

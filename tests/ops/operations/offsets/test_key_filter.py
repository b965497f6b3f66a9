"""What is left out of topics too big for memory decides nothing."""

from __future__ import annotations

import pytest
from connectctl.ops.kafka.records import Record
from connectctl.ops.operations.offsets.changes import MergeOffsets, RestoreOffsets, Side
from connectctl.ops.operations.offsets.diff import differences, said_by
from connectctl.ops.operations.offsets.key_filter import AllKeys, DifferingKeys, Sorted
from connectctl.ops.operations.offsets.planning import stale
from connectctl.ops.operations.offsets.record_changes import OffsetsTopicState, Where, decide
from fakes.offsettopics import UNREADABLE, VALUES, histories, places, record, topic
from hypothesis import given
from hypothesis import strategies as st


def on_disk(records: list[Record]) -> list[Record]:
    return sorted(topic("t", "global", *records).image.latest, key=lambda r: (r.key or b"", r.partition))


def empty(found: list[OffsetsTopicState]) -> list[OffsetsTopicState]:
    return [OffsetsTopicState(at.topic, at.side, at.partitions) for at in found]


def told(found: list[OffsetsTopicState]) -> object:
    sides = [said_by("c", at) for at in found]
    return differences(*sides)


# Of one value there are often two alike.
topics = histories([{"lsn": 1}, *VALUES, *UNREADABLE])


@given(
    topics,
    topics,
    st.sampled_from(["effective", "newest", "global", "dedicated"]),
    st.sampled_from(["global", "dedicated"]),
)
def test_a_merge_and_a_difference_are_what_they_are_of_all_records(
    left: list[Record], right: list[Record], policy: str, into: str
) -> None:
    both = left + right
    found, streams = places(both, left), [on_disk(both), on_disk(left)]
    wish = MergeOffsets("c", into, policy)
    kept, all_ = decide(wish, Sorted(wish, empty(found), streams).filtered()[0]), decide(wish, found)
    # In which order the copies of a key are deleted is nowhere said.
    assert sorted(map(str, kept.writes)) == sorted(map(str, all_.writes))
    assert (kept.conflicts, kept.refusals) == (all_.conflicts, all_.refusals)
    here, _, on_disk_ = Sorted(wish, empty(found), streams).decided(wish)
    assert sorted(map(str, on_disk_.writes)) == sorted(map(str, all_.writes))
    assert (on_disk_.conflicts, on_disk_.refusals, stale(here)) == (all_.conflicts, all_.refusals, stale(found))
    assert told(Sorted(DifferingKeys("c"), empty(found), streams).filtered()[0]) == told(found)


@given(topics, topics, topics, st.sampled_from(["both", "global", "own", "elsewhere"]), st.sampled_from([None, "run"]))
def test_a_restore_is_what_it_is_of_all_records(
    left: list[Record], then: list[Record], own: list[Record], of: str, run: str | None
) -> None:
    found, streams = places(left, own), [on_disk(left), on_disk(own)]
    name = {"global": "global", "own": "own"}.get(of, "elsewhere")
    backup: dict[Where, list[Record]] = {(None, name): on_disk(then)}
    if of == "both":
        backup[None, "global"] = on_disk(left)
    wish = RestoreOffsets("c", "file", run)
    sorted_, all_ = Sorted(wish, empty(found), streams, backup), decide(wish, found, backup)
    kept = decide(wish, *sorted_.filtered())
    assert (kept.writes, kept.refusals) == (all_.writes, all_.refusals)
    here, saved, on_disk_ = sorted_.decided(wish)
    assert (sorted(map(str, on_disk_.writes)), on_disk_.refusals) == (sorted(map(str, all_.writes)), all_.refusals)
    assert decide(wish, here, saved).refusals == all_.refusals


def test_of_a_topic_that_says_what_its_backup_says_the_first_key_is_kept() -> None:
    records = on_disk([record(["c", {"t": n}], {"lsn": n}) for n in range(9)])
    (kept,), saved = Sorted(
        RestoreOffsets("c", "file"), empty(places(())), [records], {(None, "global"): iter(records)}
    ).filtered()
    assert (list(kept.records), saved) == ([records[0].key], {(None, "global"): records[:1]})


def test_what_both_topics_have_alike_is_left_out_but_for_the_first() -> None:
    records = [record(["c", {"t": n}], {"lsn": n}) for n in range(9)]
    streams = [on_disk(records), on_disk([*records[:8], record(["c", {"t": 8}], {"lsn": 7})])]
    for purpose in (DifferingKeys("c"), MergeOffsets("c", "dedicated", "newest")):
        kept, _ = Sorted(purpose, empty(places((), ())), streams).filtered()
        assert [sorted(at.records) for at in kept] == [[b'["c",{"t":0}]', b'["c",{"t":8}]']] * 2


@pytest.mark.parametrize("own", [True, False])
def test_nothing_is_left_out_where_everything_matters(own: bool) -> None:
    records = [record(["c", {"t": n}], {"lsn": n}) for n in range(9)]
    found = places(records, records if own else None)
    for purpose in (AllKeys("c"), *(() if own else (MergeOffsets("c", "dedicated"), DifferingKeys("c")))):
        kept, _ = Sorted(purpose, empty(found), [on_disk(records)] * len(found)).filtered()
        assert [dict(at.records) for at in kept] == [dict(at.records) for at in found]
    assert found[0].side is Side.GLOBAL

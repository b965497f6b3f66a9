"""What is left out of topics too big for memory decides nothing."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.kafka import aligned_blocks, spill
from connectctl.ops.kafka.records import ConsumerRecord, Row
from connectctl.ops.kafka.spill import blocks_in_order
from connectctl.ops.operations.offsets import key_filter
from connectctl.ops.operations.offsets.changes import MergeOffsets, OffsetRequest, RestoreBackup
from connectctl.ops.operations.offsets.diff import differences, said_by
from connectctl.ops.operations.offsets.key_filter import AllKeys, DifferingKeys, Sorted
from connectctl.ops.operations.offsets.last_commits import stale
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, Saved, Where, decide
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState
from fakes.offsettopics import UNREADABLE, VALUES, histories, places, record, topic
from hypothesis import given
from hypothesis import strategies as st


def on_disk(records: list[ConsumerRecord], size: int = 3) -> list[list[Row]]:
    """Blocks of ``size`` rows, and those that a key needs beyond that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "CHUNK", size)
        return list(blocks_in_order(latest(records), owners_of))


def latest(records: list[ConsumerRecord]) -> list[ConsumerRecord]:
    return sorted(topic("t", "global", *records).image.latest, key=lambda r: (r.key or b"", r.partition))


def empty(found: list[OffsetsTopicState]) -> list[OffsetsTopicState]:
    return [OffsetsTopicState(at.topic, at.side, at.partitions) for at in found]


def told(found: list[OffsetsTopicState]) -> object:
    sides = [said_by("c", at) for at in found]
    return differences(*sides)


# Of one value there are often two alike; and there are whole blocks in which nothing is odd.
plain = histories([{"lsn": 1}, {"lsn": 2}], [["c", {"table": name}] for name in "abcdefghi"])
topics = histories([{"lsn": 1}, *VALUES, *UNREADABLE]) | plain
sizes, fews = st.integers(1, 9), st.integers(1, 4)


@given(
    topics,
    topics,
    st.sampled_from(["effective", "newest", "global", "dedicated"]),
    st.sampled_from(["global", "dedicated"]),
    st.booleans(),
    sizes,
    fews,
)
def test_a_merge_and_a_difference_are_what_they_are_of_all_records(
    left: list[ConsumerRecord], right: list[ConsumerRecord], policy: str, into: str, shared: bool, size: int, few: int
) -> None:
    both = left + right if shared else right
    found, streams = places(both, left), [on_disk(both, size), on_disk(left, 10 - size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligned_blocks, "FEW", few)
        _is_as_of_all_records(found, streams, policy, into)


def _is_as_of_all_records(
    found: list[OffsetsTopicState], streams: list[list[list[Row]]], policy: str, into: str
) -> None:
    wish = MergeOffsets("c", into, policy)
    kept, all_ = decide(wish, Sorted(wish, empty(found), streams).filtered()[0]), decide(wish, found)
    # In which order the copies of a key are deleted is nowhere said.
    assert sorted(map(str, kept.writes)) == sorted(map(str, all_.writes))
    assert (kept.conflicts, kept.refusals) == (all_.conflicts, all_.refusals)
    here, _, on_disk_ = Sorted(wish, empty(found), streams).decided(wish)
    assert sorted(map(str, on_disk_.writes)) == sorted(map(str, all_.writes))
    assert (on_disk_.conflicts, on_disk_.refusals) == (all_.conflicts, all_.refusals)
    assert stale(here, running=False) == stale(found, running=False)
    assert told(Sorted(DifferingKeys("c"), empty(found), streams).filtered()[0]) == told(found)


@given(
    topics,
    topics,
    topics,
    st.sampled_from(["both", "global", "own", "elsewhere"]),
    st.sampled_from([None, "run"]),
    st.booleans(),
    sizes,
    fews,
)
def test_a_restore_is_what_it_is_of_all_records(
    left: list[ConsumerRecord],
    then: list[ConsumerRecord],
    own: list[ConsumerRecord],
    of: str,
    run: str | None,
    placed: bool,
    size: int,
    few: int,
) -> None:
    found, streams = places(left, own), [on_disk(left, size), on_disk(own, 10 - size)]
    name = {"global": "global", "own": "own"}.get(of, "elsewhere")
    backup: dict[Where, list[ConsumerRecord]] = {(None, name): latest(then)}
    if of == "both":
        backup[None, "global"] = latest(left)
    if not placed:
        backup = {where: latest(_unplaced(records)) for where, records in backup.items()}
    wish = RestoreBackup("c", "file", run)
    parts = {where: on_disk(records, few) for where, records in backup.items()}
    sorted_, all_ = Sorted(wish, empty(found), streams, parts), decide(wish, found, backup)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligned_blocks, "FEW", few)
        kept = decide(wish, *sorted_.filtered())
        here, saved, on_disk_ = sorted_.decided(wish)
    assert (kept.writes, kept.refusals) == (all_.writes, all_.refusals)
    assert (sorted(map(str, on_disk_.writes)), on_disk_.refusals) == (sorted(map(str, all_.writes)), all_.refusals)
    assert decide(wish, here, saved).refusals == all_.refusals


def _unplaced(records: list[ConsumerRecord]) -> list[ConsumerRecord]:
    return [r._replace(partition=-1) for r in sorted(records, key=lambda r: r.offset)]


def test_of_a_topic_that_says_what_its_backup_says_the_first_key_is_kept() -> None:
    records = [record(["c", {"t": n}], {"lsn": n}) for n in range(9)]
    (kept,), saved = Sorted(
        RestoreBackup("c", "file"), empty(places(())), [on_disk(records)], {(None, "global"): on_disk(records)}
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


@pytest.mark.parametrize("kind", ["merge", "restore"])
def test_of_blocks_that_have_to_be_written_whole_a_few_keys_are_decided_one_by_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one: set[bytes] = set()

    def spied(request: OffsetRequest, found: list[OffsetsTopicState], saved: Saved | None = None) -> OffsetChanges:
        one_by_one.update(key for at in found for key in at.records)
        return decide(request, found, saved)

    monkeypatch.setattr(key_filter, "decide", spied)
    records = [record(["c", {"t": n}], {"lsn": n}) for n in range(1000)]
    wish: MergeOffsets | RestoreBackup = MergeOffsets("c", "dedicated")
    sorted_ = Sorted(wish, empty(places((), ())), [on_disk(records, 500), []])
    if kind == "restore":
        then = [each._replace(value=b"{}") for each in records]
        wish = RestoreBackup("c", "file")
        sorted_ = Sorted(wish, empty(places(())), [on_disk(records, 500)], {(None, "global"): on_disk(then, 400)})
    _, _, changes = sorted_.decided(wish)
    assert len(changes.writes) == len(set(changes.writes)) == 1000
    assert 0 < len(one_by_one) <= 2 * aligned_blocks.FEW

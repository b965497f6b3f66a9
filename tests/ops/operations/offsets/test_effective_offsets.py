"""What KIP-618 and a real worker make of two topics, decided without any cluster."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.connect.config_topic import ConfigState, ConfiguredConnector
from connectctl.ops.connect.offset_store import Kind, Store, separate_store
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.connect.source_offsets import UNKNOWN, ConnectorOffsets
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.snapshot import (
    OffsetsQuery,
    OffsetsSnapshot,
    ReadTopic,
    SourceOffsets,
)
from hypothesis import given
from hypothesis import strategies as st

PARTITIONS = 5


def record(
    key: Any, value: Any, offset: int = 0, *, partition: int | None = None, at: int = 1000
) -> ConsumerRecord:
    raw = key if isinstance(key, bytes) or key is None else connect_json(key).encode()
    data = value if isinstance(value, bytes) or value is None else connect_json(value).encode()
    home = java_partition(raw or b"", PARTITIONS) if partition is None else partition
    return ConsumerRecord(raw, data, home, offset, at)


def topic(
    name: str, role: str, *records: ConsumerRecord, held: tuple[UnreadTail, ...] = ()
) -> ReadTopic:
    return ReadTopic(
        TopicImage(name, len(records), records, dict.fromkeys(range(PARTITIONS), 9), held), role
    )


def answer(
    global_: list[ConsumerRecord], dedicated: list[ConsumerRecord] | None = None, *wanted: str
) -> SourceOffsets:
    config = {"connector.class": "RedditSource"} | (
        {} if dedicated is None else {"offsets.storage.topic": "own"}
    )
    configs = ConfigState({"c": ConfiguredConnector("c", config)})
    own = {} if dedicated is None else {"c": topic("own", "dedicated", *dedicated)}
    stores = {} if dedicated is None else {"c": Store(Kind.SEPARATE, "own")}
    snapshot = OffsetsSnapshot(topic("global", "global", *global_), own, configs, stores=stores)
    return assemble(snapshot, OffsetsQuery(tuple(wanted)))


def ids(found: SourceOffsets) -> list[str]:
    return [finding.id for finding in found.findings]


def only(found: SourceOffsets) -> ConnectorOffsets:
    (connector,) = found.connectors
    return connector


def test_nothing_is_effective_beside_a_dedicated_topic_that_was_not_read() -> None:
    unread = Finding("OFFSETS011", Severity.ERROR, "c", "own cannot be read")
    configs = ConfigState(
        {"c": ConfiguredConnector("c", {"connector.class": "x", "offsets.storage.topic": "own"})}
    )
    global_ = topic("global", "global", record(["c", {"a": 1}], {"n": 1}))
    found = assemble(
        OffsetsSnapshot(global_, {}, configs, {"c": Store(Kind.SEPARATE, "own")}, (unread,)),
        OffsetsQuery(()),
    )
    (entry,) = only(found).offsets
    assert entry.global_ is not None
    assert (entry.effective, entry.origin, entry.worker_reads, entry.lost) == (
        None,
        UNKNOWN,
        None,
        False,
    )
    assert ids(found) == ["OFFSETS011"]


def test_kip_618s_three_subreddits_come_out_as_the_kip_says_and_as_workers_do_not() -> None:
    found = answer(
        [
            record(["c", {"subreddit": "apachekafka"}], {"timestamp": "4761"}),
            record(["c", {"subreddit": "CatsStandingUp"}], {"timestamp": "2112"}),
        ],
        [
            record(["c", {"subreddit": "CatsStandingUp"}], {"timestamp": "2169"}),
            record(["c", {"subreddit": "grilledcheese"}], {"timestamp": "489"}),
        ],
    )
    rows = {
        e.key.partition["subreddit"]: (e.effective, e.origin, e.worker_reads)
        for e in only(found).offsets
        if e.key.partition
    }
    assert rows == {
        "apachekafka": ({"timestamp": "4761"}, "global", None),
        "CatsStandingUp": ({"timestamp": "2169"}, "dedicated", {"timestamp": "2169"}),
        "grilledcheese": ({"timestamp": "489"}, "dedicated", {"timestamp": "489"}),
    }
    assert ids(found) == ["OFFSETS001"]
    assert "connectctl offsets merge c --into dedicated" in str(found.findings[0].next_step)


A, B = {"p": 1}, {"p": 2}


@pytest.mark.parametrize(
    ("global_", "dedicated", "effective", "origin", "reads"),
    [
        ({"o": 1}, {"o": 2}, {"o": 2}, "dedicated", {"o": 2}),
        ({"o": 1}, None, {"o": 1}, "global", None),
        (None, {"o": 2}, {"o": 2}, "dedicated", {"o": 2}),
        (None, None, None, "none", None),
        ({"o": 1}, b"[1]", None, "none", None),
        (b"nonsense", {"o": 2}, {"o": 2}, "dedicated", {"o": 2}),
        ({}, {}, {}, "dedicated", {}),
    ],
)
def test_with_a_dedicated_topic(
    global_: Any, dedicated: Any, effective: Any, origin: str, reads: Any
) -> None:
    """None is a tombstone here: an absent offset to the KIP, and to a worker."""
    found = answer([record(["c", A], global_)], [record(["c", A], dedicated)])
    (entry,) = only(found).offsets
    assert (entry.effective, entry.origin, entry.worker_reads) == (effective, origin, reads)


@pytest.mark.parametrize(("value", "reads"), [({"o": 1}, {"o": 1}), (None, None), (b"3", None)])
def test_without_a_dedicated_topic_a_worker_reads_the_global_one(value: Any, reads: Any) -> None:
    (entry,) = only(answer([record(["c", A], value)])).offsets
    assert entry.worker_reads == reads
    assert entry.effective == reads


@pytest.mark.parametrize(
    ("entry", "finding"),
    [
        (record(b'["c",  {"p":1}]', {"o": 1}), "OFFSETS014"),
        (
            record(
                ["c", A],
                {"o": 1},
                partition=(java_partition(b'["c",{"p":1}]', PARTITIONS) + 1) % PARTITIONS,
            ),
            "OFFSETS003",
        ),
        (record(b"no key of connect", {"o": 1}), "OFFSETS004"),
        (record(None, {"o": 1}), "OFFSETS004"),
        (record(["c", A], b"\xff"), "OFFSETS005"),
        (record(["c", A], b"7"), "OFFSETS005"),
        (record(["c", A], b"null"), "OFFSETS005"),
        (record(["c", A], b""), "OFFSETS005"),
        (record(["c", A], b'{"o":1e400}'), "OFFSETS005"),
        (record(["c", A], b'{"o":1} and more'), "OFFSETS005"),
        (record(b'["c",{"p":1}] and more', {"o": 1}), "OFFSETS014"),
        (record(["c", A], {"o": {"deep": 1}}), "OFFSETS005"),
        (record(["c", A], {"o": [1]}), "OFFSETS005"),
        (record(["c", A], {"o": (1 << 53) + 1}), "OFFSETS006"),
        (record(["c", A], {"o": 1 << 63}), "OFFSETS006"),
        (record(["c", {"p": {"deep": 1}}], {"o": 1}), "OFFSETS007"),
        (record(["c", None], {"o": 1}), "OFFSETS008"),
        (record(["gone", A], {"o": 1}), "OFFSETS012"),
    ],
)
def test_an_oddity_is_told_and_nothing_else(entry: ConsumerRecord, finding: str) -> None:
    assert ids(answer([entry])) == [finding]


def test_numbers_are_shown_exactly_and_workers_cut_what_does_not_fit_64_bits() -> None:
    (entry,) = only(answer([record(["c", A], {"o": (1 << 63) + 5})])).offsets
    assert entry.effective == {"o": (1 << 63) + 5}
    assert entry.worker_reads == {"o": -(1 << 63) + 5}


def test_two_spellings_of_one_partition_are_two_rows_and_a_finding() -> None:
    found = answer(
        [record(b'["c",{"a":1,"b":2}]', {"o": 1}), record(b'["c",{"b":2,"a":1}]', {"o": 2})]
    )
    assert [e.effective for e in only(found).offsets] == [{"o": 1}, {"o": 2}]
    assert ids(found) == ["OFFSETS002", "OFFSETS019"]


def test_members_in_another_order_than_rest_looks_them_up_are_one_finding_of_the_connector() -> (
    None
):
    """A public report: keys of SQL Server's connector in the order of the alphabet; a worker
    returns null for them.
    """
    keys = [b'["c",{"database":"d%d","server":"s"}]' % n for n in range(2)]
    (finding,) = answer([record(key, {"commit_lsn": "a"}) for key in keys]).findings
    assert (finding.id, finding.severity, finding.subject) == ("OFFSETS019", Severity.INFO, "c")
    assert finding.message == (
        'The members of 2 source partitions, such as ["c",{"database":"d0","server":"s"}], are in another order than a '
        'HashMap has. For GET …/offsets workers look up {"server":"s","database":"d0"} and return null; so does a task that '
        "uses a HashMap."
    )
    assert ids(answer([record(b'["c",{"server":"s","database":"d"}]', {"commit_lsn": "a"})])) == []


def test_a_key_on_two_partitions_counts_where_java_puts_it_and_the_other_is_told() -> None:
    home = java_partition(b'["c",{"p":1}]', PARTITIONS)
    right, stray = (
        record(["c", A], {"o": 1}, 5),
        record(["c", A], {"o": 99}, 7, partition=(home + 1) % PARTITIONS, at=9999),
    )
    found = answer([stray, right])
    (entry,) = only(found).offsets
    assert entry.effective == {"o": 1}
    assert [side.offset for side in entry.strays] == [{"o": 99}]
    assert ids(found) == ["OFFSETS003"]


def test_a_dedicated_topic_older_than_the_global_one_looks_stale() -> None:
    found = answer([record(["c", A], {"o": 9}, at=200_000)], [record(["c", A], {"o": 1}, at=1000)])
    assert ids(found) == ["OFFSETS013"]
    assert only(found).offsets[0].effective == {"o": 1}


def test_the_copy_that_workers_write_to_the_global_topic_is_not_stale() -> None:
    assert (
        ids(answer([record(["c", A], {"o": 1}, at=200_000)], [record(["c", A], {"o": 1}, at=1000)]))
        == []
    )


def test_an_open_transaction_is_told_and_the_answer_is_incomplete() -> None:
    snapshot = OffsetsSnapshot(
        topic("global", "global", held=(UnreadTail(3, 5, 9),)), {}, ConfigState({})
    )
    found = assemble(snapshot, OffsetsQuery())
    assert ids(found) == ["OFFSETS009"]
    assert not found.complete


def test_an_empty_topic_is_no_oddity() -> None:
    found = answer([])
    assert only(found).offsets == ()
    assert found.complete
    assert ids(found) == []


def test_an_unknown_connector_is_told_with_the_nearest_name() -> None:
    with pytest.raises(BadInput, match="Did you mean c"):
        answer([], None, "cc")


raw_keys = st.sampled_from(
    [b'["c",{"p":1}]', b'["c",{"p":2}]', b'["d",{"p":1}]', b"garbage", b"", None]
)
raw_values = st.sampled_from([b'{"o":1}', b'{"o":2}', b"junk", None, b"null", b"[]"])
records = st.lists(
    st.builds(
        ConsumerRecord,
        raw_keys,
        raw_values,
        st.integers(0, 4),
        st.integers(0, 8),
        st.integers(0, 10**6),
    )
)


@given(records, records)
def test_every_record_is_shown_or_told_whatever_is_in_the_topics(
    global_: list[ConsumerRecord], dedicated: list[ConsumerRecord]
) -> None:
    def newest(found: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return list({(r.partition, r.key): r for r in found}.values())

    theirs, ours = newest(global_), newest(dedicated)
    found = answer(theirs, ours)
    told = sum(f.id == "OFFSETS004" for f in found.findings)
    shown = 0
    for connector in found.connectors:
        for entry in connector.offsets:
            sides = {
                (s.kafka_partition, s.kafka_offset, n)
                for n, s in enumerate((entry.global_, entry.dedicated))
                if s
            }
            stray_only = sum(s is not None for s in (entry.global_, entry.dedicated))
            assert len(sides) == stray_only
            shown += 1
    assert told == sum(r.key in (b"garbage", b"", None) for r in theirs + ours)
    connect_keys = {r.key for r in theirs if r.key not in (b"garbage", b"", None)}
    connect_keys |= {r.key for r in ours if r.key in (b'["c",{"p":1}]', b'["c",{"p":2}]')}
    assert shown == len(connect_keys)


@pytest.mark.parametrize(
    ("config", "topic_", "bootstrap", "implicit"),
    [
        ({}, None, None, False),
        ({"offsets.storage.topic": "global"}, None, None, False),
        ({"offsets.storage.topic": "own"}, "own", None, False),
        ({"producer.override.bootstrap.servers": "b:2, a:1"}, None, None, False),
        ({"producer.override.bootstrap.servers": "a:1,b:2,"}, "global", "a:1,b:2,", True),
        ({"producer.override.bootstrap.servers": ""}, "global", "", True),
        ({"producer.override.bootstrap.servers": "z:1"}, "global", "z:1", True),
        (
            {"producer.override.bootstrap.servers": "z:1", "offsets.storage.topic": "own"},
            "own",
            "z:1",
            False,
        ),
        (
            {"producer.override.bootstrap.servers": "z:1", "offsets.storage.topic": "global"},
            "global",
            "z:1",
            False,
        ),
    ],
)
def test_where_a_connector_keeps_its_offsets_follows_from_its_configuration(
    config: dict[str, str], topic_: str | None, bootstrap: str | None, implicit: bool
) -> None:
    store = separate_store(config, "global", "a:1,b:2")
    assert (store and (store.topic, store.bootstrap, store.implicit)) == (
        topic_ and (topic_, bootstrap, implicit)
    )

"""The configurations that a connector had: what the config topic and the journal say of them, as
one list.
"""

from __future__ import annotations

import json

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.connectors.config.history import (
    CLOCKS_MS,
    ConfigVersion,
    changes,
    index_of,
    merged,
    topic_versions,
)
from hypothesis import given
from hypothesis import strategies as st

A, B, C = {"x": "1"}, {"x": "2"}, {"x": "2", "y": "3"}


def record(offset: int, key: str, value: object, at: int | None = None) -> ConsumerRecord:
    return ConsumerRecord(
        key.encode(), None if value is None else json.dumps(value).encode(), 0, offset, at
    )


def test_the_config_topic_tells_each_write_and_each_deletion_in_its_order() -> None:
    found = topic_versions(
        [
            record(7, "connector-orders", None, 300),
            record(2, "connector-orders", {"properties": A}, 100),
            record(3, "task-orders-0", {"properties": B}, 100),
            record(4, "connector-orders-eu", {"properties": C}, 100),
            record(5, "connector-orders", "no object", 200),
            ConsumerRecord(b"connector-orders", b"{", 0, 6, 200),
        ],
        "orders",
    )
    assert found == [ConfigVersion(100, {"name": "orders", **A}, 2), ConfigVersion(300, None, 7)]


def test_what_a_run_wrote_is_known_in_the_topic_by_content_and_time() -> None:
    topic = [ConfigVersion(1_000, A, 1), ConfigVersion(2_000, B, 2), ConfigVersion(900_000, A, 9)]
    journal = [ConfigVersion(2_100, A, run="r1", until=True), ConfigVersion(2_100, B, run="r1")]
    found = merged(topic, journal)
    assert [(v.config, v.offset, v.run) for v in found] == [
        (A, 9, None),
        (B, 2, "r1"),
        (A, 1, None),
    ]


def test_what_compaction_took_is_there_from_the_journal() -> None:
    journal = [
        ConfigVersion(2_000, A, run="r1", until=True),
        ConfigVersion(2_000, B, run="r1"),
        ConfigVersion(3_000, B, run="r2", until=True),
        ConfigVersion(3_000, C, run="r2"),
    ]
    found = merged([ConfigVersion(2_950, C, 5)], journal)
    assert [(v.config, v.run, v.until) for v in found] == [
        (C, "r2", False),
        (B, "r1", False),
        (A, "r1", True),
    ]
    assert found[0].offset == 5


def test_the_same_content_much_later_is_not_what_the_run_wrote() -> None:
    found = merged(
        [ConfigVersion(2 * CLOCKS_MS + 1, A, 5), ConfigVersion(9, B, 1)],
        [ConfigVersion(0, A, run="r")],
    )
    assert [(v.config, v.offset, v.run) for v in found] == [
        (A, 5, None),
        (B, 1, None),
        (A, None, "r"),
    ]


def test_a_deletion_is_a_version_of_its_own() -> None:
    journal = [ConfigVersion(2_000, A, run="r", until=True), ConfigVersion(2_000, None, run="r")]
    found = merged([ConfigVersion(1_990, None, 8)], journal)
    assert [(v.config, v.offset, v.run) for v in found] == [(None, 8, "r"), (A, None, "r")]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from([A, B, C, None])), max_size=8))
def test_a_topic_alone_gives_its_writes_without_what_changed_nothing(
    writes: list[tuple[int, dict[str, str]]],
) -> None:
    writes.sort(key=lambda w: w[0])
    found = merged(
        [ConfigVersion(at, config, offset) for offset, (at, config) in enumerate(writes)], []
    )
    wanted = [
        config for n, (_, config) in enumerate(writes) if n == 0 or writes[n - 1][1] != config
    ]
    assert [v.config for v in reversed(found)] == wanted


def test_changes_are_against_the_version_before() -> None:
    assert changes(ConfigVersion(2, C), ConfigVersion(1, A)) == {"x": "2", "y": "3"}
    assert changes(ConfigVersion(2, A), ConfigVersion(1, C)) == {"x": "1", "y": None}
    assert changes(ConfigVersion(2, A), ConfigVersion(1, None)) == A
    assert changes(ConfigVersion(2, A), None) == A
    assert changes(ConfigVersion(2, None), ConfigVersion(1, A)) == {}


def test_a_revision_keeps_its_name_whatever_is_written_and_compacted_after_it() -> None:
    topic = [ConfigVersion(1_000, A, 3), ConfigVersion(2_000, B, 7)]
    journal = [ConfigVersion(2_010, A, run="r", until=True), ConfigVersion(2_010, B, run="r")]
    assert [v.revisions for v in merged(topic, journal)] == [("7", "r"), ("3",)]
    later = merged([*topic, ConfigVersion(3_000, A, 9)], journal)
    assert [
        later[index_of(later, "orders", name, None)].config for name in ("3", "7", "r", "9")
    ] == [A, B, B, A]
    compacted = merged([ConfigVersion(3_000, A, 9)], journal)
    assert [v.revisions for v in compacted] == [("9",), ("r",), ("before-r",)]
    with pytest.raises(BadInput, match="orders has no revision 3") as refused:
        index_of(compacted, "orders", "3", "Not allowed to read ['cfg']")
    assert (
        refused.value.why
        == "known are 9, r, before-r; the config topic was not read: Not allowed to read ['cfg']"
    )

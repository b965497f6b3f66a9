"""Topics too big for memory get the answer that topics in memory get."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace

import pytest
from connectctl.ops.connect.config_topic import ConfigState, ConfiguredConnector
from connectctl.ops.connect.offset_store import Kind, Store
from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.connect.source_offsets import ConnectorOffsets
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.spill import Spilled
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.large_topics import InOrder, is_big
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic
from fakes.offsettopics import UNREADABLE, VALUES, histories, record, topic
from hypothesis import given
from hypothesis import strategies as st


def on_disk(read: ReadTopic, run: int) -> ReadTopic:
    """The topic as it is read where ``run`` records are too many for memory."""
    there = Spilled(owners_of)
    records = list(read.image.latest)
    for start in range(0, len(records), run):
        there.add(records[start : start + run])
    return replace(read, image=replace(read.image, latest=there, in_order=True))


def snapshot(global_: list[ConsumerRecord], dedicated: list[ConsumerRecord] | None) -> OffsetsSnapshot:
    own = {} if dedicated is None else {"c": topic("own", "dedicated", *dedicated)}
    configs = ConfigState({"c": ConfiguredConnector("c", {"connector.class": "RedditSource"})})
    stores = {} if dedicated is None else {"c": Store(Kind.SEPARATE, "own")}
    return OffsetsSnapshot(topic("global", "global", *global_), own, configs, stores=stores)


def passed(found: InOrder) -> list[ConnectorOffsets]:
    return [ConnectorOffsets(c.name, c.dedicated_topic, tuple(c.offsets), c.configured) for c in found.connectors()]


def ordered(connectors: Iterable[ConnectorOffsets]) -> list[ConnectorOffsets]:
    """By name, with strays by partition: which comes first is nowhere said."""
    return [
        replace(
            connector,
            offsets=tuple(
                entry._replace(strays=tuple(sorted(entry.strays, key=lambda side: side.kafka_partition)))
                for entry in connector.offsets
            ),
        )
        for connector in sorted(connectors, key=lambda connector: connector.name)
    ]


def sorted_(findings: list[Finding]) -> list[tuple[str, str]]:
    """By what they are about: spellings are told in any order."""
    return sorted((f.id, f.subject) for f in findings)


topics = histories(VALUES + UNREADABLE)


@given(topics, st.none() | topics, st.integers(1, 20), st.sampled_from([(), ("c",), ("cc", "c")]))
def test_the_answer_is_the_one_of_a_topic_in_memory(
    global_: list[ConsumerRecord], own: list[ConsumerRecord] | None, run: int, wanted: tuple[str, ...]
) -> None:
    small, wish = snapshot(global_, own), OffsetsQuery(wanted)
    assert small.global_topic is not None
    dedicated = {name: on_disk(read, run) for name, read in small.dedicated.items()}
    big = replace(small, global_topic=on_disk(small.global_topic, run), dedicated=dedicated)
    assert (is_big(small), is_big(big)) == (False, True)
    try:
        expected = assemble(small, wish)
    except BadInput:
        with pytest.raises(BadInput):
            passed(InOrder(big, wish))
        return
    found = InOrder(big, wish)
    assert ordered(passed(found)) == ordered(expected.connectors)
    assert sorted_(found.findings) == sorted_(list(expected.findings))
    assert found.complete == expected.complete


def test_a_connector_that_nobody_looks_into_is_passed_over() -> None:
    records = [record([name, {"t": n}], {"o": 1}) for name in "abc" for n in range(5)]
    found = InOrder(snapshot(records, None), OffsetsQuery())
    assert [connector.name for connector in found.connectors()] == ["a", "b", "c"]


def test_of_a_key_in_several_runs_the_newest_record_counts() -> None:
    there = Spilled(owners_of)
    for offset in (7, 9, 8):
        there.add(
            [
                ConsumerRecord(b"k", b"%d" % offset, 0, offset),
                ConsumerRecord(b"k", b"x", 1, offset),
                ConsumerRecord(None, b"", 0, 1),
            ]
        )
    assert list(there) == [
        ConsumerRecord(None, b"", 0, 1),
        ConsumerRecord(b"k", b"9", 0, 9),
        ConsumerRecord(b"k", b"x", 1, 9),
    ]
    assert list(there) == list(there)
    assert len(there) == 3


def test_a_full_disk_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(prefix: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(ConnectctlError, match="needs room") as error:
        Spilled(owners_of).add([ConsumerRecord(b"k", b"v", 0, 0)])
    assert "TMPDIR" in str(error.value.next_step)

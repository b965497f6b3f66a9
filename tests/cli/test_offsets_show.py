"""What ``offsets show`` prints, of topics in memory and of those that are too big for it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from connectctl.cli import main
from connectctl.cli.output.json_lines import json_lines
from connectctl.cli.output.terminal import Output
from connectctl.cli.views.offsets import as_json, print_table
from connectctl.ops.connect.offset_store import Kind, Store
from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.spill import Spilled
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.large_topics import InOrder
from connectctl.ops.operations.offsets.plain_records import PlainRows
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic
from fakes.offsettopics import record, topic
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

RECORDS = [record([name, {"t": n}], {"o": n}) for name in "ab" for n in range(3)]
RECORDS += [record(["c", None], {"o": 1 << 60}), record(b"nonsense", {"o": 1})]


def snapshot(records: list[ConsumerRecord], *, big: bool) -> OffsetsSnapshot:
    read = topic("global", "global", *records)
    if big:
        there = Spilled(owners_of)
        there.add(read.image.latest)
        read = ReadTopic(read.image.__class__(**{**vars(read.image), "latest": there, "in_order": True}), "global")
    return OffsetsSnapshot(read, {}, None)


def printed(records: list[ConsumerRecord], *, big: bool) -> Any:
    seen, wish = snapshot(records, big=big), OffsetsQuery()
    found = InOrder(seen, wish) if big else assemble(seen, wish)
    data = json.loads("".join(json_lines(as_json(found, datetime(2026, 1, 1, tzinfo=UTC), Output.JSON))))
    return data | {"findings": sorted(data["findings"], key=json.dumps)}


def test_a_topic_too_big_for_memory_is_written_as_one_in_memory() -> None:
    assert printed(RECORDS, big=True) == printed(RECORDS, big=False)
    assert len(printed(RECORDS, big=True)["findings"]) == 3
    assert printed([], big=True) == printed([], big=False)


@pytest.mark.parametrize("big", [False, True])
def test_a_time_that_no_calendar_has_is_given_as_it_is(big: bool) -> None:
    microseconds = 1_700_000_000_000_000
    found = printed([record(["a", {"t": 1}], {"o": 1}, at=microseconds)], big=big)
    (offset,) = found["connectors"][0]["offsets"]
    assert offset["global"]["timestamp"] == "1700000000000000 ms after 1970"


ODD = ["", "a", ":", ",", "a,", ":a", '"', "\\", "ö", "\x7f", "\n", "a:b,c", "\u202e", "😀", "a b", "null"]
SIMPLE = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(1 << 65), 1 << 65),
    st.integers(-9, 9),
    st.booleans(),
    st.none(),
    st.floats(-9, 9),
)
OBJECTS = st.dictionaries(st.sampled_from([*ODD, "t", "table", "lsn"]), SIMPLE, max_size=3)
KEY = st.tuples(st.sampled_from(["a", "b", 'c"', "ö", ":", "own"]), OBJECTS | st.none()).map(list)
RAW = [
    b'["a",{"t":1,"t":2}]',
    b'["a",{"t":1} ]',
    b'["a",{"t":01}]',
    b'["a",{"t":-0}]',
    b'["a",{}',
    b'["a",{}],',
    None,
    b"x",
]
ROWS = st.tuples(
    KEY | st.sampled_from(RAW),
    OBJECTS | st.sampled_from([None, b"{}", b"[1]", b"{", b"\xff", b'{"a":1}x', b'{"a":1,"a":2}']),
    st.none() | st.integers(0, 4),
    st.integers(0, 1 << 42),
)


@given(st.lists(ROWS, max_size=12), st.booleans())
def test_what_is_plain_is_written_as_what_is_understood(rows: list[Any], swapped: bool) -> None:
    records = [record(k, v, n, partition=p, at=at) for n, (k, v, p, at) in enumerate(rows)]
    if swapped:  # the same members in another order are another key
        keys = [[k[0], dict(reversed(k[1].items()))] for k, *_ in rows if isinstance(k, list) and k[1]]
        records += [record(key, {"o": 1}, 50 + n) for n, key in enumerate(keys)]
    seen = replace(snapshot(records, big=True), stores={"own": Store(Kind.SEPARATE, "own")})
    texts = []
    for plainly in (True, False):
        found = InOrder(seen, OffsetsQuery(), plainly)
        data = as_json(found, datetime(2026, 1, 1, tzinfo=UTC), Output.JSON)
        texts.append(("".join(json_lines(data)).split('"findings"')[0], sorted(map(str, found.findings))))
    assert texts[0] == texts[1]


def test_what_connect_writes_is_plain() -> None:
    seen = InOrder(snapshot(RECORDS, big=True), OffsetsQuery(), plainly=True)
    found = {
        connector.name: [isinstance(each, PlainRows) for each in connector.offsets] for connector in seen.connectors()
    }
    assert found == {"a": [True], "b": [True], "c": [False]}


def test_beyond_the_limit_of_a_table_what_is_too_big_for_memory_is_counted_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for limit, lines, more in ((2, 3, "6 more source partitions (not read)"), (0, 8, ""), (8, 8, "")):
        found = InOrder(snapshot(RECORDS, big=True), OffsetsQuery())
        print_table(found, limit, wide=False)
        printed = capsys.readouterr()
        assert len(printed.out.splitlines()) == lines
        assert more in printed.err
        assert bool(printed.err) == bool(more)


def test_a_table_shows_so_many_source_partitions_and_says_how_many_more_there_are() -> None:
    lines = "\n".join(json.dumps({"key": f'["c",{{"p":{n}}}]', "value": '{"o":1}'}) for n in range(12))
    for limit, shown, more in (("5", 5, True), ("12", 12, False), ("0", 12, False)):
        result = CliRunner().invoke(main.app, ["offsets", "show", "-f", "-", "--limit", limit], input=lines)
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) == shown + 1
        assert ("7 more source partitions" in result.stderr) == more

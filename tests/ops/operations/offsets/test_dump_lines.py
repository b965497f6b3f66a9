"""A block of a dump is read as its lines are, one by one."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets import dump_lines
from connectctl.ops.operations.offsets.dump_lines import (
    Range,
    blocks_in,
    blocks_of,
    checked,
    lines_of,
    ranges_of,
    read_records,
    topics_in,
)
from hypothesis import example, given
from hypothesis import strategies as st

GOOD = [
    '{"topic": "t", "partition": 1, "offset": 7, "timestamp": 5, "key": "[\\"c\\",{}]", "value": '
    '"{}"}',
    '{"topic": "t", "partition": 0, "offset": 8, "timestamp": null, "key": "k", "value": null}',
    '{"value":"é\\u00e9\\ud83d\\ude00\\n","key":null,"timestamp":0,"offset":9,"partition":-1,"topic":"u","bootstrapServers":"b:1"}',
    '{"topic": "t", "topic": "v", "partition": 1, "offset": 2, "timestamp": 3, "key": "k", "key": '
    '"l", "value": ""}',
]
ODD = [
    '{"topic": "t", "partition": 1, "offset": 123456789012345678901234567890, "timestamp": 3, '
    '"key": "k", "value": "v"}',
    '{"partition": 1, "key": "k", "value": "v"}',
    '{"topic": "t", "partition": 1, "offset": 2, "ts": 3, "keyBase64": "//8=", "payload": null, '
    '"headers": [1, {"a": {}}]}',
    '{"connector": "s", "group": "connect-s", "offsets": []}',
    '  {"topic": "t", "partition": 1, "offset": 2, "timestamp": 3, "key": "k", "value": "v"} ',
    "",
    "   ",
]
BAD = [
    '{"topic": "t", "partition": 1.0, "offset": 1e3, "timestamp": 5, "key": "k", "value": "v"}',
    '{"topic": "t", "partition": 1.5, "offset": -0, "timestamp": 5.5, "key": "k", "value": "v"}',
    '{"topic": "t", "partition": "1", "offset": "2", "timestamp": "3", "key": "k", "value": "v"}',
    '{"topic": "t", "partition": true, "offset": 2, "timestamp": 3, "key": "k", "value": "v"}',
    '{"topic": null, "partition": 1, "offset": 2, "timestamp": 3, "key": "k", "value": "v"}',
    "no json",
    "{}",
    "[]",
    '{"topic": "t", "partition": 1, "offset": 2, "timestamp": 3, "key": 4, "value": "v"}',
    '{"topic": "t", "partition": 1, "offset": 2, "timestamp": 3, "key": "\\ud800", "value": "v"}',
    '{"topic": "t", "partition": 1, "offset": 2, "timestamp": 3, "key": "k", "value": "v"} {}',
    '{"topic": "t", "partition": 1, "offset": 2, "timestamp": 3, "key": "k", "value": "v",}',
    GOOD[0] + GOOD[1],
    '{"topic": "t", "partition": 1,',
    '"offset": 2, "timestamp": 3, "key": "k", "value": "v"}',
]


def told(blocks: list[bytes]) -> object:
    """Where the records are from, and they; or what is wrong."""
    try:
        return list(read_records(blocks, "x"))
    except BadInput as e:
        return str(e), e.why


@given(
    st.lists(st.sampled_from(GOOD * 4 + ODD + BAD), max_size=8), st.integers(1, 400), st.booleans()
)
@example(["", GOOD[0] + " {}"], 2, False)
@example([*BAD[-2:], GOOD[0] + GOOD[1]], 400, True)
def test_a_dump_is_the_same_however_it_is_cut(lines: list[str], size: int, ends: bool) -> None:
    text = "\n".join(lines) + ("\n" if ends else "")
    blocks, rest = [], text.encode()
    while rest:
        end = rest.find(b"\n", size - 1) + 1 or len(rest)
        blocks.append(rest[:end])
        rest = rest[end:]
    assert told(blocks) == told([line.encode() for line in StringIO(text)])


@given(
    st.lists(
        st.builds(
            ConsumerRecord,
            st.none() | st.binary(max_size=5) | st.sampled_from([b'["c",{}]', b'["d",{"t":1}]']),
            st.none() | st.binary(max_size=5) | st.text(max_size=5).map(str.encode),
            st.integers(0, 9),
            st.integers(0, 1 << 60),
            st.none() | st.integers(0, 1 << 60),
        )
    ),
    st.sampled_from([None, "b:9092,c:9092"]),
)
def test_what_a_backup_has_is_read_again(
    records: list[ConsumerRecord], bootstrap: str | None
) -> None:
    blocks = [f"{line}\n".encode() for line in lines_of(records, "t", bootstrap)]
    for some in (blocks, [b"".join(blocks)] if blocks else []):
        assert list(read_records(some, "x")) == [((bootstrap, "t"), record) for record in records]


def test_a_backup_is_checked_and_given_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dump"
    path.write_text("\n".join([*GOOD, *ODD, *GOOD]))
    monkeypatch.setattr(dump_lines, "BLOCK", 300)
    assert len(list(blocks_of(path))) > 3
    assert b"".join(checked(path)) == path.read_bytes()
    path.write_text("\n".join([*GOOD, *ODD, BAD[-1]]))
    with pytest.raises(
        BadInput, match=f"dump, line {len(GOOD) + len(ODD) + 1}: this is not a record"
    ):
        list(checked(path))


def test_bytes_that_are_not_utf_8_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    line = json.dumps(json.loads(GOOD[0]) | {"value": "?"}).encode().replace(b"?", b"\xff")
    path.write_bytes(GOOD[0].encode() + b"\n" + line)
    with pytest.raises(BadInput, match="cannot be read") as e:
        list(checked(path))
    assert e.value.why == "it is not UTF-8 text"


@given(st.lists(st.sampled_from([*GOOD, *ODD]), max_size=6), st.integers(1, 300), st.booleans())
def test_where_the_records_of_a_dump_are_from_is_told_without_reading_them(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], size: int, ends: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "wheres.jsonl"
    path.write_text("\n".join(lines) + ("\n" if ends else ""))
    found = topics_in(path)
    assert found == {where for where, _ in read_records(list(blocks_of(path)), "x")}


def test_topics_of_one_name_on_two_clusters_are_two(tmp_path: Path) -> None:
    record = ConsumerRecord(b"k", b"{}", 0, 1, 5)
    path = tmp_path / "backup.jsonl"
    path.write_text(
        "".join(f"{line}\n" for at in (None, "b:1") for line in lines_of([record] * 3, "t", at))
    )
    assert topics_in(path) == {(None, "t"), ("b:1", "t")}


@given(st.lists(st.text("ab\n", max_size=5), max_size=20), st.integers(1, 30))
def test_each_line_of_a_file_is_in_one_of_its_ranges(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "ranges.txt"
    path.write_text("\n".join(texts))
    ranges = ranges_of(path, size)
    assert all(isinstance(part, Range) and part.end - part.start <= size for part in ranges)
    assert b"".join(block for part in ranges for block in blocks_in(part)) == path.read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        '["pg-dr",{"server":"pgdev"}]\t{"lsn":63619219552,"txId":1650}',
        'Partition(6) ["pg-dr",{"server":"pgdev"}] {"lsn":63619219552,"txId":1650}',
    ],
    ids=["kafka-console-consumer.sh", "kcat -f"],
)
def test_a_dump_of_another_tool_is_refused_with_the_commands_that_write_one(line: str) -> None:
    with pytest.raises(BadInput) as error:
        list(read_records([line.encode()], "dump.txt"))
    assert str(error.value).startswith("dump.txt, line 1: this is not a record")
    assert "kcat -C -J -e -t TOPIC" in str(error.value)
    assert "connectctl offsets backup --out FILE" in str(error.value)

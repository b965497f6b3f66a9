"""Saved topics in place of a broker."""

import base64
import json
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery
from connectctl.ops.operations.offsets.topic_dump import read_dump, snapshot

KEY = '["c",{"p":1}]'


def lines(*records: dict[str, Any]) -> list[bytes]:
    return [json.dumps(record).encode() + b"\n" for record in records]


def test_kcats_lines_and_ours_are_the_same_records() -> None:
    kcat = {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "tstype": "create",
        "ts": 5,
        "broker": 1,
        "key": KEY,
        "payload": None,
    }
    ours = {"topic": "t", "partition": 3, "offset": 7, "timestamp": 5, "key": KEY, "value": None}
    assert read_dump(lines(kcat), "x") == read_dump(lines(ours), "x")


def test_bytes_that_are_no_text_travel_as_base64() -> None:
    encoded = base64.b64encode(b"\xff\x00").decode()
    (record,) = read_dump(lines({"keyBase64": encoded, "valueBase64": encoded}), "x")["dump"]
    assert (record.key, record.value) == (b"\xff\x00", b"\xff\x00")


@pytest.mark.parametrize(
    "line", ["no json", "[]", "{}", '{"key":1}', '{"key":"k","partition":"x"}', '{"keyBase64":"?"}']
)
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(BadInput, match=r"dump\.jsonl, line 2: this is not a record"):
        read_dump([b'{"key":"k","value":"v"}\n', line.encode()], "dump.jsonl")


def test_empty_lines_are_nothing() -> None:
    assert read_dump([b"\n  "], "x") == {}


def test_several_offsets_topics_need_a_name() -> None:
    topics = read_dump(
        lines({"topic": "a", "key": KEY, "value": "{}"}, {"topic": "b", "key": KEY, "value": "{}"}),
        "x",
    )
    with pytest.raises(BadInput, match="--offsets-topic; the dump has: a, b"):
        snapshot(topics, "x", None, OffsetsQuery())


def test_a_dump_without_the_named_topic_tells_those_that_it_has() -> None:
    topics = read_dump(lines({"topic": "a", "key": KEY, "value": "{}"}), "x")
    with pytest.raises(BadInput, match=r"no record of the offsets topic c\..* the dump has: a"):
        snapshot(topics, "x", "c", OffsetsQuery())


def test_an_empty_dump_is_told() -> None:
    with pytest.raises(BadInput, match=r"x has no record of an offsets topic\. Show"):
        snapshot({}, "x", None, OffsetsQuery())


def test_the_last_line_of_a_key_wins_and_older_ones_are_kept_for_all_generations() -> None:
    topics = read_dump(
        lines({"key": KEY, "value": '{"o":1}'}, {"key": KEY, "value": '{"o":2}'}), "x"
    )
    (connector,) = assemble(
        snapshot(topics, "x", None, OffsetsQuery(superseded=True)), OffsetsQuery()
    ).connectors
    assert connector.offsets[0].effective == {"o": 2}
    assert [side.offset for side in connector.offsets[0].earlier] == [{"o": 1}]


@pytest.mark.parametrize("partitions", [1, 2, 25, 50])
def test_how_many_partitions_the_topic_had_is_seen_from_where_its_keys_lie(partitions: int) -> None:
    keys = [f'["c",{{"p":{n}}}]' for n in range(40)]
    records = [
        {"key": k, "value": "{}", "partition": java_partition(k.encode(), partitions)} for k in keys
    ]
    found = assemble(
        snapshot(read_dump(lines(*records), "x"), "x", None, OffsetsQuery()), OffsetsQuery()
    )
    assert found.findings == ()

"""A task's records as messages: the same ones whether they go one by one or many at once, and in
the task's order.
"""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.connector import SourceRecord, SourceRecords
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, RecordLists
from connectctl.ops.task_runtime.task.record_buffer import RecordSerializer
from hypothesis import given
from hypothesis import strategies as st

PARTITION = {"file": "a"}
JSON = "org.apache.kafka.connect.json.JsonConverter"


def record(value: Any, topic: str = "t", **more: Any) -> SourceRecord:
    return SourceRecord(PARTITION, {"n": 1}, topic, value, **more)


def messages(**configs: str) -> RecordSerializer:
    return RecordSerializer(
        converters({name.replace("_", "."): value for name, value in configs.items()}), "offsets"
    )


def test_records_without_headers_and_timestamps_go_at_once() -> None:
    found = messages().of([record("a"), record(None, key="k"), record("c", partition=0)])
    assert found == (
        [],
        [RecordLists("t", [b"a", None, b"c"], [None, b"k", None], [None, None, 0])],
    )


@pytest.mark.parametrize("special", [{"headers": [("h", "1")]}, {"timestamp": 0}])
def test_one_record_that_no_bulk_can_have_keeps_all_of_them_in_their_order(
    special: dict[str, Any],
) -> None:
    outgoing, bulks = messages().of([record("a"), record("b", **special), record("c")])
    assert ([r.value for r in outgoing], bulks) == ([b"a", b"b", b"c"], [])
    assert (outgoing[1].timestamp, list(outgoing[1].headers)) in [(None, [("h", b"1")]), (0, [])]


def test_each_topic_has_its_own_bulk_in_the_order_of_its_records() -> None:
    bulks = messages().of([record(str(n), f"t{n % 2}") for n in range(5)])[1]
    assert [(b.topic, [m["value"] for m in b.messages]) for b in bulks] == [
        ("t0", [b"0", b"2", b"4"]),
        ("t1", [b"1", b"3"]),
    ]


@given(
    st.lists(
        st.builds(
            record,
            st.none() | st.text(max_size=3) | st.integers(-(1 << 63), (1 << 63) - 1),
            st.sampled_from(["t", "u"]),
            key=st.none() | st.text(max_size=3),
            partition=st.none() | st.integers(0, 3),
        )
    )
)
def test_at_once_or_one_by_one_they_are_the_same(records: list[SourceRecord]) -> None:
    convert = messages(key_converter=JSON, value_converter=JSON)
    at_once = [
        (b.topic, m.get("key"), m["value"], m.get("partition"))
        for b in convert.of(records)[1]
        for m in b.messages
    ]
    one_by_one = convert.of([*records, record(0, "last", timestamp=1)])[0][:-1]
    expected = [(r.topic, r.key, r.value, r.partition) for r in one_by_one]
    assert at_once == sorted(expected, key=lambda each: [r.topic for r in records].index(each[0]))
    assert all(isinstance(each, ProducerRecord) for each in one_by_one)


@pytest.mark.parametrize("more", [{}, {"timestamp": 1}])
def test_a_record_for_the_tasks_own_offsets_topic_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ConnectctlError, match="their own offsets topics"):
        messages().of([record("a"), record("b", "offsets", **more)])


@pytest.mark.parametrize("converter", ["StringConverter", "ByteArrayConverter", "JsonConverter"])
def test_many_values_at_once_are_what_each_of_them_is_alone(converter: str) -> None:
    given = converters({"value.converter": converter, "value.converter.schemas.enable": "false"})
    for some in (
        [b"a", None, b"c"],
        [b"a", "b" if converter != "ByteArrayConverter" else b"b", None],
        [],
    ):
        assert given.values("t", None, some) == [given.of_value("t", None, each) for each in some]


def test_values_of_one_source_partition_that_are_bytes_stay_as_they_are() -> None:
    texts = [b"a", b"b"]
    (bulk,) = messages().of(SourceRecords(PARTITION, {"n": 2}, "t", texts))[1]
    assert bulk.values == texts
    assert bulk.values is not texts
    assert all(kept is given for kept, given in zip(bulk.values, texts, strict=True))

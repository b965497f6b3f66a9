"""Where a record tells its sequence: the forms that a person may give, and what they lead to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.field_extractor import (
    RecordPart,
    by_spec,
    found_in,
    number_of,
    parse_path,
    sequence_spec,
    text_of,
)
from connectctl.ops.core.errors import BadInput
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.seq", ("seq",)),
        ("$.a.b-c[0]", ("a", "b-c", 0)),
        ("$['a b'][\"c\"].d", ("a b", "c", "d")),
    ],
)
def test_paths_are_read(text: str, steps: tuple[Any, ...]) -> None:
    assert parse_path(text) == steps


@pytest.mark.parametrize(
    "text",
    [
        "seq",
        "",
        ".seq",
        "$seq",
        "$.",
        "$..a",
        "$.a[",
        "$[x]",
        "$.a b",
        "key:seq",
        "header:",
        "text:(",
        "text:a",
    ],
)
def test_what_is_no_path_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput) as e:
        sequence_spec(text)
    assert "\n" not in str(e.value)


def test_forms_name_a_part_of_the_record() -> None:
    assert (sequence_spec("$.a").part, sequence_spec("key:$.a").part) == (
        RecordPart.VALUE,
        RecordPart.KEY,
    )
    assert (sequence_spec("header:n:1").part, sequence_spec("header:n:1").name) == (
        RecordPart.HEADER,
        "n:1",
    )
    assert (by_spec("partition"), by_spec("key")) == (
        field_extractor.BY_PARTITION,
        field_extractor.BY_KEY,
    )
    assert [by_spec(t).label for t in ("key", "partition", "$.a.b[0]", "header:h", "$")] == [
        "key",
        "kafkaPartition",
        "b",
        "h",
        "value",
    ]


@pytest.mark.parametrize(
    ("raw", "steps", "value"),
    [
        (b'{"a":{"b":[1,2]}}', ("a", "b", 1), 2),
        (b'{"schema":{"type":"int64"},"payload":41}', (), 41),
        (b'{"schema":null,"payload":{"seq":7}}', ("seq",), 7),
        (rb'{"schema":null,"payload":"{\"seq\":8}"}', ("seq",), 8),
        (b"41", (), 41),
        (b"no json", ("a",), None),
        (b'{"a":1}', ("a", "b"), None),
        (b"[1]", (1,), None),
        (None, (), None),
    ],
)
def test_paths_lead_somewhere_or_nowhere(
    raw: bytes | None, steps: tuple[Any, ...], value: Any
) -> None:
    assert found_in(raw, steps) == value


def test_text_is_searched_for_a_group() -> None:
    spec = sequence_spec(r"text:order (\d+)")
    assert (spec.part, spec.label) == (RecordPart.TEXT, "text")
    lines = [
        b"order 17 of 20",
        b'"order 18"',
        b'{"schema":null,"payload":"order 19"}',
        b'{"x":"order 20"}',
        b"none",
        None,
    ]
    assert [field_extractor.matched(line, spec.name) for line in lines] == [
        "17",
        "18",
        "19",
        "20",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5),
        ("007", 7),
        (b"12", 12),
        (3.0, 3),
        (3.5, None),
        (True, None),
        ("x", None),
        (1 << 63, None),
        (None, None),
    ],
)
def test_numbers_are_whole_and_fit_64_bits(value: Any, number: int | None) -> None:
    assert number_of(value) == number


def test_names_of_source_partitions_are_text() -> None:
    assert [text_of(v) for v in (b"k", b"\xff", 3, {"b": 1, "a": 2}, None)] == [
        "k",
        "0xff",
        "3",
        '{"a":2,"b":1}',
        None,
    ]


@given(
    st.lists(
        st.one_of(st.text(max_size=4).filter(lambda t: "'" not in t), st.integers(0, 3)), max_size=4
    )
)
def test_every_way_can_be_written(steps: list[Any]) -> None:
    text = "$" + "".join(f"[{step}]" if isinstance(step, int) else f"['{step}']" for step in steps)
    assert parse_path(text) == tuple(steps)
    data: Any = 42
    for step in reversed(steps):
        data = {step: data} if isinstance(step, str) else [None] * step + [data]
    if not (steps and steps[0] == "payload"):
        assert found_in(json.dumps(data).encode(), tuple(steps)) == 42

"""The validator of source offsets beside ``alterOffsets`` of Kafka's connectors, and beside what a
connector has stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from connectctl.ops.connect.offset_rules import (
    are_plain,
    format_problems,
    rule_of,
    stored_form,
    validator_of,
)
from fakes.offsetcases import (
    BEAT,
    CASES,
    CHECKPOINT,
    CONFIGS,
    FILE,
    GROUP,
    HEARTBEAT,
    LINES,
    ORDERS,
    SOURCE,
    Case,
)
from hypothesis import given
from hypothesis import strategies as st

UNKNOWN = {"connector.class": "com.example.AccountSource"}
Members = Mapping[str, Any]


def problem(
    config: Mapping[str, str], partition: Any, offset: Any, *stored: tuple[Any, Any]
) -> str | None:
    return validator_of(config, stored).problem(partition, offset)


# --------------------------------------------------------------------------- Kafka's own connectors


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_offsets_of_kafkas_connectors_are_refused_with_what_the_connector_requires(
    case: Case,
) -> None:
    found = problem(CONFIGS[case.kind], case.partition, case.offset)
    assert (found is None) is (case.says is None)
    assert (case.says or "") in (found or "")


@pytest.mark.parametrize(
    ("path", "known"),
    [
        (FILE, True),
        ("FileStreamSource", True),
        ("MirrorSourceConnector", True),
        ("TopicCopy", True),
        ("x.y.Z", False),
    ],
)
def test_a_rule_is_found_by_the_name_of_the_class_and_by_its_aliases(
    path: str, known: bool
) -> None:
    assert (rule_of({"connector.class": path}) is not None) is known
    assert rule_of({}) is None


def test_a_file_source_of_the_standard_input_has_no_offsets() -> None:
    assert "without the property file" in str(
        problem({"connector.class": FILE}, LINES, {"position": 1})
    )
    assert problem({"connector.class": FILE}, LINES, None) is None


def alter_offsets(kind: str, partition: Members | None, offset: Members | None) -> bool:
    """Whether ``alterOffsets`` of Kafka 4.3 accepts an offset: its statements in Python."""
    if offset is None:
        return True
    if kind == FILE:
        position = offset.get("position")
        return (
            type(position) is int
            and position >= 0
            and partition is not None
            and "filename" in partition
        )
    if partition is None:
        return False
    strings = {
        SOURCE: ("cluster", "topic"),
        CHECKPOINT: ("group", "topic"),
        HEARTBEAT: ("sourceClusterAlias", "targetClusterAlias"),
    }[kind]
    if not all(isinstance(partition.get(name), str) for name in strings):
        return False
    number = partition.get("partition")
    if kind != HEARTBEAT and not (
        type(number) is int and number < 1 << 31 and (number & 0xFFFFFFFF) < 1 << 31
    ):
        return False
    value = offset.get("offset")
    return type(value) is int and (value >= 0 if kind == SOURCE else value == 0)


NAMES = (
    "filename",
    "cluster",
    "topic",
    "partition",
    "group",
    "sourceClusterAlias",
    "targetClusterAlias",
    "offset",
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, -(1 << 63), 0.0, 1.5, -0.0]),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.text(max_size=3),
)
RIGHT: dict[str, dict[str, Any]] = {FILE: LINES, SOURCE: ORDERS, CHECKPOINT: GROUP, HEARTBEAT: BEAT}


@st.composite
def almost_right(draw: st.DrawFn) -> tuple[str, Any, Any]:
    """An offset of one of Kafka's connectors, of which some members are others or missing."""
    kind = draw(st.sampled_from(sorted(RIGHT)))
    member = "position" if kind == FILE else "offset"
    partition = {**RIGHT[kind], **draw(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=1))}
    offset = {
        member: draw(st.sampled_from([0, 0, 7])),
        **draw(st.dictionaries(st.just(member), VALUES, max_size=1)),
    }
    for members in (partition, offset):
        for name in draw(st.lists(st.sampled_from(sorted(members)), max_size=1)) if members else ():
            if draw(st.booleans()):
                del members[name]
    return (
        kind,
        draw(st.sampled_from([partition] * 5 + [None])),
        draw(st.sampled_from([offset] * 5 + [None])),
    )


@given(almost_right())
def test_what_alter_offsets_refuses_is_refused_and_what_a_task_finds_and_it_accepts_is_accepted(
    drawn: tuple[str, Any, Any],
) -> None:
    kind, partition, offset = drawn
    accepts = problem(CONFIGS[kind], partition, offset) is None
    right = RIGHT[kind]
    # No task asks for a partition of other members or types, and no topic has one of a negative
    # number.
    is_found = offset is None or (
        partition is not None
        and {name: type(value) for name, value in partition.items()}
        == {n: type(v) for n, v in right.items()}
        and partition.get("partition", 0) >= 0
    )
    assert accepts == (alter_offsets(kind, partition, offset) and is_found)


# -------------------------------------------------------------- shapes of other connectors' offsets

LEFT, RIGHT_PATH = ({"account": "first", "path": path} for path in ("left", "right"))


@pytest.mark.parametrize(
    ("partition", "offset", "says"),
    [
        ({"account": "second", "path": "new"}, {"seq": 9, "at": 1.5, "done": True}, None),
        (LEFT, {"seq": 9, "at": 1.5}, None),
        (LEFT, {"seq": 9, "at": 1.5, "done": None}, None),
        (LEFT, None, None),
        ({"anything": []}, None, None),
        (
            LEFT,
            {"seq": "9", "at": 1.5},
            'seq is the string "9", and the stored ones have an integer',
        ),
        (
            LEFT,
            {"seq": 9, "at": 1},
            "at is the integer 1, and the stored ones have a floating-point number",
        ),
        (
            LEFT,
            {"seq": 9.0, "at": 1.5},
            "seq is the floating-point number 9.0, and the stored ones have an integer",
        ),
        (LEFT, {"seq": 9, "at": None}, "at is null"),
        (LEFT, {"seq": 9}, "the offset has no at, and each stored offset has"),
        (
            LEFT,
            {"seq": 9, "at": 1.5, "sequence": 1},
            "the offset has sequence, and the stored offsets have",
        ),
        (
            {"path": "left"},
            {"seq": 9, "at": 1.5},
            "the members of the partition are path, and those of the stored ones",
        ),
        (
            LEFT | {"account": 1},
            {"seq": 9, "at": 1.5},
            "account is the integer 1, and the stored ones have a string",
        ),
        (None, {"seq": 9, "at": 1.5}, "the members of the partition are null"),
    ],
)
def test_offsets_of_other_connectors_are_to_look_like_the_stored_ones(
    partition: Any, offset: Any, says: str | None
) -> None:
    stored = (LEFT, {"seq": 1, "at": 0.5, "done": False}), (RIGHT_PATH, {"seq": 2, "at": 2.0})
    found = problem(UNKNOWN, partition, offset, *stored)
    assert (found is None) is (says is None)
    assert (says or "") in (found or "")


def test_a_connector_may_have_offsets_of_several_shapes() -> None:
    stored = ({"table": "a"}, {"pos": 1}), ({"query": "q"}, {"timestamp": "x"})
    assert problem(UNKNOWN, {"table": "b"}, {"pos": 2}, *stored) is None
    assert problem(UNKNOWN, {"query": "r"}, {"timestamp": "y"}, *stored) is None
    assert "the offset has no pos" in str(
        problem(UNKNOWN, {"table": "b"}, {"timestamp": "y"}, *stored)
    )
    assert "those of the stored ones query or table" in str(
        problem(UNKNOWN, {"file": "b"}, {"pos": 2}, *stored)
    )


def test_a_connector_without_rule_and_stored_offsets_has_nothing_but_types_to_validate_by() -> None:
    assert not validator_of(UNKNOWN, ()).has_rules
    assert problem(UNKNOWN, {"a": 1}, {"b": 1}) is None
    assert "does not fit 64 bits" in str(problem(UNKNOWN, {"a": 1}, {"b": 1 << 63}))
    assert validator_of(UNKNOWN, [(LEFT, {"seq": 1})]).has_rules
    assert validator_of(CONFIGS[FILE], ()).has_rules


PRIMITIVES = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | st.text(max_size=2)
OBJECTS = st.dictionaries(st.sampled_from("abc"), PRIMITIVES, max_size=3)
PAIRS = st.lists(st.tuples(st.none() | OBJECTS, OBJECTS), min_size=1, max_size=6)


@given(PAIRS, st.data())
def test_every_stored_offset_is_accepted_and_each_change_of_an_only_type_is_refused(
    stored: Sequence[tuple[Any, Any]], data: st.DataObject
) -> None:
    validator = validator_of(UNKNOWN, stored)
    assert [validator.problem(*pair) for pair in stored] == [None] * len(stored)
    partition, offset = data.draw(st.sampled_from(stored))
    alike = [
        o
        for p, o in stored
        if (p is None) == (partition is None) and set(p or ()) == set(partition or ())
    ]
    assert validator.problem(partition, {**offset, "d": 1}) is not None
    for name, value in offset.items():
        always = all(name in other for other in alike)
        assert (
            validator.problem(partition, {n: v for n, v in offset.items() if n != name}) is None
        ) is not always
        types = {type(other[name]) for other in alike if name in other}
        if types == {type(value)} and value is not None:
            other = 1 if isinstance(value, str) else "x"
            assert validator.problem(partition, {**offset, name: other}) is not None


# -------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"a": None, "b": "x", "c": -(1 << 63), "d": 1.5, "e": True, "f": b"\x00"}, ()),
        ({}, ()),
        ([1], ("x is not a JSON object",)),
        ({"a": [1]}, ("x may hold primitive values only, and a is not one: it is an array",)),
        ({"a": (1,)}, ("x may hold primitive values only, and a is not one: it is an array",)),
        ({"a": {"b": 1}}, ("x may hold primitive values only, and a is not one: it is an object",)),
        (
            {"a": 2**70, "b": -(1 << 63) - 1},
            ("x: a does not fit 64 bits", "x: b does not fit 64 bits"),
        ),
        ({"a": math.inf}, ("x: a is inf, which JSON does not have",)),
        ({1: 1}, ("x has a key that is not a string: 1",)),
        ({"a": "\ud83d"}, ("x: a is half of a surrogate pair, which UTF-8 cannot encode",)),
        ({"a": {1}}, ("x: a is a set, which JSON does not have",)),
    ],
)
def test_types_are_those_that_offset_utils_accepts(members: Any, says: Sequence[str]) -> None:
    assert tuple(format_problems("x", members)) == tuple(says)


def test_bytes_are_stored_as_the_json_converter_stores_them() -> None:
    assert stored_form({"a": b"\x00\xff", "b": 1}) == {"a": "AP8=", "b": 1}


ANY_VALUES = VALUES | st.sampled_from(
    [math.nan, math.inf, 1 << 63, -(1 << 63) - 1, "\ud800", b"x", [], {}, (1,), object()]
)
ANY_OFFSETS: st.SearchStrategy[Any] = st.one_of(
    st.dictionaries(st.sampled_from(["a", "b", "\ud800"]) | st.just(1), ANY_VALUES, max_size=3),
    st.sampled_from([7, "text", [], None]),
)


@given(st.lists(ANY_OFFSETS, max_size=6))
def test_offsets_that_are_plain_are_those_without_problems(offsets: list[Any]) -> None:
    problems = [each for each in offsets if format_problems("offset", each)]
    assert are_plain(offsets) is (not problems)

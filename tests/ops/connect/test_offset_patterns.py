"""What is recognized by its bytes is accepted, and teaches nothing that was not known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from connectctl.ops.connect.offset_patterns import MOST, OffsetPatterns
from connectctl.ops.connect.offset_rules import validator_of
from connectctl.ops.connect.offset_shapes import kind_of
from fakes.offsetcases import CONFIGS
from hypothesis import event, given
from hypothesis import strategies as st

NUMBERS = st.sampled_from(
    [0, 1, 7, 10**9 - 1, 10**9, 2**31 - 1, 2**31, 10**18 - 1, 10**18, 2**63 - 1, -1]
)
VALUES = st.one_of(
    NUMBERS,
    st.sampled_from(["", "a", 'q"', "ä", "{}", ",", ":"]),
    st.booleans(),
    st.none(),
    st.floats(-9, 9),
)
OBJECTS = st.dictionaries(
    st.sampled_from(["cluster", "topic", "partition", "offset", "position"]), VALUES, max_size=3
)
MIRRORS = st.fixed_dictionaries(
    {"cluster": st.text(max_size=2), "topic": st.just("t"), "partition": NUMBERS}
)
OFFSETS = OBJECTS | st.fixed_dictionaries({"offset": NUMBERS})


def text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def kinds(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kind_of(value) for name, value in members.items()}


@st.composite
def two_alike(draw: st.DrawFn) -> tuple[Any, Any, Any, Any]:
    """An offset, and another one with the same members, most of them of the same types."""
    pair = draw(OBJECTS | MIRRORS), draw(OFFSETS)
    same = {int: NUMBERS, str: st.text(max_size=2)}
    partition, offset = (
        {
            name: draw(same.get(type(value), st.just(value)) | st.just(value))
            for name, value in members.items()
        }
        for members in pair
    )
    return *pair, partition, offset | draw(st.just({}) | st.just({}) | OFFSETS)


@given(two_alike(), st.sampled_from(sorted(CONFIGS)))
def test_an_offset_that_matches_an_accepted_one_is_accepted(
    drawn: tuple[Any, Any, Any, Any], kind: str
) -> None:
    partition, offset, other, value = drawn
    patterns = OffsetPatterns()
    patterns.add(text(["c", partition]), text(offset))
    if not patterns.match(text(["c", other]), text(value)):
        return
    event("matches")
    assert (kinds(other), kinds(value)) == (kinds(partition), kinds(offset))
    for validator in (validator_of(CONFIGS[kind], ()), validator_of({}, [(partition, offset)])):
        if validator.problem(partition, offset) is None:
            assert validator.problem(other, value) is None


@pytest.mark.parametrize(
    ("key", "value", "matches"),
    [
        (b'["c",{"t":"b"}]', b'{"lsn":99999999999}', True),
        (b'["c",{"t":"b,\':"}]', b'{"lsn":1}', True),
        (b'["d",{"t":"b"}]', b'{"lsn":1}', False),
        (b'["c",{"u":"b"}]', b'{"lsn":1}', False),
        (b'["c",{"t":"b"}]', b'{"lsn":"1"}', False),
        (b'["c",{"t":"b"}]', b'{"lsn":1.0}', False),
        (b'["c",{"t":"b"}]', b'{"lsn":-1}', False),
        (b'["c",{"t":"b"}]', b'{"lsn":1,"a":1}', False),
        (b'["c",{"t":"b"}]x', b'{"lsn":1}', False),
        (b'["c",{"t":"\\n"}]', b'{"lsn":1}', False),
    ],
)
def test_members_and_types_are_compared(key: bytes, value: bytes, matches: bool) -> None:
    patterns = OffsetPatterns()
    patterns.add(b'["c",{"t":"a"}]', b'{"lsn":7}')
    assert patterns.match(key, value) is matches


def test_offsets_of_several_patterns_are_recognized_in_turns() -> None:
    patterns = OffsetPatterns()
    names = [f"m{n}" for n in range(MOST)]
    for name in names:
        patterns.add(b'["c",{}]', text({name: 1}))
    assert all(patterns.match(b'["c",{}]', text({name: 2})) for name in names * 2)
    patterns.add(b'["c",{}]', b'{"more":1}')
    assert patterns.match(b'["c",{}]', b'{"more":5}')

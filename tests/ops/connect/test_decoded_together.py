"""Keys and offsets that are decoded together are those that are decoded one by one, whatever stands
beside them.
"""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from connectctl.ops.config.json_text import decode_together
from connectctl.ops.connect import source_keys
from connectctl.ops.connect.source_keys import SourceKey, connectors_of, parse_key, parse_keys
from connectctl.ops.connect.source_offsets import problem_of, read_offset, read_offsets
from connectctl.ops.kafka.records import ConsumerRecord
from fakes.anyjson import encodings
from hypothesis import given
from hypothesis import strategies as st

KEYS = (
    b'["c",{"a":1}]',
    b'["c",{"b":"x","a":null,"d":true}]',
    b'["c",null]',
    b'["c",{}]',
    '["ünï",{"ß":"日本"}]'.encode(),
    b'["c",{"a":1.0}]',
    b'["c",{"a":1.0E10}]',
    b'["c",{"a":1e2}]',
    b'["c",{"a":-0}]',
    b'["c",{"a":1,"a":2}]',
    b'["c",{"a":123456789012345678901234567890}]',
    b'["c", {"a":1}]',
    b'["c",{"a":"b c"}]',
    b'["c",{"a":"\\n"}]',
    b'["c",{"a":{"b":[1]}}]',
)
GARBAGE = (
    None,
    b"",
    b"\xff",
    b"[",
    b'["c",',
    b"{}]",
    b'["c"]',
    b'["a",{}] ["b",{}]',
    b'["a",{}]["b",{}]',
    b'["c",\n{}]',
    b'["c",{}]x',
    b'{"a":1}',
    b"null",
)
OFFSETS = (
    b'{"a":1}',
    b'{ "a" : 1.50 }',
    b'{"a":1e2,"b":"x"}',
    b'{"a":-0.0}',
    b'{"a":123456789012345678901234567890}',
    b'{"a":1,"a":2}',
    b"{}",
    None,
    b'{"a":1} {"b":2}',
    b'{"a":1}{"b":2}',
    b'{"a":',
    b"1}",
    b'{"a":\n1}',
    b'{"a":1}x',
    b'{"a":1e400}',
    b'{"a":{"b":1}}',
    b'{"a":"\\ud800"}',
    b'{"a":NaN}',
    b"null",
    b"",
    b"\xff",
)
ENCODED = encodings({"a": [1, "c"]})
keys = st.lists(st.sampled_from(KEYS + GARBAGE) | ENCODED, max_size=8)
offsets = st.lists(st.sampled_from(OFFSETS) | ENCODED, max_size=8)


@given(keys)
def test_keys_together_are_those_one_by_one(raws: list[bytes | None]) -> None:
    assert repr(list(parse_keys(raws))) == repr(list(map(parse_key, raws)))


@given(keys)
def test_connectors_of_keys_together_are_those_one_by_one(raws: list[bytes | None]) -> None:
    parsed = [parse_key(raw) for raw in raws]
    assert list(connectors_of(raws)) == [
        key.connector if isinstance(key, SourceKey) else None for key in parsed
    ]


@given(offsets)
def test_the_problem_of_an_offset_is_that_of_reading_it(values: list[bytes | None]) -> None:
    for record in [ConsumerRecord(b"k", value, 1, 0, 5) for value in values]:
        assert problem_of(record) == read_offset(record).problem


@pytest.mark.parametrize("raws", list(permutations([b'["a",{}] ["b",{}]', b'["c",', b"{}]"])))
def test_a_line_with_two_keys_does_not_stand_in_for_a_key_on_two_lines(
    raws: tuple[bytes, ...],
) -> None:
    assert list(parse_keys(raws)) == list(map(parse_key, raws))


@given(offsets)
def test_offsets_together_are_those_one_by_one(values: list[bytes | None]) -> None:
    records = [ConsumerRecord(b"k", value, 1, n, 5) for n, value in enumerate(values)]
    assert repr(read_offsets(records)) == repr([read_offset(record) for record in records])


def test_an_absent_record_has_no_offset() -> None:
    record = ConsumerRecord(b"k", b'{"a":1}', 1, 2, 3)
    assert read_offsets([None, record, None]) == [None, read_offset(record), None]
    assert read_offsets([None]) == [None]


@pytest.mark.parametrize("raw", KEYS)
def test_a_key_parses_the_same_without_msgspec(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = parse_key(raw)
    monkeypatch.setattr(source_keys, "compact_encoder", lambda: None)
    assert repr(parse_key(raw)) == repr(quick)


def test_plain_keys_are_decoded_together() -> None:
    raws = [b'["c",{"a":%d}]' % n for n in range(3_000)]
    assert decode_together(tuple[str, dict[str, int]], raws, b"[") == [
        tuple(json.loads(raw)) for raw in raws
    ]
    assert list(parse_keys(raws)) == [
        SourceKey("c", {"a": n}, raw.decode()) for n, raw in enumerate(raws)
    ]


def test_a_repeated_member_is_no_spelling_of_connect() -> None:
    """Connect's map has each name once, so that workers do not find such a key."""
    key = parse_key(b'["c",{"a":1,"a":2}]')
    assert isinstance(key, SourceKey)
    assert (key.partition, key.spelled_as_connect) == ({"a": 2}, False)

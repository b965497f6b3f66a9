"""What is a key of Connect's, and how Connect spells it."""

import json

import pytest
from connectctl.ops.connect.source_keys import (
    SourceKey,
    connect_json,
    java_double,
    owner_of,
    owners_of,
    parse_key,
    spelled_by_rest,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (None, "it has no key"),
        (b"", "its key is not JSON"),
        (b"\xff\xfe", "its key is not JSON"),
        (b"[1,", "its key is not JSON"),
        (b'["c",{"a":NaN}]', "its key is not JSON"),
        (b"[" * 100_000, "its key is not JSON"),
        (b'{"a":1}', "its key is not a JSON array"),
        (b'"c"', "its key is not a JSON array"),
        (b"[]", "its key has 0 elements and not 2"),
        (b'["c"]', "its key has 1 elements and not 2"),
        (b'["c",{},1]', "its key has 3 elements and not 2"),
        (b"[1,{}]", "its key does not begin with a connector's name"),
        (b"[null,{}]", "its key does not begin with a connector's name"),
        (b'["c",1]', "its source partition is not a JSON object"),
        (b'["c",["a"]]', "its source partition is not a JSON object"),
    ],
)
def test_a_key_that_connect_ignores_says_why(raw: bytes | None, why: str) -> None:
    assert parse_key(raw) == why


@pytest.mark.parametrize(
    ("raw", "as_connect"),
    [
        (b'["c",{"a":1}]', True),
        (b'["c",null]', True),
        (b'["c",{"b":1,"a":2}]', True),
        ('["ünï",{"ß":"日本"}]'.encode(), True),
        (b'["c",{"path":"/a b/c"}]', True),
        (b'["c",{"a":"line\\nbreak"}]', True),
        (b'["c",{"a":1.5}]', True),
        (b'["c",{"a":1.0E10}]', True),
        (b'["c", {"a":1}]', False),
        (b'["c",{"a": 1}]', False),
        (b'["c",{"a":1e10}]', False),
        (b'["c",{"a":1.50}]', False),
        (b'["c",{"a":"\\u00fc"}]', False),
        (b'["c",{"a":"\\/"}]', False),
        (b'["c",{"a":-0}]', False),
    ],
)
def test_only_connects_own_spelling_is_found_by_a_worker(raw: bytes, as_connect: bool) -> None:
    key = parse_key(raw)
    assert isinstance(key, SourceKey)
    assert key.spelled_as_connect is as_connect
    assert key.text == raw.decode()


def test_two_spellings_of_one_source_partition_mean_the_same() -> None:
    keys = [
        parse_key(raw)
        for raw in (b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]', b'["c", {"a": 1, "b": 2}]')
    ]
    assert len({key.meaning for key in keys if isinstance(key, SourceKey)}) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.1, "0.1"),
        (1.5, "1.5"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1e7, "-1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (1e22, "1.0E22"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_floats_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_written_as_java_writes_it_is_the_same_number(value: float) -> None:
    assert float(java_double(value)) == value


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)


@given(st.text(), st.dictionaries(st.text(), scalars, max_size=4))
def test_what_we_spell_as_connect_is_recognised_as_connects(
    name: str, partition: dict[str, object]
) -> None:
    text = connect_json([name, partition])
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return  # a lone surrogate has no UTF-8
    key = parse_key(raw)
    assert isinstance(key, SourceKey)
    assert (key.connector, key.partition) == (name, partition)
    assert key.spelled_as_connect
    assert json.loads(text) == [name, partition]


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("\U0001f600", r"\uD83D\uDE00"),
        ("\ud800", r"\uD800"),
        ("\u001f\t", r"\u001F\t"),
        ("\\u001f", r"\\u001f"),
        ("\\\u001f", "\\\\\\u001F"),
        ("\u2028é\x7f", "\u2028é\x7f"),
        ("abc", "abc"),
    ],
)
def test_characters_beyond_16_bits_and_control_characters_are_escaped_as_jackson_does(
    text: str, spelled: str
) -> None:
    raw = f'["c",{{"t":"{spelled}"}}]'
    assert spelled_by_rest("c", {"t": text}) == raw.encode()
    key = parse_key(raw.encode())
    assert isinstance(key, SourceKey)
    assert (key.partition, key.spelled_as_connect) == ({"t": text}, True)


def test_a_character_beyond_16_bits_as_it_is_is_no_spelling_of_connects() -> None:
    key = parse_key('["c",{"t":"\U0001f600"}]'.encode())
    assert isinstance(key, SourceKey)
    assert not key.spelled_as_connect


@given(
    st.lists(
        st.sampled_from(
            [
                None,
                b"",
                b"[",
                b'[""',
                b'["a"',
                b'["a\\"b",{}]',
                b'["a"b"',
                b'["a\\\\",{}]',
                b'["a\\"',
                b"\xff",
            ]
        )
        | st.sampled_from(
            [
                b'["a",{"t":1}]',
                b'["a",{"t":2}]',
                b'["\\u0061",{}]',
                b'["ab",{}]',
                b' ["a",{}]',
                b"{}",
            ]
        )
    )
)
def test_the_owners_of_many_keys_are_those_of_each(raws: list[bytes | None]) -> None:
    assert owners_of(raws) == list(map(owner_of, raws))

"""JSON and YAML from outside end in a value or in one mistake, whatever they are."""

from __future__ import annotations

import contextlib
import json

import msgspec
import pytest
import yaml
from connectctl.ops.config import json_text, yaml_text
from connectctl.ops.config.json_text import read_json
from hypothesis import given
from hypothesis import strategies as st

LAUGHS = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12)
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_json_is_read_as_json_does(value: object) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value).encode()) == value
    assert (
        read_json(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == value
    )
    assert read_json(json.dumps(value).encode("utf-16-le")) == value


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "[" * (json_text.DEEPEST + 2) + "]" * (json_text.DEEPEST + 2),
        "NaN",
        '{"a": Infinity}',
        "9" * 5000,
        "{",
        "",
    ],
    ids=lambda text: text[:9] + str(len(text)),
)
def test_json_without_end_or_sense_is_a_mistake(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)
    with pytest.raises(ValueError, match=r"."):
        read_json(text.encode())


def test_json_that_is_long_and_flat_is_read() -> None:
    assert len(read_json("[" + ",".join(["{}"] * 1000) + "]")) == 1000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "nested deeper"),
        ("- " * 100_000, "nested deeper"),
        ("{a: " * 200 + "}" * 200, "nested deeper"),
        ("a: &x [*x]", "within its own anchor"),
        ("&x {a: {b: *x}}", "within its own anchor"),
        (LAUGHS, "aliases expand to more than"),
        ("when: 2026-13-45", "month"),
        ("n: " + "9" * 5000, "digit"),
        ("a: *nobody", "undefined alias"),
    ],
    ids=[
        "flow",
        "block",
        "maps",
        "recursive",
        "recursive deep",
        "laughs",
        "date",
        "number",
        "unknown",
    ],
)
def test_yaml_without_end_is_a_mistake_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        yaml_text.read_yaml(text)
    assert problem in str(caught.value)
    if problem not in ("month", "digit"):
        assert caught.value.problem_mark is not None
        with pytest.raises(yaml.MarkedYAMLError):
            yaml_text.compose(text)


def test_yaml_with_a_few_aliases_is_read() -> None:
    assert yaml_text.read_yaml("a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n  y: 2") == {
        "a": {"x": 1},
        "b": {"x": 1},
        "c": {"x": 1, "y": 2},
    }
    assert len(yaml_text.compose_all("a: 1\n---\n\n---\n- b")) == 3
    assert yaml_text.compose("") is None


@given(st.text())
def test_any_text_ends_in_a_value_or_a_mistake(text: str) -> None:
    for read in (yaml_text.read_yaml, yaml_text.compose):
        try:
            read(text)
        except yaml.YAMLError:
            continue


@given(VALUES)
def test_what_msgspec_does_not_refuse_it_reads_as_python_does(value: object) -> None:
    text = json.dumps(value)
    with contextlib.suppress(msgspec.MsgspecError):
        read = msgspec.json.decode(text)
        assert (read, repr(read)) == (json.loads(text), repr(json.loads(text)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("-9223372036854775809", -9223372036854775809),
        ("1e400", float("inf")),
        ("9007199254740993.0", 9007199254740992.0),
        ('"\\ud800"', "\ud800"),
        ('{"a": 1, "a": 2}', {"a": 2}),
    ],
)
@pytest.mark.parametrize("fast", [True, False])
def test_numbers_and_texts_at_the_edge_are_read_with_and_without_msgspec(
    monkeypatch: pytest.MonkeyPatch, text: str, value: object, fast: bool
) -> None:
    if not fast:
        monkeypatch.setattr(json_text, "msgspec_json", lambda: (None, ValueError))
    assert read_json(text) == value
    assert read_json(text.encode()) == value
    with pytest.raises(ValueError, match=r"."):
        read_json(text + "]")

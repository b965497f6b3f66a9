"""What expressions give for rows, null included, whatever other rows are evaluated with them."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.task_runtime.connectors.expression.columns import evaluate
from connectctl.ops.task_runtime.connectors.expression.language import parse
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st


def result(text: str, **row: Any) -> Any:
    return evaluate(parse(text), [row])[0]


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("a > 5", {"a": 6}, True),
        ("a > 5", {"a": None}, None),
        ("a != 5", {"a": None}, None),
        ("a == 'x'", {"a": None}, None),
        ("a != 'x'", {"a": None}, None),
        ("a in ['x', 'y']", {"a": "x"}, True),
        ("a in ['x', 'y']", {"a": None}, False),
        ("a not in [1, -1]", {"a": -1}, False),
        ("1 < a <= 5", {"a": 5}, True),
        ("a > 5 & b == 'new'", {"a": 6, "b": "new"}, True),
        ("a > 5 | b == 'new'", {"a": None, "b": "new"}, True),
        ("a > 5 and b == 'new'", {"a": None, "b": "old"}, False),
        ("not a", {"a": False}, True),
        ("a.isna()", {"a": None}, True),
        ("a.notna() and a > 1", {"a": 2.5}, True),
        ("a.fillna(0) + 1", {"a": None}, 1),
        ("a.fillna('none')", {"a": None}, "none"),
        ("a + b", {"a": None, "b": "x"}, None),
        ("'x-' + a + '-' + b", {"a": "1", "b": "2"}, "x-1-2"),
        ("'n' + a.astype('string')", {"a": 5}, "n5"),
        ("a.astype('Int64') % 2 == 0", {"a": "12"}, True),
        ("a.str.slice(start=5).astype('Int64') % 2", {"a": "line 7"}, 1),
        ("a.str.contains('^b+$')", {"a": "bb"}, True),
        ("a.str.contains('b')", {"a": None}, None),
        ("a.str.len() > 2", {"a": "abc"}, True),
        ("a.str.upper() == b", {"a": "x", "b": None}, None),
        ("a == 9007199254740993", {"a": 9007199254740993}, True),
        ("`a b` * 2.5", {"a b": 2}, 5.0),
        ("-a", {"a": 2}, -2),
    ],
)
def test_an_expression_has_a_result(text: str, row: dict[str, Any], expected: Any) -> None:
    found = result(text, **row)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("a > 5", {"a": "6"}),
        ("a.str.lower() == 'x'", {"a": 5}),
        ("a + 1", {"a": "x"}),
        ("a.astype('Int64')", {"a": "x"}),
        ("a > 0", {"a": 2**80}),
        ("not a", {"a": 5}),
    ],
)
def test_values_of_another_type_fail(text: str, row: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"."):
        result(text, **row)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(-1e9, 1e9),
    st.text("ab1", max_size=3),
)


@settings(max_examples=deep(60, 25), deadline=None)
@given(
    st.lists(st.tuples(VALUES, VALUES), max_size=6),
    st.sampled_from(["a == b", "a == 1", "a.isna() or b == 'a'", "a in [1]"]),
)
def test_a_result_does_not_depend_on_the_rows_beside_it(
    pairs: list[tuple[Any, Any]], text: str
) -> None:
    rows = [{"a": a, "b": b} for a, b in pairs]
    alone = []
    for row in rows:
        try:
            alone.append(result(text, **row))
        except Exception:  # noqa: BLE001  # then it fails in company, too
            with pytest.raises(Exception, match=r"."):
                evaluate(parse(text), rows)
            return
    assert evaluate(parse(text), rows) == alone


def test_no_rows_have_no_results() -> None:
    assert evaluate(parse("a > 5"), []) == []

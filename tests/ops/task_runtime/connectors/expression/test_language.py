"""What an expression may be, and that there is no way out of it."""

from __future__ import annotations

import pytest
from connectctl.ops.task_runtime.connectors.expression.language import ExpressionError, parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("amount > 5", {"amount"}),
        ("amount > 5 & status == 'new' | not vip", {"amount", "status", "vip"}),
        ("status in ['a', 'b'] and 1 < amount <= 5", {"status", "amount"}),
        ("value.str.lower().str.contains('a', case=False)", {"value"}),
        ("`user id`.notna() and `value.key` != 'it`s & that'", {"user id", "value.key"}),
        ("(price - discount.fillna(0)) * 2.5 / -count % 3", {"price", "discount", "count"}),
        ("__deleted == 'false'", {"__deleted"}),
        ("a >\n  1", {"a"}),
    ],
)
def test_an_expression_uses_columns(text: str, names: set[str]) -> None:
    assert parse(text).names == names


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "__builtins__",
        "value.__class__",
        "value.__class__.__bases__[0].__subclasses__()",
        "value.str.__init__.__globals__",
        "value.to_pickle('/tmp/x')",
        "value.to_csv('/tmp/x')",
        "value.pipe(print)",
        "value.apply(print)",
        "value.map('{}'.format)",
        "value.str._data.eval('1')",
        "value.str.cat()",
        "value.agg('to_pickle')",
        "'{0.__class__}'.format(value)",
        "open('/etc/passwd')",
        "getattr(value, 'x')",
        "@amount > 5",
        "value == @amount",
        "[x for x in value]",
        "(lambda: value)()",
        "value if value else key",
        "f'{value}'",
        "(value := 1)",
        "value[0]",
        "value ** 99999",
        "value @ key",
        "value; key",
        "value = 1",
        "value is key",
        "value.shift(1)",
        "value.fillna(method='ffill')",
        "value.fillna(**{'limit': 1})",
        "value.isin(*key)",
        "value.astype('object')",
        "value.astype(dtype='string')",
        "b'x' == value",
        "value == None",
        "value in key",
        "'a' in value",
        "1 < value in [1]",
        "value.str.lower",
        "value.str",
        "[1, 2]",
        "value == [1]",
        "value == ...",
        "value + 1j",
        "1 > 0",
        "",
        "value >",
        "(" * 500 + "value" + ")" * 500,
        "value\0",
        "`a",
    ],
)
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ExpressionError) as e:
        parse(text)
    assert str(e.value)
    assert "\n" not in str(e.value)


def test_a_name_that_looks_like_a_quoted_one_is_itself() -> None:
    assert parse("`a b` == _quoted_7").names == {"a b", "_quoted_7"}

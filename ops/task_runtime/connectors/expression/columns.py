"""An expression applied to columns of pandas. Each record's result is that of the record by
itself.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import pandas as pd
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.task_runtime.connectors.expression.language import TEXT_FACTS, Expression

TEXT = pd.StringDtype("python")
"""Python's own regular expressions, whatever else is installed."""
_DTYPES: Mapping[type, Any] = {bool: "boolean", int: "Int64", float: "Float64", str: TEXT}
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.And: operator.and_,
    ast.Or: operator.or_,
}
Row = Mapping[str, Any]
"""The columns of a record: null, bool, int, float or text."""


def evaluate(expression: Expression, rows: Sequence[Row]) -> list[Any]:
    """Return the result for each row: None for null, else bool, int, float or text. Raises what
    pandas raises.

    Rows whose values are of the same types make a table of their own: otherwise a type would depend
    on the records that happen to be read together.
    """
    groups: dict[tuple[type, ...], list[int]] = {}
    columns = expression.columns
    for number, row in enumerate(rows):
        groups.setdefault(tuple(type(row[name]) for name in columns.values()), []).append(number)
    results: list[Any] = [None] * len(rows)
    for types, numbers in groups.items():
        dtypes = _dtypes(expression, dict(zip(columns, types, strict=True)))
        made = {
            each: pd.Series([rows[n][name] for n in numbers], dtype=dtypes[each])
            for each, name in columns.items()
        }
        found = _apply(expression.tree, made)
        if not isinstance(found, pd.Series):
            raise TypeError("its result is not a column")
        for number, value in zip(numbers, found.astype(object), strict=True):
            results[number] = None if value is pd.NA or value is None else _plain(value)
    return results


def plain_value(value: Any) -> Any:
    """Return the value of a column for ``value``: objects and arrays are the text of their JSON."""
    return connect_json(value) if isinstance(value, dict | list) else value


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _dtypes(expression: Expression, types: Mapping[str, type]) -> dict[str, Any]:
    """Return the column types. One of nulls alone is text where it is used with text, else a
    number.
    """
    texts = {name for name, kind in types.items() if kind is str}
    for node in ast.walk(expression.tree):
        if isinstance(node, ast.Attribute) and node.attr == "str":
            texts |= _names(node.value)
        elif isinstance(node, ast.Compare | ast.BinOp | ast.Call) and any(
            _is_text(p, texts) for p in _operands(node)
        ):
            texts |= {name for part in _operands(node) for name in _names(part)}
    return {
        name: _DTYPES.get(kind, TEXT if name in texts else "Int64") for name, kind in types.items()
    }


def _operands(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Compare(left=left, comparators=others):
            found = [left, *others]
        case ast.Call(
            func=ast.Attribute(value=base, attr="isin" | "between" | "fillna"), args=args
        ):
            found = [base, *args]
        case _:
            return []
    return [
        part
        for each in found
        for part in (each.elts if isinstance(each, ast.List | ast.Tuple) else [each])
    ]


def _names(node: ast.expr) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) else set()


def _is_text(node: ast.expr, texts: set[str]) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name):
            return name in texts
        case ast.BinOp(left=left, right=right):
            return _is_text(left, texts) or _is_text(right, texts)
        case ast.Call(func=ast.Attribute(attr="astype"), args=[ast.Constant(value="string")]):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="str"), attr=name)):
            return name not in TEXT_FACTS
    return False


def _apply(node: ast.expr, columns: Mapping[str, Any]) -> Any:
    """Return the value of a part: a column or a constant."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return columns[name]
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_apply(each, columns) for each in parts]
        case ast.BoolOp(op=op, values=parts):
            return reduce(_OPERATORS[type(op)], [_apply(each, columns) for each in parts])
        case ast.UnaryOp(op=op, operand=part):
            return _unary(op, _apply(part, columns))
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_apply(left, columns), _apply(right, columns))
        case ast.Compare():
            return _compare(node, columns)
        case ast.Call(func=ast.Attribute(value=base, attr=name)):
            return _call(node, base, name, columns)
    raise TypeError(ast.unparse(node))


def _unary(op: ast.unaryop, value: Any) -> Any:
    if isinstance(op, ast.USub):
        return -value
    if isinstance(op, ast.UAdd):
        return +value
    if isinstance(value, pd.Series) and not pd.api.types.is_bool_dtype(value.dtype):
        raise TypeError("not requires a boolean operand")
    return ~value if isinstance(value, pd.Series) else not value


def _compare(node: ast.Compare, columns: Mapping[str, Any]) -> Any:
    """Return the result of a comparison; a chain such as ``a < b < c`` is ``a < b and b < c``."""
    parts = [_apply(each, columns) for each in (node.left, *node.comparators)]
    found = []
    for op, first, right in zip(node.ops, parts, parts[1:], strict=False):
        if isinstance(op, ast.In | ast.NotIn):
            is_in = first.isin(right)
            found.append(~is_in if isinstance(op, ast.NotIn) else is_in)
        else:
            found.append(_OPERATORS[type(op)](first, right))
    return reduce(operator.and_, found)


def _call(node: ast.Call, base: ast.expr, name: str, columns: Mapping[str, Any]) -> Any:
    """Return the result of a method; the language has checked its name."""
    of = (
        _apply(base.value, columns).str
        if isinstance(base, ast.Attribute)
        else _apply(base, columns)
    )
    args = [
        TEXT if name == "astype" and each == "string" else each
        for each in (_apply(a, columns) for a in node.args)
    ]
    return getattr(of, name)(
        *args, **{str(each.arg): _apply(each.value, columns) for each in node.keywords}
    )

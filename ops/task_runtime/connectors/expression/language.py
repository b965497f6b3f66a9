"""The expressions of ``Filter``, ``Map`` and ``Route``: the syntax of pandas' ``DataFrame.query``.

An expression is parsed, never given to ``eval``. It has columns, constants, operators and the
methods listed here; these do not lead to builtins, modules, files or variables. Each of
them reads one record only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

METHODS = frozenset({"isna", "notna", "isin", "between", "fillna", "abs", "round", "astype"})
TEXT_FACTS = frozenset(
    {"contains", "endswith", "fullmatch", "isdigit", "len", "match", "startswith"}
)
_TEXT_CHANGES = {"lower", "title", "upper", "replace", "slice", "zfill"}
_TEXT_PARTS = {"lstrip", "rstrip", "strip", "removeprefix", "removesuffix"}
TEXT_METHODS = TEXT_FACTS | _TEXT_CHANGES | _TEXT_PARTS
"""Methods after ``.str``: those that return a number or a boolean, and those that return text."""
DTYPES = ("boolean", "Float64", "Int64", "string")
"""For ``astype``: those that have nulls."""
KEYWORDS = frozenset({"case", "flags", "inclusive", "na", "regex", "start", "stop"})
"""The allowed names of arguments; others could make a method read other records."""
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
_TOKENS = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|`(?P<name>[^`]+)`|(?P<and>&)|(?P<or>\|)"""
)
_QUOTED = "_quoted_"


class ExpressionError(Exception):
    """An expression that is not one; the message is one line."""


@dataclass(frozen=True)
class Expression:
    """``tree`` refers to columns by names that ``columns`` translates, because a column's may be
    any text.
    """

    text: str
    tree: ast.expr
    columns: dict[str, str]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.columns.values())


def parse(text: str) -> Expression:
    """Return the expression in ``text``, checked. Raises ``ExpressionError``."""
    quoted: list[str] = []

    def plain(found: re.Match[str]) -> str:
        if found["name"]:
            quoted.append(found["name"])
            return f"{_QUOTED}{len(quoted) - 1}"
        # As in pandas, & and | bind as loosely as and and or.
        return " and " if found["and"] else " or " if found["or"] else found[0]

    try:
        tree = ast.parse(_TOKENS.sub(plain, " ".join(text.split("\n"))).strip(), mode="eval").body
        _check(tree)
    except SyntaxError as e:
        raise ExpressionError(f"invalid syntax: {e.msg}") from e
    except (ValueError, RecursionError, MemoryError) as e:
        raise ExpressionError(f"invalid syntax: {type(e).__name__}") from e
    columns = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            number = node.id.removeprefix(_QUOTED)
            is_quoted = number != node.id and number.isdigit() and int(number) < len(quoted)
            columns[node.id] = quoted[int(number)] if is_quoted else node.id
    if not columns:
        raise ExpressionError("it uses no column")
    return Expression(text, tree, columns)


def _check(node: ast.expr) -> None:
    """Raises ``ExpressionError`` for anything but what the language has."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            return
        case ast.Constant(value=None):
            raise ExpressionError("None is not supported: use .isna() or .notna()")
        case ast.Name(id=name) if not (name.startswith("__") and name.endswith("__")):
            return
        case ast.BoolOp() | ast.UnaryOp():
            pass
        case ast.Compare(ops=ops) if all(isinstance(op, _COMPARISONS) for op in ops):
            pass
        case ast.BinOp(op=op) if isinstance(op, _OPERATORS):
            pass
        case ast.Call(func=ast.Attribute()):
            _check_call(node)
        case _:
            raise ExpressionError(f"not supported: {ast.unparse(node)}")
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.expr) and not isinstance(node, ast.Call):
            _check_operand(node, each)


def _check_operand(node: ast.expr, operand: ast.expr) -> None:
    """Raise ``ExpressionError`` for a list that is not after ``in``, and for anything else after
    it.
    """
    if not isinstance(node, ast.Compare) or not any(
        isinstance(op, ast.In | ast.NotIn) for op in node.ops
    ):
        _check(operand)
    elif len(node.ops) > 1 or not isinstance(node.comparators[0], ast.List | ast.Tuple):
        raise ExpressionError(f"in needs a list: {ast.unparse(node)}")
    elif operand is node.comparators[0]:
        for each in _elements(operand):
            _check(each)
    else:
        _check(operand)


def _check_call(call: ast.Call) -> None:
    """A call is that of a method that is listed; the arguments are expressions, or lists of
    them.
    """
    assert isinstance(call.func, ast.Attribute)
    name, base = call.func.attr, call.func.value
    if isinstance(base, ast.Attribute) and base.attr == "str":
        base, methods = base.value, TEXT_METHODS
    else:
        methods = METHODS
    if name not in methods:
        raise ExpressionError(
            f"not supported: {ast.unparse(call)}; methods are {', '.join(sorted(methods))}"
        )
    if others := [str(each.arg) for each in call.keywords if each.arg not in KEYWORDS]:
        raise ExpressionError(f"not supported: the argument {others[0]} in {ast.unparse(call)}")
    _check(base)
    arguments = [*call.args, *(each.value for each in call.keywords)]
    if name == "astype" and not (
        len(call.args) == len(arguments) == 1
        and isinstance(call.args[0], ast.Constant)
        and call.args[0].value in DTYPES
    ):
        raise ExpressionError(f"astype takes one of {', '.join(DTYPES)}")
    for argument in arguments:
        for each in _elements(argument):
            _check(each)


def _elements(node: ast.expr) -> Iterator[ast.expr]:
    yield from node.elts if isinstance(node, ast.List | ast.Tuple) else (node,)

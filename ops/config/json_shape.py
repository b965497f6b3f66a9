"""Shapes of JSON from outside: records of topics, answers of workers, saved files.

A shape is a function that accepts a value, or raises ``Malformed``. All readers of untrusted JSON
read typed members through one of these. Members that a shape does not name are allowed, because
newer versions add some.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Shape = Callable[[Any], None]


class Malformed(ValueError):
    """A value that does not have the shape that its reader needs. ``path`` leads to it."""

    def __init__(self, problem: str, path: str = "") -> None:
        self.problem, self.path = problem, path
        super().__init__(f"{path.lstrip('.') or 'it'} {problem}")

    def within(self, step: str) -> Malformed:
        """Return the error with the path from the object or array that holds the value."""
        return Malformed(self.problem, step + self.path)


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value as text."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names = {
        str: "a text",
        int: "a whole number",
        float: "a number",
        dict: "an object",
        list: "an array",
    }
    return names.get(type(value), type(value).__name__)


def anything(value: Any) -> None:
    """Accept every value."""


def text(value: Any) -> None:
    if type(value) is not str:
        raise Malformed(f"is {kind_of(value)}, and not a text")


def whole(value: Any) -> None:
    if type(value) is not int:  # True is an int in Python, and not in JSON
        raise Malformed(f"is {kind_of(value)}, and not a whole number")


def flag(value: Any) -> None:
    if type(value) is not bool:
        raise Malformed(f"is {kind_of(value)}, and neither true nor false")


def between(least: int, most: int) -> Shape:
    """Return the shape of a whole number from ``least`` to ``most``."""

    def shape(value: Any) -> None:
        whole(value)
        if not least <= value <= most:
            raise Malformed(f"is {str(value)[:20]}, and not between {least} and {most:,}")

    return shape


def one_of(*values: str) -> Shape:
    """Return the shape of one of these texts."""

    def shape(value: Any) -> None:
        text(value)
        if value not in values:
            raise Malformed(f"is none of {', '.join(values)}")

    return shape


def or_null(inner: Shape) -> Shape:
    def shape(value: Any) -> None:
        if value is not None:
            inner(value)

    return shape


def either(*shapes: Shape) -> Shape:
    """Return the shape of a value that has one of ``shapes``; the error is the last one's."""

    def shape(value: Any) -> None:
        for alternative in shapes[:-1]:
            try:
                alternative(value)
            except Malformed:
                continue
            return
        shapes[-1](value)

    return shape


def array(inner: Shape) -> Shape:
    def shape(value: Any) -> None:
        if type(value) is not list:
            raise Malformed(f"is {kind_of(value)}, and not an array")
        for number, item in enumerate(value):
            try:
                inner(item)
            except Malformed as e:
                raise e.within(f"[{number}]") from None

    return shape


def mapping(inner: Shape) -> Shape:
    """Return the shape of an object with any names."""

    def shape(value: Any) -> None:
        if type(value) is not dict:
            raise Malformed(f"is {kind_of(value)}, and not an object")
        for name, member in value.items():
            try:
                inner(member)
            except Malformed as e:
                raise e.within(f".{name}") from None

    return shape


def an_object(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Return the shape of an object; an ``optional`` member may be null, too."""
    every = [
        *required.items(),
        *((name, or_null(inner)) for name, inner in (optional or {}).items()),
    ]

    def shape(value: Any) -> None:
        if type(value) is not dict:
            raise Malformed(f"is {kind_of(value)}, and not an object")
        for name in required:
            if name not in value:
                raise Malformed(f"has no member {name!r}")
        for name, inner in every:
            try:
                inner(value.get(name))
            except Malformed as e:
                raise e.within(f".{name}") from None

    return shape


_TEXTS = frozenset((str, type(None)))


def texts(value: Any) -> None:
    """Accept an object of texts and nulls, such as a configuration."""
    if type(value) is not dict:
        raise Malformed(f"is {kind_of(value)}, and not an object")
    if set(map(type, value.values())) <= _TEXTS:  # faster than a loop
        return
    name, invalid = next(
        (name, member) for name, member in value.items() if type(member) not in _TEXTS
    )
    raise Malformed(f"is {kind_of(invalid)}, and not a text", f".{name}")


def encodable(value: Any) -> Any:
    """Return ``value`` with ``?`` for lone surrogates, as Java writes them: UTF-8 cannot encode
    them.
    """
    try:
        encoded = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        encoded = json.dumps(value, ensure_ascii=False).encode(errors="replace")
        return json.loads(encoded)
    return value


def has_escaped_surrogate(raw: bytes) -> bool:
    """Return ``True`` if JSON may have lone surrogates, which only escapes can write."""
    return b"\\u" in raw and (b"\\ud" in raw or b"\\uD" in raw)

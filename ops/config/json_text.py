"""The only reader of JSON from outside: users' files, records of topics, answers of workers, output
of commands.

Excessive nesting, numbers that JSON does not have, and input that is not text raise ``ValueError``
like any other error, and never reach the interpreter's limits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn, cast

DEEPEST = 200
"""The levels of nesting that are read. Connect writes five; a value must be printable again."""


def read_json(text: str | bytes, **how: Any) -> Any:
    """Return the value of ``text``; ``how`` are arguments of ``json.loads``.

    Raises ``ValueError``, mostly ``json.JSONDecodeError``.
    """
    quick, refused = msgspec_json()
    try:
        found = _loads(text, how) if how or quick is None else quick(text)
    except (refused, ValueError, RecursionError):
        # Python accepts some JSON that msgspec refuses: other encodings, 1e400. Python's errors
        # have a position.
        try:
            found = _loads(text, how)
        except RecursionError as e:
            raise _too_deep() from e
    if len(text) > DEEPEST and _opened(text) > DEEPEST and _is_deep(found):
        raise _too_deep()
    return found


@cache
def msgspec_json() -> tuple[Callable[[str | bytes], Any] | None, type[Exception]]:
    """Return msgspec's decoder and its error.

    It returns the same values as ``json.loads``, in a third of the time. The decoder is None
    without msgspec.
    """
    library = _library()
    return (library.json.Decoder().decode, library.MsgspecError) if library else (None, ValueError)


def decode_together(kind: Any, texts: Sequence[bytes | None], start: bytes) -> list[Any] | None:
    """Return the values of many texts, decoded at once; None unless each text is one value of the
    type ``kind``, and without msgspec.

    ``start`` is the bracket that each text must begin with. ``kind`` must have this bracket nowhere
    but at its beginning: then a line that begins with it is the beginning of a value, so that as
    many values as lines are one value in each line.
    """
    quick, refused = _lines_decoder(kind)
    if quick is None or None in texts:
        return None
    text = b"\n".join(cast("Sequence[bytes]", texts))
    ends = len(texts) - 1
    if text.count(b"\n") != ends or text.count(b"\n" + start) != ends:
        return None
    if not text.startswith(start):
        return None
    try:
        values: list[Any] = quick(text)
    except (refused, ValueError, RecursionError):
        return None
    return values if len(values) == len(texts) else None


@cache
def _lines_decoder(kind: Any) -> tuple[Callable[[bytes], Any] | None, type[Exception]]:
    library = _library()
    if library is None:
        return None, ValueError
    return library.json.Decoder(kind).decode_lines, library.MsgspecError


@cache
def compact_encoder() -> Callable[[Any], bytes] | None:
    """Return msgspec's encoder, which writes no white space; None without msgspec.

    It raises ``ValueError`` for text that is not Unicode, and writes null for NaN and infinity.
    """
    library = _library()
    return library.json.Encoder().encode if library else None


def spaced(compact: bytes) -> str:
    """Return what ``compact_encoder`` wrote with the white space of ``json.dumps``."""
    text: bytes = _library().json.format(compact, indent=0)
    return text.decode()


@cache
def _library() -> Any:
    """Return msgspec, None if it is not installed, as in Spark executors, which read little JSON.

    It is imported late because most commands do not need it.
    """
    try:
        import msgspec
    except ImportError:
        return None
    return msgspec


def _loads(text: str | bytes, how: dict[str, Any]) -> Any:
    return json.loads(text, **{"parse_constant": _no_number, **how})


def _opened(text: str | bytes) -> int:
    return (
        text.count(b"[") + text.count(b"{")
        if isinstance(text, bytes)
        else text.count("[") + text.count("{")
    )


def _too_deep() -> json.JSONDecodeError:
    return json.JSONDecodeError(f"it is nested deeper than {DEEPEST} levels", "", 0)


def _no_number(word: str) -> NoReturn:
    raise json.JSONDecodeError(f"{word} is not a number in JSON", "", 0)


_HOLDERS = (dict, list, tuple)


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, _HOLDERS) else []
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for holder in level:
            values = holder.values() if isinstance(holder, dict) else holder
            inner += [value for value in values if isinstance(value, _HOLDERS)]
        if not inner:
            return False
        level = inner
    return True

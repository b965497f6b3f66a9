"""Reads transactional ids from a file of lines, or from the JSON output of connectctl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput

HINT = "Use one id per line, or the JSON of connectctl transactions list -o json."
_LISTS = ("results", "transactions", "hanging", "transactionalIds")


def parse_ids(text: str, source: str) -> tuple[str, ...]:
    """Return the ids in ``text`` without duplicates, in their order.

    JSON is an array of ids or of objects with a ``transactionalId``, an object with such an array,
    as ``fence`` and ``transactions list`` print it, or one such value per line. Other text has one
    id per line. Raises ``BadInput``.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    found = list(_from_json(stripped, source)) if stripped[:1] in ("[", "{", '"') else _lines(text)
    if "" in found:
        raise BadInput(f"{source}: empty transactional id")
    return tuple(dict.fromkeys(found))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()]


def _from_json(text: str, source: str) -> Iterator[str]:
    try:
        yield from _ids(read_json(text), source)
    except json.JSONDecodeError:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield from _ids(_line(line, source, number), f"{source}, line {number}")


def _line(line: str, source: str, number: int) -> Any:
    try:
        return read_json(line)
    except json.JSONDecodeError as e:
        raise BadInput(f"{source}, line {number} is invalid JSON", why=e.msg, next_step=HINT) from e


def _ids(value: Any, source: str) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _ids(item, source)
    elif isinstance(value, dict) and isinstance(value.get("transactionalId"), str):
        yield value["transactionalId"]
    elif isinstance(value, dict) and (
        name := next((n for n in _LISTS if isinstance(value.get(n), list)), None)
    ):
        yield from _ids(value[name], source)
    else:
        raise BadInput(
            f"{source} has no transactional id",
            why=f"it has {json.dumps(value)[:60]}",
            next_step=HINT,
        )

"""JSON as commands print it: a line for each member and for each item of a list, written while
items arrive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from connectctl.cli.output.sanitize import in_json
from connectctl.ops.config.json_text import compact_encoder, spaced


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return ``value`` as readable JSON that is safe for a terminal."""
    return in_json(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))


def json_lines(envelope: Mapping[str, Any]) -> Iterator[str]:
    """Yield JSON with one line per member, and one per item of a list of objects: fast to write,
    easy to diff.
    """
    encode = _encode
    yield "{\n"
    last = len(envelope) - 1
    for n, (name, value) in enumerate(envelope.items()):
        end = ",\n" if n < last else "\n"
        if isinstance(value, Each) or (
            isinstance(value, list) and value and isinstance(value[0], dict)
        ):
            yield f"  {encode(name)}: [\n"
            yield from _items(value, encode)
            yield f"  ]{end}"
        else:
            yield f"  {encode(name)}: {encode(value)}{end}"
    yield "}\n"


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _encode(value: Any) -> str:
    return in_json(_encoder(value))


def _encode_of_many(value: Any) -> str:
    """Return the JSON of one of many items. Numbers of these are numbers of JSON."""
    quick = compact_encoder()
    try:
        return in_json(spaced(quick(value))) if quick else _encode(value)
    except ValueError:  # lone surrogates
        return _encode(value)


class Each(list[Any]):
    """A list whose items are created when written: one at a time is in memory. Only for
    ``json_lines``.
    """

    def __init__(self, items: Collection[Any], make: Callable[[Any], Any]) -> None:
        super().__init__()
        self._given, self._make = items, make

    def __len__(self) -> int:
        return len(self._given)

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, self._given)


def _items(items: list[Any], encode: Callable[[Any], str]) -> Iterator[str]:
    end = ""
    for item in items:
        listed = next((k for k, v in item.items() if isinstance(v, list) and len(v) > 1), None)
        if listed is None:
            yield f"{end}    {encode(item)}"
        else:
            head = encode({k: v for k, v in item.items() if k != listed})
            start = f"{head[:-1]}, " if len(item) > 1 else "{"
            yield f"{end}    {start}{encode(listed)}: [\n"
            inner = ""
            parts = item[listed]
            encode_part = _encode_of_many if isinstance(parts, Each) else encode
            for part in parts:
                yield f"{inner}      {encode_part(part)}"
                inner = ",\n"
            yield "\n    ]}"
        end = ",\n"
    yield "\n"

"""The sequence number and the source partition of a record: a JSON path in value or key, a header,
or the key itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from math import isfinite
from typing import Any

from connectctl.ops.core.errors import BadInput

_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\[(?:'([^']*)'|\"([^\"]*)\")\]")
_DIGITS = re.compile(r"-?\d{1,19}")
_LARGEST = 1 << 63
FORMS = "Use '$.field' (in the value), 'key:$.field', 'header:NAME' or 'text:REGEX'"


class RecordPart(StrEnum):
    VALUE = "value"
    KEY = "key"
    HEADER = "header"
    TEXT = "text"
    PARTITION = "partition"
    RAW_KEY = "raw key"
    ALL = "all"


@dataclass(frozen=True)
class Spec:
    """A part of a record, and the path within its JSON; ``name`` is that of a header, or a regular
    expression whose first group is used, in a value that is text.

    The path of a value that ``JsonConverter`` wrote (``{"schema":…,"payload":…}``) begins in its
    payload.
    """

    part: RecordPart
    path: tuple[str | int, ...] = ()
    name: str = ""
    text: str = ""

    @property
    def label(self) -> str:
        """Return its name in results: the last name of the path, else the part."""
        names = [step for step in self.path if isinstance(step, str)]
        return (self.name if self.part is not RecordPart.TEXT else "text") or (
            names[-1]
            if names
            else {"raw key": "key", "partition": "kafkaPartition"}.get(self.part, self.part)
        )


BY_KEY = Spec(RecordPart.RAW_KEY, text="the record key")
BY_PARTITION = Spec(RecordPart.PARTITION, text="partition")


def sequence_spec(text: str) -> Spec:
    """Return the part that ``--sequence`` names. Raises ``BadInput``."""
    return _spec(text, "--sequence")


def by_spec(text: str) -> Spec:
    """Return the part that ``--by`` names: the same forms, or ``partition``, or ``key``. Raises
    ``BadInput``.
    """
    if text == "partition":
        return BY_PARTITION
    if text == "key":
        return BY_KEY
    return _spec(text, "--by")


def _spec(text: str, option: str) -> Spec:
    head, colon, rest = text.partition(":")
    if colon and head == "header":
        if not rest:
            raise BadInput(f"{option} {text}: missing header name", next_step=f"{FORMS}.")
        return Spec(RecordPart.HEADER, name=rest, text=text)
    if colon and head == "text":
        return Spec(RecordPart.TEXT, name=_pattern(rest, f"{option} {text}"), text=text)
    part = RecordPart.VALUE
    if colon and head in ("key", "value"):
        part, text_of_path = RecordPart(head), rest
    else:
        text_of_path = text
    return Spec(part, parse_path(text_of_path, option), text=text)


def _pattern(text: str, label: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as e:
        raise BadInput(f"{label} is not a regular expression", why=str(e)) from e
    if groups != 1:
        raise BadInput(
            f"{label} has {groups} groups instead of one",
            next_step="Enclose the number in one group: (…).",
        )
    return text


def matched(raw: bytes | None, pattern: str) -> str | None:
    """Return the group of ``pattern`` in its first match in a value that is text, or text as JSON;
    None if there is no match.
    """
    if raw is None:
        return None
    text = raw.decode("utf-8", "replace")
    if text[:1] in ('"', "{"):
        data = found_in(raw, ())
        text = data if isinstance(data, str) else text
    found = re.search(pattern, text)
    group: str | None = found[1] if found else None
    return group


def parse_path(text: str, option: str = "--sequence") -> tuple[str | int, ...]:
    """Return the steps of a JSON path: names, and numbers for items of lists. Raises ``BadInput``."""
    if not text.startswith("$"):
        raise BadInput(
            f"{option} {text} is not a JSON path",
            why="it does not begin with $",
            next_step=f"{FORMS}.",
        )
    at, steps = 1, list[str | int]()
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            why = f"{text[at:]!r} is not .name, [number] or ['name']"
            raise BadInput(f"{option} {text} is not a JSON path", why=why, next_step=f"{FORMS}.")
        name, item, single, double = found.groups()
        steps.append(
            int(item)
            if item is not None
            else next(n for n in (name, single, double) if n is not None)
        )
        at = found.end()
    return tuple(steps)


def follow(data: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(step, str):
            data = data.get(step) if isinstance(data, dict) else None
        else:
            data = data[step] if isinstance(data, list) and step < len(data) else None
    return data


def unwrapped(data: Any) -> Any:
    """Return ``data`` without what ``JsonConverter`` puts around it when schemas are enabled."""
    return (
        data["payload"] if isinstance(data, dict) and data.keys() == {"schema", "payload"} else data
    )


def found_in(raw: bytes | str | None, path: tuple[str | int, ...]) -> Any:
    """Return the element at ``path`` of the JSON ``raw``; None if it is not JSON or has no such
    element.

    JSON within a string, as a string converter under a JSON one writes it, is parsed, too.
    """
    if raw is None:
        return None
    try:
        data = unwrapped(json.loads(raw))
        if path and isinstance(data, str):
            data = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return follow(data, path)


def number_of(value: Any) -> int | None:
    """Return ``value`` as a sequence number: a whole number of 64 bits, or the digits of one; else
    None.
    """
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("utf-8", "replace")
        value = int(text) if _DIGITS.fullmatch(text) else None
    if isinstance(value, float | Decimal):
        value = int(value) if isfinite(value) and value == int(value) else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_LARGEST <= value < _LARGEST else None


def text_of(value: Any) -> str | None:
    """Return ``value`` as the name of a source partition; None for nothing."""
    if value is None:
        return None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "0x" + value.hex()
    if isinstance(value, bool | int | float | dict | list):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return str(value)

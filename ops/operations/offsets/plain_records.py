"""Source partitions without findings, recognized by their bytes alone.

To parse a key and an offset, to look at them and to write them again takes Python some 20 µs. What Connect's converter
writes of simple members can be told by one regular expression for each order of member names, and then be copied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from connectctl.ops.connect.source_keys import SourceKey, in_hash_order, parse_key
from connectctl.ops.kafka.aligned_blocks import are_single, column
from connectctl.ops.kafka.partitioner import partitions_of
from connectctl.ops.kafka.records import GROUP, KEY, PARTITION, TIMESTAMP, VALUE, Row

MOST_SHAPES = 64
"""Orders of member names that are told apart; to compile an expression takes as long as to parse some twenty keys."""
_TEXT = rb'"(?!:)[ !#-\[\]-~]*(?<!,)"'
"""Printable ASCII without escapes. As none begins with a colon or ends with a comma, ``":`` and ``,"`` are not in them."""
_VALUE = rb"(?:" + _TEXT + rb"|0|-?[1-9][0-9]{0,14}|[1-8][0-9]{15}|true|false|null)"
"""What has one spelling and means the same to every reader: whole numbers below 2^53, no fractions."""
_NAME, _NAMES = re.compile(_TEXT), re.compile(rb'"([^"]*)":')
_NEVER = re.compile(rb"(?!)")
_OWNER = re.compile(rb"[ !#-\[\]-~]*")


class PlainRows(NamedTuple):
    """Plain source partitions of one connector that follow each other."""

    connector: str
    rows: list[Row]


def spaced(text: str) -> str:
    """A plain object, or a plain key, as Python's ``json`` writes it."""
    return text.replace('":', '": ').replace(',"', ', "')


def _all_match(pattern: re.Pattern[bytes], raws: Sequence[bytes | None], head: bytes = b"", tail: bytes = b"") -> bool:
    """Whether ``pattern``, which matches no line's end, matches all of ``raws`` between ``head`` and ``tail``."""
    try:
        text = b"\n".join(raws)  # type: ignore[arg-type]  # None is caught below
    except TypeError:
        return False
    # A line's end in one of them would make more lines than there are.
    return (
        text.count(b"\n") == len(raws) - 1
        and _lines_of(pattern.pattern, head, tail).fullmatch(text + b"\n") is not None
    )


@lru_cache(maxsize=MOST_SHAPES)
def _lines_of(pattern: bytes, head: bytes, tail: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?:" + re.escape(head) + pattern + re.escape(tail) + rb"\n)*+")


class Shapes:
    """Whether JSON objects are plain: of simple members under different names, spelled as Connect spells them."""

    def __init__(self) -> None:
        self._by_names: dict[tuple[bytes, ...], re.Pattern[bytes] | None] = {}
        self._last = _NEVER

    def have(self, raw: bytes) -> bool:
        """Whether ``raw`` is such an object."""
        if self._last.fullmatch(raw):
            return True
        found = self.shape_of(raw, 0, len(raw))
        if found is not None:
            self._last = found[1]
        return found is not None

    def have_all(self, raws: Sequence[bytes | None]) -> bool:
        """Whether all of ``raws`` are such objects."""
        if raws and raws[0] is not None and self.have(raws[0]) and _all_match(self._last, raws):
            return True
        return all(raw is not None and self.have(raw) for raw in raws)

    def shape_of(self, raw: bytes, start: int, end: int) -> tuple[tuple[str, ...], re.Pattern[bytes]] | None:
        """The names of the object in ``raw[start:end]``, and what objects of these names match; None: it is not plain."""
        names = tuple(_NAMES.findall(raw, start, end))
        if names not in self._by_names:
            if len(self._by_names) >= MOST_SHAPES:
                return None
            simple = len(set(names)) == len(names) and all(_NAME.fullmatch(b'"%s"' % name) for name in names)
            members = rb",".join(b'"%s":%s' % (re.escape(name), _VALUE) for name in names)
            self._by_names[names] = re.compile(rb"\{" + members + rb"\}") if simple else None
        pattern = self._by_names[names]
        if pattern is None or not pattern.fullmatch(raw, start, end):
            return None
        return tuple(name.decode() for name in names), pattern


class KeyOwners:
    """Whose key it is: of many that are plain and follow each other the first one is parsed."""

    def __init__(self) -> None:
        self._shapes, self._key = Shapes(), _NEVER
        self._head, self._name = b"", ""

    def of(self, raw: bytes | None) -> str | None:
        """The connector's name, None for a key that is not Connect's."""
        quick = raw is not None and raw.startswith(self._head) and raw.endswith(b"]")
        if raw is not None and quick and self._key.fullmatch(raw, len(self._head), len(raw) - 1):
            return self._name
        key = parse_key(raw)
        if raw is None or not isinstance(key, SourceKey):
            return None
        self._name, self._head = key.connector, f'["{key.connector}",'.encode(errors="surrogatepass")
        shape = None
        if _OWNER.fullmatch(self._head[2:-2]) and raw.startswith(self._head):
            shape = self._shapes.shape_of(raw, len(self._head), len(raw) - 1)
        self._key = shape[1] if shape else _NEVER
        return self._name

    def is_of_all(self, raws: Sequence[bytes | None], connector: str) -> bool:
        """Whether all keys are the connector's."""
        if raws and self.of(raws[0]) == connector and _all_match(self._key, raws, self._head, b"]"):
            return True
        return all(self.of(raw) == connector for raw in raws)


class Plain:
    """Looks at rows of a global topic of ``partitions`` partitions for connectors that have no other (``alone``).

    ``orders`` are by connector the orders in which the members of its keys came, by their names.
    """

    def __init__(self, partitions: int, alone: Callable[[str], bool]) -> None:
        self._partitions, self._alone = partitions, alone
        self._keys, self._values = Shapes(), Shapes()
        self.orders: dict[str, dict[frozenset[str], tuple[str, ...]]] = {}
        self._owner, self._head, self._name = b"", b"", ""
        self._key = _NEVER

    def tell(self, rows: Sequence[Row]) -> list[bool]:
        """Of each row whether it is plain: all that there is of its key, and where Java's partitioner puts it."""
        raws = column(rows, KEY)
        homes = partitions_of(raws, self._partitions)
        if self._are_all(rows, raws, homes):
            return [True] * len(rows)
        seen = Counter(raws) if len(set(raws)) < len(raws) else {}
        found = []
        for (owner, raw, _, partition, _, timestamp, value), home in zip(rows, homes, strict=True):
            if owner != self._owner:
                self._turn_to(owner)
            found.append(
                partition == home
                and timestamp is not None
                and value is not None
                and raw.startswith(self._head)
                and raw.endswith(b"]")
                and (self._key.fullmatch(raw, len(self._head), len(raw) - 1) is not None or self._other_key(raw))
                and self._values.have(value)
                and seen.get(raw, 1) == 1
            )
        return found

    def _are_all(self, rows: Sequence[Row], raws: Sequence[bytes], homes: list[int]) -> bool:
        """Whether all are plain: looked at together, where they are of one connector."""
        if column(rows, PARTITION) != homes or rows[0][GROUP] != rows[-1][GROUP] or not are_single(rows):
            return False
        if rows[0][GROUP] != self._owner:
            self._turn_to(rows[0][GROUP])
        return (
            None not in column(rows, TIMESTAMP)
            and _all_match(self._key, raws, self._head, b"]")
            and self._values.have_all(column(rows, VALUE))
        )

    def _turn_to(self, owner: bytes) -> None:
        self._owner, self._key = owner, _NEVER
        self._head, self._name = b'["%s",' % owner, owner.decode(errors="surrogatepass")
        if not _OWNER.fullmatch(owner) or not self._alone(self._name):
            self._head = b"\0"  # with which no JSON begins

    def _other_key(self, raw: bytes) -> bool:
        found = self._keys.shape_of(raw, len(self._head), len(raw) - 1)
        if found is None:
            return False
        names, pattern = found
        if self.orders.setdefault(self._name, {}).setdefault(frozenset(names), names) != names:
            return False  # it may be a second spelling of another key
        if len(names) > 1 and not in_hash_order(names):
            return False  # OFFSETS019
        self._key = pattern
        return True

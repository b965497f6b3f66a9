"""The shape of source offsets, learned from those that a connector has stored itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from connectctl.ops.connect.source_keys import connect_json

Pair = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
"""A source partition and its offset; None for one without an offset."""
Names = frozenset[str] | None
"""The members of a source partition; None for the null partition."""
LONGEST = 60
"""The number of characters of a string that a message quotes."""


class Kind(StrEnum):
    """A JSON type. Java has separate types for whole and floating-point numbers, and casts between
    them fail.
    """

    NULL = "null"
    BOOLEAN = "a boolean"
    INTEGER = "an integer"
    FLOATING = "a floating-point number"
    STRING = "a string"


def kind_of(value: Any) -> Kind:
    """Return the JSON type of a primitive value."""
    if value is None:
        return Kind.NULL
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, int):
        return Kind.INTEGER
    return Kind.FLOATING if isinstance(value, float) else Kind.STRING


def described(value: Any) -> str:
    """Return ``value`` with its type, for messages."""
    if value is None:
        return "null"
    text = connect_json(value)
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return f"the {kind_of(value).split(' ', 1)[1]} {shown}"


def members_of(names: Iterable[str]) -> str:
    """Return the names of members for messages."""
    return ", ".join(names) or "no members"


@dataclass
class Shape:
    """The shape of offsets whose source partitions have the same members: the types and the number
    of each member.
    """

    partition: dict[str, set[Kind]] = field(default_factory=dict)
    offset: dict[str, set[Kind]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def learn(self, partition: Mapping[str, Any] | None, offset: Mapping[str, Any]) -> None:
        """Add a stored offset."""
        self.number += 1
        for name, value in (partition or {}).items():
            self.partition.setdefault(name, set()).add(kind_of(value))
        for name, value in offset.items():
            self.offset.setdefault(name, set()).add(kind_of(value))
            self.counts[name] = self.counts.get(name, 0) + 1

    def problems(
        self, partition: Mapping[str, Any] | None, offset: Mapping[str, Any]
    ) -> Iterator[str]:
        """Yield the differences between an offset and the stored ones."""
        for name, value in (partition or {}).items():
            if not _fits(value, self.partition[name]):
                yield _unlike(name, value, self.partition[name])
        required = [name for name, count in self.counts.items() if count == self.number]
        if missing := [name for name in required if name not in offset]:
            yield f"the offset has no {members_of(missing)}, and each stored offset has"
        if additional := [name for name in offset if name not in self.offset]:
            yield (
                f"the offset has {members_of(additional)}, and the stored offsets have "
                f"{members_of(self.offset)}"
            )
        for name, value in offset.items():
            optional = value is None and name not in required
            if name in self.offset and not optional and not _fits(value, self.offset[name]):
                yield _unlike(name, value, self.offset[name])


def _fits(value: Any, kinds: set[Kind]) -> bool:
    """Return whether a member of these types may be ``value``; a member that is always null may
    have any type.
    """
    return kind_of(value) in kinds or kinds == {Kind.NULL}


def _unlike(name: str, value: Any, kinds: set[Kind]) -> str:
    return f"{name} is {described(value)}, and the stored ones have {' or '.join(sorted(kinds))}"


@dataclass(frozen=True)
class Shapes:
    """The shapes of a connector's offsets by the members of their source partitions. Empty if none
    is stored.
    """

    by_names: Mapping[Names, Shape]

    def __bool__(self) -> bool:
        return bool(self.by_names)

    @classmethod
    def of(cls, stored: Iterable[Pair]) -> Shapes:
        """Return the shapes of the ``stored`` offsets."""
        found: dict[Names, Shape] = {}
        for partition, offset in stored:
            if offset is not None:
                found.setdefault(_names(partition), Shape()).learn(partition, offset)
        return cls(found)

    def problems(
        self, partition: Mapping[str, Any] | None, offset: Mapping[str, Any]
    ) -> Iterator[str]:
        """Yield the reasons why an offset is unlike all stored ones; none without stored ones."""
        shape = self.by_names.get(_names(partition))
        if shape is not None:
            yield from shape.problems(partition, offset)
        elif self.by_names:
            members = "null" if partition is None else members_of(partition)
            stored = " or ".join(
                sorted("null" if s is None else members_of(sorted(s)) for s in self.by_names)
            )
            yield (
                f"the members of the partition are {members}, and those of the stored ones {stored}"
            )


def _names(partition: Mapping[str, Any] | None) -> Names:
    return None if partition is None else frozenset(partition)

"""What a person may want done to source offsets, as values that go into a plan and come back from it.

A wish holds no offsets that can change meanwhile: what it comes to is decided when it is carried out, and again when an
interrupted run is taken up. So carrying it out twice is carrying it out once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.step import to_data as to_json


class Side(StrEnum):
    """One of the two places where offsets of a connector may be."""

    GLOBAL = "global"
    DEDICATED = "dedicated"


class Policy(StrEnum):
    """Which side wins where both have something to say of a source partition.

    ``effective`` is KIP-618's precedence: the dedicated topic, and the global one where the dedicated has no offset, a
    tombstone being none. With the others a tombstone is a statement, too: the newest record, or that side's.
    """

    EFFECTIVE = "effective"
    NEWEST = "newest"
    GLOBAL = "global"
    DEDICATED = "dedicated"


@dataclass(frozen=True)
class Merge:
    """Bring a connector's offsets together in one of its topics. ``chosen``: the person named the policy."""

    connector: str
    into: str
    policy: str = Policy.EFFECTIVE.value
    chosen: bool = False
    dedicated_topic: str | None = None


@dataclass(frozen=True)
class Copy:
    """Give ``connector`` the effective offsets of another, ``entries`` being its raw keys and values as text."""

    connector: str
    source: str
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Put:
    """Set source partitions of ``connector``: ``entries`` are JSON texts of partition and offset, ``null`` to delete."""

    connector: str
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Reset:
    """Delete source offsets of ``connector``: those of ``partitions`` (JSON texts), or all."""

    connector: str
    partitions: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Restore:
    """Make ``connector``'s records what they are in a backup: ``file`` is relative to the run ``run``, or absolute.

    ``properties`` of its configuration go back, too: names, and values or None for none.
    """

    connector: str
    file: str
    run: str | None = None
    properties: tuple[tuple[str, str | None], ...] = ()


Wish = Merge | Copy | Put | Reset | Restore
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Merge, Copy, Put, Reset, Restore)}


def to_data(wish: Wish) -> dict[str, Any]:
    """``wish`` as plain JSON values."""
    return {"wish": type(wish).__name__, **to_json(wish)}


def from_data(data: dict[str, Any]) -> Wish:
    """The wish that ``to_data`` made ``data`` of. Raises ``BadInput``."""
    values = {name: _frozen(value) for name, value in data.items() if name != "wish"}
    try:
        wish: Wish = _KINDS[data["wish"]](**values)
    except (KeyError, TypeError) as e:
        raise BadInput("The plan holds a wish that this version does not know", why=str(e)) from e
    return wish


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value

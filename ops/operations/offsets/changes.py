"""Requested changes of source offsets, which are stored in plans.

The records to write are decided when a request is executed, and again when an interrupted run is
resumed. Therefore a request is idempotent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.step import from_data as from_json
from connectctl.ops.core.step import to_data as to_json


class MergePolicy(StrEnum):
    """The topic that takes precedence if both have a record of a source partition.

    ``effective`` is KIP-618's precedence: the dedicated topic, or the global one if the dedicated
    has no offset or a tombstone, or if the connector's tasks commit to the global one and have done
    so since. The other policies treat a tombstone like any other record.
    """

    EFFECTIVE = "effective"
    NEWEST = "newest"
    GLOBAL = "global"
    DEDICATED = "dedicated"


Ends = tuple[tuple[str | None, str, tuple[int, ...]], ...]
"""The end offsets of topics: bootstrap servers (None for the workers' own cluster), name, and the
offset of each partition.
"""


@dataclass(frozen=True)
class MergeOffsets:
    """Merge a connector's offsets into one of its topics. ``chosen``: the user selected the policy.

    ``running``: its tasks ran when the plan was made; offsets that they commit until they are
    stopped are merged as well.
    """

    connector: str
    into: str
    policy: str = MergePolicy.EFFECTIVE.value
    chosen: bool = False
    dedicated_topic: str | None = None
    running: bool = False


@dataclass(frozen=True)
class CopyOffsets:
    """Copy the effective offsets of another connector; ``entries`` are its raw keys and values as
    text.

    ``context`` is the context of the cluster of ``source``, None for this one. ``force``, here and
    in other requests: offsets that the connector would refuse are written as well.
    """

    connector: str
    source: str
    entries: tuple[tuple[str, str], ...]
    context: str | None = None
    force: bool = False


@dataclass(frozen=True)
class SetOffsets:
    """Set source partitions of ``connector``: ``entries`` are JSON texts of partition and offset,
    ``null`` to delete.
    """

    connector: str
    entries: tuple[tuple[str, str], ...]
    force: bool = False


@dataclass(frozen=True)
class ResetOffsets:
    """Delete source offsets of ``connector``: those of ``partitions`` (JSON texts), or all."""

    connector: str
    partitions: tuple[str, ...] | None = None


@dataclass(frozen=True)
class RestoreBackup:
    """Restore ``connector``'s records from a backup; ``file`` is relative to the run ``run``, or
    absolute.

    ``properties`` of its configuration are restored as well: names, and values or None to remove.
    ``since`` are the end offsets of the topics after the writes of the run; later records were
    committed after it. ``keeps``: the restore keeps such offsets; otherwise it is refused because
    of them.
    """

    connector: str
    file: str
    run: str | None = None
    properties: tuple[tuple[str, str | None], ...] = ()
    since: Ends = ()
    keeps: bool = False
    force: bool = False


OffsetRequest = MergeOffsets | CopyOffsets | SetOffsets | ResetOffsets | RestoreBackup
_KINDS: dict[str, type[Any]] = {
    "merge": MergeOffsets,
    "copy": CopyOffsets,
    "set": SetOffsets,
    "reset": ResetOffsets,
    "restore": RestoreBackup,
}
"""Kinds by their name in plans."""
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_data(request: OffsetRequest) -> dict[str, Any]:
    return {"kind": _NAMES[type(request)], **to_json(request)}


def from_data(data: dict[str, Any]) -> OffsetRequest:
    """Return the request that ``to_data`` wrote as ``data``. Raises ``BadInput``."""
    values = {name: value for name, value in data.items() if name != "kind"}
    try:
        request: OffsetRequest = from_json(_KINDS[data["kind"]], values, {})
    except (KeyError, TypeError, ValueError) as e:
        raise BadInput(
            "The plan has an offset change that this version does not know", why=str(e)
        ) from e
    return request

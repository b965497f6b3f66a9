"""The fates of source offsets in a change, as plans report them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connectctl.ops.connect.partition_fields import SourcePartition

FRAMEWORK = (
    *(
        "name",
        "connector.class",
        "connector.plugin.version",
        "tasks.max",
        "config.action.reload",
        "exactly.once.support",
    ),
    *(
        "key.converter",
        "value.converter",
        "header.converter",
        "transforms",
        "predicates",
        "errors.",
        "topic.creation.",
    ),
    *(
        "producer.override.",
        "consumer.override.",
        "admin.override.",
        "transaction.boundary",
        "offsets.storage.topic",
    ),
)
"""Prefixes of the properties that the framework reads, which are in no source partition
(``ConnectorConfig``, ``SourceConnectorConfig``).
"""

NEW = "it has no offset"
"""The reason why a source partition is begun anew, unless its offset is not used."""


class Fate(StrEnum):
    """The fate of a source partition.

    ``RESUMED``: it was not read before, and has an older offset. ``LEFT``: it is read neither
    before nor after the change.
    """

    KEPT = "kept"
    RESUMED = "resumed"
    ORPHANED = "orphaned"
    LEFT = "left"
    BEGUN = "begun anew"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PartitionFate:
    """The fate of one source partition, with the reason.

    ``carry_to`` is the source partition that the new configuration reads instead, if it is known. A
    source partition that is not ``whole`` stands for all with its fields.
    """

    partition: SourcePartition
    fate: Fate
    why: str
    carry_to: SourcePartition | None = None
    whole: bool = True


@dataclass(frozen=True)
class OffsetOutlook:
    """The effect of a change on the offsets. ``source`` is the origin of the rule: a page, or the
    stored offsets.

    ``may_begin`` names data that only the source knows. ``inherited`` are changed properties by
    which other data are read from the offsets that are kept.
    """

    fates: tuple[PartitionFate, ...]
    source: str
    may_begin: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()

    def of(self, *fates: Fate) -> list[PartitionFate]:
        return [partition_fate for partition_fate in self.fates if partition_fate.fate in fates]


def with_moved(
    fates: Sequence[PartitionFate], begun: Sequence[PartitionFate]
) -> tuple[PartitionFate, ...]:
    """Return all fates, with a new source partition for each one that moved, unless it has an
    offset already.
    """
    known = {_key(fate.partition) for fate in fates}
    moved = [
        PartitionFate(fate.carry_to, Fate.BEGUN, NEW)
        for fate in fates
        if fate.carry_to is not None and _key(fate.carry_to) not in known
    ]
    others = [
        fate
        for fate in begun
        if not any(fate.partition.items() <= moved_fate.partition.items() for moved_fate in moved)
    ]
    return (*fates, *moved, *others)


def rewritten(partition: SourcePartition, changed: Mapping[str, Any]) -> SourcePartition | None:
    """Return ``partition`` with the fields in ``changed``; None without changes, or if a changed
    value is unknown.
    """
    return None if not changed or None in changed.values() else {**partition, **changed}


def _key(partition: SourcePartition) -> str:
    return json.dumps(partition, sort_keys=True)

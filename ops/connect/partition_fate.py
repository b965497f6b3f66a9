"""What becomes of source offsets: the words that plans say it with."""

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
    *("key.converter", "value.converter", "header.converter", "transforms", "predicates", "errors.", "topic.creation."),
    *("producer.override.", "consumer.override.", "admin.override.", "transaction.boundary", "offsets.storage.topic"),
)
"""Beginnings of the properties that the framework reads, which are in no source partition (``ConnectorConfig``,
``SourceConnectorConfig``)."""

NEW = "it has no offset"
"""Why something is begun anew, other than that its offset is not used."""


class Fate(StrEnum):
    """What becomes of a source partition. ``RESUMED``: it was not read before, and an older offset of it is there.
    ``LEFT``: it was not read before, and is not read afterwards.
    """

    KEPT = "kept"
    RESUMED = "resumed"
    ORPHANED = "orphaned"
    LEFT = "left"
    BEGUN = "begun anew"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PartitionFate:
    """One source partition, with why. ``carry_to`` is the one that the new configuration reads in its place, if that is
    known. One that is not ``whole`` stands for all that have its fields.
    """

    partition: SourcePartition
    fate: Fate
    why: str
    carry_to: SourcePartition | None = None
    whole: bool = True


@dataclass(frozen=True)
class OffsetOutlook:
    """What a change does to the offsets. ``source`` says where the rule is from: a page, or that it was learned.

    ``may_begin`` names what only the source knows. ``inherited`` are properties whose change means that something else is
    read from the offsets that stay.
    """

    fates: tuple[PartitionFate, ...]
    source: str
    may_begin: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()

    def of(self, *fates: Fate) -> list[PartitionFate]:
        return [each for each in self.fates if each.fate in fates]


def with_moved(seen: Sequence[PartitionFate], begun: Sequence[PartitionFate]) -> tuple[PartitionFate, ...]:
    """All of them. What has moved to another source partition is begun anew there, unless an offset of that is there."""
    there = {_key(each.partition) for each in seen}
    moved = [
        PartitionFate(each.carry_to, Fate.BEGUN, NEW)
        for each in seen
        if each.carry_to is not None and _key(each.carry_to) not in there
    ]
    more = [each for each in begun if not any(each.partition.items() <= other.partition.items() for other in moved)]
    return (*seen, *moved, *more)


def rewritten(partition: SourcePartition, changed: Mapping[str, Any]) -> SourcePartition | None:
    """``partition`` with the fields in ``changed``; None where nothing is changed, or to something unknown."""
    return None if not changed or None in changed.values() else {**partition, **changed}


def _key(partition: SourcePartition) -> str:
    return json.dumps(partition, sort_keys=True)

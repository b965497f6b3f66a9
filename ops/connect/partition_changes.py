"""What a change of a configuration does to a connector's source offsets: which are kept, and which nobody reads any more.

By the rules of its class (``partition_rules``). A class without rules is learned: where a field of all its source partitions
has the value of a property, it follows that property. What neither tells is unknown, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connectctl.ops.connect.partition_rules import (
    Config,
    FieldRule,
    PartitionRule,
    SourcePartition,
    entries,
    exactly,
    rules_of,
)

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


class Fate(StrEnum):
    """What becomes of a source offset. ``LEFT``: its source partition was not read before, and is not read afterwards."""

    KEPT = "kept"
    ORPHANED = "orphaned"
    LEFT = "left"
    BEGUN = "begun anew"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PartitionFate:
    """One source partition, with why. ``carry_to`` is the one that the new configuration reads in its place, if that is
    known.
    """

    partition: SourcePartition
    fate: Fate
    why: str
    carry_to: SourcePartition | None = None


@dataclass(frozen=True)
class OffsetOutlook:
    """What a change does to the offsets. ``source`` says where the rule is from: a page, or that it was learned."""

    fates: tuple[PartitionFate, ...]
    source: str

    def of(self, *fates: Fate) -> list[PartitionFate]:
        """Those that fare so."""
        return [each for each in self.fates if each.fate in fates]


def outlook(
    old: Config | None, new: Config, offsets: Sequence[tuple[SourcePartition, Mapping[str, Any] | None]]
) -> OffsetOutlook:
    """What becomes of ``offsets``, pairs of source partition and source offset, where ``new`` replaces ``old``; None where
    a connector of that name is created.
    """
    rules = rules_of(new.get("connector.class", ""))
    if not rules:
        return _learned(old, new, [partition for partition, _ in offsets])
    seen = [_by_rules(rules, old, new, partition, offset) for partition, offset in offsets]
    there = [dict(partition) for partition, _ in offsets]
    taken = [dict(each.carry_to) for each in seen if each.carry_to is not None]
    begun = [
        PartitionFate(each, Fate.BEGUN, "no offset is there for it")
        for each in _expected(rules, new)
        if each not in there and each not in taken
    ]
    return OffsetOutlook((*seen, *begun), rules[0].source)


def shared(new: Config, others: Mapping[str, Config]) -> list[str]:
    """Connectors of ``others`` that read the same source partitions as ``new``, by the rules of their class."""
    return sorted(name for name, config in others.items() if _overlap(new, config))


def _overlap(one: Config, other: Config) -> bool:
    rules = rules_of(one.get("connector.class", ""))
    return any(
        rule in rules_of(other.get("connector.class", "")) and all(_same(field, one, other) for field in rule.fields)
        for rule in rules
    )


def _same(field: FieldRule, one: Config, other: Config) -> bool:
    value = field.value(one)
    if value is not None:
        return value == field.value(other)
    learned = [one.get(key, "") for key in field.keys]
    return any(learned) and learned == [other.get(key, "") for key in field.keys]


def _by_rules(
    rules: Sequence[PartitionRule],
    old: Config | None,
    new: Config,
    partition: SourcePartition,
    offset: Mapping[str, Any] | None,
) -> PartitionFate:
    rule = next((each for each in rules if _fits(each, partition)), None)
    if rule is None:
        return PartitionFate(partition, Fate.UNKNOWN, "its form is not one that this class is known to write")
    if (problem := _not_read(rule, new, partition, offset)) is None:
        return PartitionFate(partition, Fate.KEPT, "it is read as before" if old is not None else "it is resumed from")
    if old is None or _not_read(rule, old, partition, offset) is not None:
        return PartitionFate(partition, Fate.LEFT, problem)
    return PartitionFate(partition, Fate.ORPHANED, problem, _rewritten(rule.fields, new, partition))


def _fits(rule: PartitionRule, partition: SourcePartition) -> bool:
    names = {field.name for field in rule.fields}
    return names <= partition.keys() and (rule.only is None or rule.only <= partition.keys())


def _not_read(
    rule: PartitionRule, config: Config, partition: SourcePartition, offset: Mapping[str, Any] | None
) -> str | None:
    """Why a task of ``config`` does not use it; None where it does."""
    for field in rule.fields:
        if not field.reads(config, partition[field.name]):
            return f"{field.name} {partition[field.name]} is not in {_keys(field, config)}"
    wanted = rule.offset_fields(config)
    if wanted is not None and offset is not None and not wanted & offset.keys():
        return f"with {rule.offset_keys[0]} {config.get(rule.offset_keys[0], '')} its offset {dict(offset)} is not used"
    return None


def _keys(field: FieldRule, config: Config) -> str:
    return (
        ", ".join(f"{key} {config[key]}" for key in field.keys if config.get(key))
        or f"{field.keys[0]}, which is not set"
    )


def _rewritten(fields: Sequence[FieldRule], new: Config, partition: SourcePartition) -> SourcePartition | None:
    changed = {each.name: each.value(new) for each in fields if not each.reads(new, partition[each.name])}
    return None if not changed or None in changed.values() else {**partition, **changed}


def _expected(rules: Sequence[PartitionRule], config: Config) -> Iterator[dict[str, Any]]:
    """Source partitions that are known whole from the configuration."""
    for rule in rules:
        values = {each.name: each.value(config) for each in rule.fields}
        if None not in values.values():
            yield values


# ---------------------------------------------------------------------------------- learned from the offsets there are


def _learned(old: Config | None, new: Config, partitions: Sequence[SourcePartition]) -> OffsetOutlook:
    changed = {key for key in {*(old or {}), *new} if (old or {}).get(key) != new.get(key)}
    own = sorted(key for key in changed if not key.startswith(FRAMEWORK))
    follows = {field: keys for field, keys in _follows(old or {}, partitions).items() if set(keys) & changed}
    source = "learned from the offsets that are there"
    if old is None:
        fates = [PartitionFate(each, Fate.UNKNOWN, "nothing is known of this class") for each in partitions]
    elif "connector.class" in changed:
        fates = [PartitionFate(each, Fate.UNKNOWN, "the connector's class changes") for each in partitions]
    elif not own:
        fates = [PartitionFate(each, Fate.KEPT, "no property of the connector's own changes") for each in partitions]
    else:
        fates = [_by_follows(each, follows, own, new) for each in partitions]
    return OffsetOutlook(tuple(fates), source)


def _follows(config: Config, partitions: Sequence[SourcePartition]) -> dict[str, list[str]]:
    """The properties that have, alone or in a list, every value of a field of the partitions."""
    fields = set.intersection(*(set(each) for each in partitions)) if partitions else set()
    found = {}
    for field in sorted(fields):
        values = {str(each[field]) for each in partitions}
        keys = [k for k, v in config.items() if not k.startswith(FRAMEWORK) and values <= {v.strip(), *entries(v)}]
        if keys:
            found[field] = keys
    return found


def _by_follows(
    partition: SourcePartition, follows: Mapping[str, list[str]], changed: Sequence[str], new: Config
) -> PartitionFate:
    learned = {key for keys in follows.values() for key in keys}
    for field, keys in follows.items():
        gone = [
            key for key in keys if str(partition[field]) not in {new.get(key, "").strip(), *entries(new.get(key, ""))}
        ]
        if gone and len(gone) == len(keys):
            to = (
                _rewritten([exactly(field, gone[0])], new, partition)
                if len(entries(new.get(gone[0], ""))) == 1
                else None
            )
            why = f"{field} has had the value of {gone[0]}, which is {new.get(gone[0], 'not set')} now"
            return PartitionFate(partition, Fate.ORPHANED, why, to)
        if gone:
            why = f"{field} may follow {' or '.join(keys)}"
            return PartitionFate(partition, Fate.UNKNOWN, why)
    if unknown := [key for key in changed if key not in learned]:
        return PartitionFate(partition, Fate.UNKNOWN, f"what {', '.join(unknown)} means for it is not known")
    return PartitionFate(partition, Fate.KEPT, "what its source partitions follow stays as it is")

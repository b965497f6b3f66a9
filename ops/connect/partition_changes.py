"""The effect of a configuration change on a connector's source offsets: which are kept and which
are orphaned.

The rules of the connector's class decide (``partition_rules``). Without rules, the effect is
learned from the stored offsets where possible (``partition_learning``). Otherwise it is unknown,
and reported as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from connectctl.ops.connect.partition_fate import (
    FRAMEWORK,
    NEW,
    Fate,
    OffsetOutlook,
    PartitionFate,
    rewritten,
    with_moved,
)
from connectctl.ops.connect.partition_fields import (
    Config,
    FieldRule,
    PartitionRule,
    SourcePartition,
)
from connectctl.ops.connect.partition_learning import learned
from connectctl.ops.connect.partition_rules import rules_of
from connectctl.ops.connect.stream_source_partitions import is_stream_state

SourceOffset = Mapping[str, Any]
Offsets = Sequence[tuple[SourcePartition, SourceOffset | None]]
"""Pairs of source partition and source offset."""


def outlook(old: Config | None, new: Config, offsets: Offsets) -> OffsetOutlook:
    """Return the fate of ``offsets`` where ``new`` replaces ``old``; ``old`` is None for a
    connector that is created.
    """
    rules = rules_of(new.get("connector.class", ""))
    if not rules:
        return learned(old, new, [partition for partition, _ in offsets])
    former = rules if old is None else rules_of(old.get("connector.class", ""))
    fates = [_fate(rules, old if former == rules else None, new, *pair) for pair in offsets]
    read = [fate.partition for fate in fates if fate.fate in (Fate.KEPT, Fate.RESUMED)]
    begun = [
        PartitionFate(dict(expected), Fate.BEGUN, NEW, whole=rule.whole)
        for rule, expected in _expected(rules, new)
        if not (old is not None and former == rules and _reads(rule, old, expected))
        and not any(_means(rule, expected, partition) for partition in read)
    ]
    return OffsetOutlook(
        with_moved(fates, begun),
        rules[0].source,
        _may_begin(rules, old, new),
        _inherited(rules, old, new),
    )


def reads(config: Config, partition: SourcePartition) -> bool | None:
    """Return whether a task of ``config`` looks up ``partition``; None if that is unknown."""
    rule = _rule_for(rules_of(config.get("connector.class", "")), partition)
    return None if rule is None else _reads(rule, config, partition)


def matters(name: str, *configs: Config) -> bool:
    """Return whether a change of the property ``name`` may affect the source offsets of a connector
    of ``configs``.
    """
    known = any(
        name in rule.keys
        for config in configs
        for rule in rules_of(config.get("connector.class", ""))
    )
    return known or name == "connector.class" or not name.startswith(FRAMEWORK)


def shared(new: Config, others: Mapping[str, Config]) -> list[str]:
    """Return the connectors of ``others`` that read the same source partitions as ``new``.

    The rules of their class decide. Without rules, all of their own properties must be equal.
    """
    return sorted(
        name for name, config in others.items() if _overlap(new, config) or _equal(new, config)
    )


def partitions_of_others(
    new: Config, stored: Mapping[str, Offsets]
) -> dict[str, list[SourcePartition]]:
    """Return the source partitions that ``new`` reads and other connectors have ``stored`` offsets
    of, by connector.
    """
    rules = [
        rule
        for rule in rules_of(new.get("connector.class", ""))
        if rule.identifies_source and rule.fields
    ]
    found = {}
    for name, offsets in stored.items():
        partitions = [
            p
            for p, _ in offsets
            if (rule := _rule_for(rules, p)) is not None and _reads(rule, new, p)
        ]
        if partitions:
            found[name] = partitions
    return found


def _fate(
    rules: Sequence[PartitionRule],
    old: Config | None,
    new: Config,
    partition: SourcePartition,
    offset: SourceOffset | None,
) -> PartitionFate:
    if is_stream_state(partition):
        return PartitionFate(
            partition, Fate.KEPT, "it belongs to a stream, and is not a position in a source"
        )
    rule = _rule_for(rules, partition)
    if rule is None:
        return PartitionFate(
            partition,
            Fate.UNKNOWN,
            "this class is not known to write a source partition of this form",
        )
    was_read = old is not None and _reads(rule, old, partition) is not False
    was_used = was_read and old is not None and _used(rule, old, offset)
    not_read = _not_read(rule, new, partition)
    if not_read is None and _reads(rule, new, partition) is None:
        patterns = ", ".join(
            field.shown(new)
            for field in rule.fields
            if field.reads(new, partition[field.name]) is None
        )
        return PartitionFate(partition, Fate.UNKNOWN, f"unknown whether it is in {patterns}")
    if not_read is None:
        if _used(rule, new, offset):
            fate = Fate.KEPT if was_used else Fate.RESUMED
            return PartitionFate(
                partition, fate, "it is read as before" if was_used else "it was not read before"
            )
        not_read = _unused(rule, new, offset)
        if rule.offset_fields(new):
            return PartitionFate(
                partition, Fate.BEGUN if was_used or not was_read else Fate.LEFT, not_read
            )
    if not was_used:
        return PartitionFate(partition, Fate.LEFT, not_read)
    return PartitionFate(partition, Fate.ORPHANED, not_read, _moved(rule, new, partition))


def _rule_for(rules: Sequence[PartitionRule], partition: SourcePartition) -> PartitionRule | None:
    return next(
        (rule for rule in rules if {field.name for field in rule.fields} <= partition.keys()), None
    )


def _reads(rule: PartitionRule, config: Config, partition: SourcePartition) -> bool | None:
    """Return whether the fields that ``partition`` has are read; an incomplete source partition
    lacks some of them.
    """
    if rule.form(config, partition) is not None:
        return False
    found = [
        field.reads(config, partition[field.name])
        for field in rule.fields
        if field.name in partition
    ]
    return False if False in found else None if None in found else True


def _not_read(rule: PartitionRule, config: Config, partition: SourcePartition) -> str | None:
    """Return why a task of ``config`` does not look it up; None if it does, or if that is
    unknown.
    """
    for field in rule.fields:
        if field.reads(config, partition[field.name]) is False:
            return f"{field.name} {partition[field.name]} {field.is_not} {field.shown(config)}"
    return rule.form(config, partition)


def _used(rule: PartitionRule, config: Config, offset: SourceOffset | None) -> bool:
    members = rule.offset_fields(config)
    return members is None or offset is None or bool(members & offset.keys())


def _unused(rule: PartitionRule, config: Config, offset: SourceOffset | None) -> str:
    key = rule.offset_keys[-1]
    return f"with {key} {config.get(key, '')} its offset {dict(offset or {})} is not used"


def _moved(rule: PartitionRule, new: Config, partition: SourcePartition) -> SourcePartition | None:
    changed = {
        field.name: field.value(new)
        for field in rule.fields
        if not field.reads(new, partition[field.name])
    }
    return rewritten(partition, changed)


def _expected(
    rules: Sequence[PartitionRule], config: Config
) -> Iterator[tuple[PartitionRule, dict[str, Any]]]:
    """Yield source partitions that the configuration certainly reads, with the fields that it
    determines.
    """
    for rule in rules:
        if not rule.older and rule.offset_fields(config) != frozenset() and rule.fields:
            names = [field.name for field in rule.fields]
            for values in product(*(field.values(config) for field in rule.fields)):
                yield rule, dict(zip(names, values, strict=True))


def _means(rule: PartitionRule, expected: SourcePartition, partition: SourcePartition) -> bool:
    """Return whether ``partition`` has the known fields of ``expected``."""
    complete = all(field.name in partition for field in rule.fields)
    return complete and all(
        field.same(expected[field.name], partition[field.name]) for field in rule.fields
    )


def _may_begin(rules: Sequence[PartitionRule], old: Config | None, new: Config) -> tuple[str, ...]:
    """Return the names by patterns that only ``new`` has: only the source knows what they match."""
    found = []
    for field in (field for rule in rules if old is not None for field in rule.fields):
        added = [
            pattern
            for pattern in field.patterns(new)
            if old is not None and pattern not in field.patterns(old)
        ]
        if added:
            found.append(f"{field.name} {', '.join(added)}")
        elif (
            field.patterns(new)
            and old is not None
            and any(old.get(key) != new.get(key) for key in field.keys)
        ):
            found.append(f"{field.name} {', '.join(field.patterns(new))}")
    return tuple(dict.fromkeys(found))


def _inherited(rules: Sequence[PartitionRule], old: Config | None, new: Config) -> tuple[str, ...]:
    """Return the properties with changed values that select data and are in no source partition."""
    keys = dict.fromkeys(key for rule in rules for key in (*rule.where, *rule.inherits))
    return tuple(key for key in keys if old is not None and old.get(key) != new.get(key))


def _overlap(one: Config, other: Config) -> bool:
    other_rules = rules_of(other.get("connector.class", ""))
    return any(
        rule in other_rules
        and all(one.get(key) == other.get(key) for key in rule.where)
        and _same_source(rule, one, other)
        for rule in rules_of(one.get("connector.class", ""))
        if rule.fields and not rule.older
    )


def _equal(one: Config, other: Config) -> bool:
    class_ = one.get("connector.class", "")
    if rules_of(class_) or class_ != other.get("connector.class"):
        return False
    own, other_own = (
        {k: v for k, v in config.items() if not k.startswith(FRAMEWORK)} for config in (one, other)
    )
    return bool(own) and own == other_own


def _same_source(rule: PartitionRule, one: Config, other: Config) -> bool:
    comparable = rule.identifies_source or all(
        one.get(key) == other.get(key) for key in rule.inherits
    )
    return bool(comparable and (rule.where or rule.identifies_source)) and all(
        _common(field, one, other) for field in rule.fields
    )


def _common(field: FieldRule, one: Config, other: Config) -> bool:
    """Return whether both configurations certainly have a common value."""
    ones, others = field.values(one), field.values(other)
    if any(field.reads(other, value) for value in ones) or any(
        field.reads(one, value) for value in others
    ):
        return True
    return bool(set(field.patterns(one)) & set(field.patterns(other)))

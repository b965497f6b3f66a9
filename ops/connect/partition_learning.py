"""The fate of source offsets of a class without rules, learned from its stored source partitions.

A field that has the value of a property is assumed to follow that property. Older source
partitions, of former values, may be among the stored ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from connectctl.ops.connect.partition_fields import Config, SourcePartition, entries

SOURCE = "learned from the stored offsets"
_SHORT = 3
"""Numbers of fewer digits may be equal by chance."""


def learned(
    old: Config | None, new: Config, partitions: Sequence[SourcePartition]
) -> OffsetOutlook:
    changed = {key for key in {*(old or {}), *new} if (old or {}).get(key) != new.get(key)}
    own_changes = sorted(key for key in changed if not key.startswith(FRAMEWORK))
    if old is None:
        return _all(partitions, Fate.UNKNOWN, "this connector class is unknown")
    if "connector.class" in changed:
        return _all(partitions, Fate.UNKNOWN, "the connector's class changes")
    if not own_changes:
        return _all(partitions, Fate.KEPT, "no property of the connector's own changes")
    follows = _follows(old, partitions)
    fates = [_fate(partition, follows, own_changes, old, new) for partition in partitions]
    begun = (
        list(_begun(follows, old, new, partitions))
        if all(fate.fate is not Fate.UNKNOWN for fate in fates)
        else []
    )
    return OffsetOutlook(with_moved(fates, begun), SOURCE)


def _all(partitions: Sequence[SourcePartition], fate: Fate, why: str) -> OffsetOutlook:
    return OffsetOutlook(
        tuple(PartitionFate(partition, fate, why) for partition in partitions), SOURCE
    )


def _follows(config: Config, partitions: Sequence[SourcePartition]) -> dict[str, list[str]]:
    """Return the properties that each field follows.

    These are the properties that have, alone or in a list, every value of the field; else those all
    of whose values the field has.
    """
    fields = (
        set.intersection(*(set(partition) for partition in partitions)) if partitions else set()
    )
    own_values = {key: values_of(config, key) for key in config if not key.startswith(FRAMEWORK)}
    found = {}
    for field in sorted(fields):
        values = {str(partition[field]) for partition in partitions}
        if any(map(_is_generic, values)):
            continue
        keys = [key for key, has in own_values.items() if values <= {config[key].strip(), *has}]
        keys = keys or [key for key, has in own_values.items() if has and has <= values]
        if keys:
            found[field] = keys
    return found


def values_of(config: Config, key: str) -> set[str]:
    return set(entries(config.get(key, "")))


def _is_generic(value: str) -> bool:
    return value.lower() in ("", "true", "false", "none") or (
        value.isdigit() and len(value) < _SHORT
    )


def _fate(
    partition: SourcePartition,
    follows: Mapping[str, list[str]],
    changed: Sequence[str],
    old: Config,
    new: Config,
) -> PartitionFate:
    known = {key for keys in follows.values() for key in keys}
    if unknown := [key for key in changed if key not in known]:
        return PartitionFate(
            partition, Fate.UNKNOWN, f"the effect of {', '.join(unknown)} on it is unknown"
        )
    was_read, reason, moved = True, "", dict[str, Any]()
    for field, keys in follows.items():
        value = str(partition[field])
        was_read = was_read and any(_has(old, key, value) for key in keys)
        lost = [key for key in keys if not _has(new, key, value)]
        if lost and len(lost) < len(keys) and set(keys) & set(changed):
            return PartitionFate(partition, Fate.UNKNOWN, f"{field} may follow {' or '.join(keys)}")
        if lost:
            reason = reason or f"{field} has had the value of {lost[0]}, which changes"
            values = entries(new.get(lost[0], ""))
            moved[field] = values[0] if len(values) == 1 else None
    if reason:
        fate = Fate.ORPHANED if was_read else Fate.LEFT
        return PartitionFate(
            partition, fate, reason, rewritten(partition, moved) if was_read else None
        )
    why = "the properties that its source partitions depend on do not change"
    return PartitionFate(
        partition,
        Fate.KEPT if was_read else Fate.RESUMED,
        why if was_read else "it was not read before",
    )


def _has(config: Config, key: str, value: str) -> bool:
    return value == config.get(key, "").strip() or value in values_of(config, key)


def _begun(
    follows: Mapping[str, list[str]],
    old: Config,
    new: Config,
    partitions: Sequence[SourcePartition],
) -> Iterator[PartitionFate]:
    """Yield the new values of a property that no source partition has."""
    for field, (key, *_) in follows.items():
        whole = all(set(partition) == {field} for partition in partitions)
        for value in sorted(
            values_of(new, key)
            - values_of(old, key)
            - {str(partition[field]) for partition in partitions}
        ):
            yield PartitionFate({field: value}, Fate.BEGUN, NEW, whole=whole)

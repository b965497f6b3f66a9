"""What a change of configurations does to source offsets, as plans say it, and the steps that carry offsets over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.partition_changes import FRAMEWORK, Fate, OffsetOutlook, PartitionFate, outlook, shared
from connectctl.ops.connect.release import CHANGES_OFFSETS, older
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.operations.connectors.config_values import difference

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.connect.connector import Connector
    from connectctl.ops.operations.connectors.config_values import Config

MOST_NAMED = 3
Offsets = Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
"""Pairs of source partition and source offset."""
CARRY = "--carry-offsets"


@dataclass(frozen=True)
class OffsetsOfChange:
    """``sentences``, in words, and the offsets to set with the change: pairs of partition and offset as JSON texts."""

    sentences: tuple[str, ...] = ()
    entries: tuple[tuple[str, str], ...] = ()


def of_change(calls: ConnectCalls, former: Connector, new: Config, *, carry: bool) -> OffsetsOfChange:
    """What ``new`` does to the offsets of a connector. Raises ``Refused`` where they cannot be carried over."""
    changed = difference(former.config, new)
    if former.type == "sink" or not any(_may_matter(name) for name in changed):
        return OffsetsOfChange()
    seen = read_offsets(calls, former.name)
    if isinstance(seen, str):
        if carry:
            raise Refused(f"The source offsets of {former.name} cannot be carried over", why=seen, code="unsupported")
        return OffsetsOfChange((f"what it does to its source offsets is unknown ({seen})",))
    found = outlook(former.config, new, seen)
    there = {_text(partition) for partition, _ in seen}
    ways = [each for each in found.of(Fate.ORPHANED) if each.carry_to is not None]
    free = [each for each in ways if _text(each.carry_to) not in there]
    if not carry:
        return OffsetsOfChange(_sentences(found, can_carry=bool(free)))
    _refuse_uncarried(calls, former, found, free)
    by_partition = {_text(partition): _text(offset) for partition, offset in seen}
    entries = [(_text(each.carry_to), by_partition[_text(each.partition)]) for each in free]
    old = [(_text(each.partition), "null") for each in free]
    return OffsetsOfChange(_sentences(found, carried=free), (*entries, *old))


def of_new(new: Config, stored: Offsets | str) -> tuple[str, ...]:
    """What a connector that is created makes of the offsets that are ``stored`` under its name; a text is why they were
    not seen.
    """
    if isinstance(stored, str):
        return (f"whether offsets are stored under its name is unknown ({stored})",)
    if not stored:
        return ()
    found = outlook(None, new, stored)
    resumed, unknown = found.of(Fate.KEPT), found.of(Fate.UNKNOWN)
    sentences = [f"resumes from offsets that are stored under its name: {_named(resumed)}"] if resumed else []
    sentences += [f"offsets are stored under its name, which it may resume from: {_named(unknown)}"] if unknown else []
    return tuple(sentences)


def of_others(new: Config, others: Mapping[str, Config]) -> tuple[str, ...]:
    """Which connectors would read the same source partitions."""
    names = shared(new, others)
    return (f"reads the same source partitions as {', '.join(names)}",) if names else ()


def read_offsets(calls: ConnectCalls, name: str) -> Offsets | str:
    """The offsets that workers give a connector (KIP-875); a text says why they are not seen."""
    try:
        answer = calls.get(path_of("connectors", name, "offsets"))["offsets"]
        return [(each["partition"], each["offset"]) for each in answer]
    except ConnectctlError as e:
        return e.why or e.what
    except (KeyError, TypeError):
        return "the workers gave none"


def _may_matter(name: str) -> bool:
    return not name.startswith(FRAMEWORK) or name == "connector.class"


def _refuse_uncarried(
    calls: ConnectCalls, former: Connector, found: OffsetOutlook, free: Sequence[PartitionFate]
) -> None:
    version = str(calls.get("/").get("version"))
    if older(version, CHANGES_OFFSETS):
        raise Refused(
            f"The workers are {version}, and set offsets from 3.6 on",
            next_step=f"Change it without {CARRY}, and set them: connectctl offsets set {former.name} -f FILE --stop.",
            code="unsupported",
        )
    if former.config.get("offsets.storage.topic"):
        raise Refused(
            f"The workers may fail to set the offsets of {former.name}",
            why="with exactly-once and a dedicated offsets topic, workers from 3.8 to 4.3 do",
            next_step=f"Change it without {CARRY}, and set them: connectctl offsets set {former.name} -f FILE --stop.",
            code="unsupported",
        )
    lost = [each for each in found.of(Fate.ORPHANED, Fate.UNKNOWN) if each not in free]
    if lost:
        raise Refused(
            f"Not every source offset of {former.name} can be carried over: {_named(lost)}",
            why=lost[0].why,
            next_step=f"Change it without {CARRY}, and set them: connectctl offsets set {former.name} -f FILE --stop.",
            code="offsets",
        )


def _sentences(
    found: OffsetOutlook, *, can_carry: bool = False, carried: Sequence[PartitionFate] = ()
) -> tuple[str, ...]:
    orphaned = [each for each in found.of(Fate.ORPHANED) if each not in carried]
    unknown, begun = found.of(Fate.UNKNOWN), found.of(Fate.BEGUN)
    sentences = []
    if carried:
        sentences.append(f"carries {_count(len(carried))} over: {_named(carried)}")
    if orphaned:
        sentences.append(f"orphans {_count(len(orphaned))}: {_named(orphaned)}, because {orphaned[0].why}")
    if begun:
        sentences.append(f"begins anew: {_named(begun)}")
    if unknown:
        sentences.append(f"may orphan {_count(len(unknown))}: {_named(unknown)}, because {unknown[0].why}")
    if can_carry:
        sentences.append(f"{CARRY} carries them over")
    return tuple(sentences)


def _count(number: int) -> str:
    return f"{number} source offset{'' if number == 1 else 's'}"


def _named(fates: Sequence[PartitionFate]) -> str:
    names = [_text(each.partition) + (f" to {_text(each.carry_to)}" if each.carry_to else "") for each in fates]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

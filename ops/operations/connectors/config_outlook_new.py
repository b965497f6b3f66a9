"""What a connector that is created makes of source offsets that are stored already, under its own name or others'."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.partition_changes import Offsets, also_of, outlook, shared
from connectctl.ops.connect.partition_fate import Fate
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.operations.connectors.config_outlook import CARRY, Entries, OffsetsOfChange, of_outlook, text_of
from connectctl.ops.operations.connectors.config_values import Config


@dataclass(frozen=True)
class OffsetsByConnector:
    """The offsets in the global topic by connector. ``unseen`` says why they were not seen."""

    by_name: Mapping[str, Offsets] = field(default_factory=dict)
    unseen: str | None = None


def of_new(name: str, new: Config, stored: OffsetsByConnector) -> OffsetsOfChange:
    """What the connector ``name`` makes of the offsets that are stored under its name."""
    if stored.unseen is not None:
        return OffsetsOfChange((f"whether offsets are stored under its name is unknown ({stored.unseen})",))
    own = stored.by_name.get(name, ())
    if not own:
        return OffsetsOfChange()
    found = outlook(None, new, own)
    whole = of_outlook(found)
    if found.of(Fate.UNKNOWN):
        words = "may resume from offsets that are stored under its name"
        return OffsetsOfChange((f"{words}: {', '.join(text_of(p) for p, _ in own[:1])} …",), whole.partitions)
    return whole


def of_others(
    name: str, new: Config, others: Mapping[str, Config], stored: OffsetsByConnector = OffsetsByConnector()
) -> OffsetsOfChange:
    """Which connectors read the same source partitions, and whose offsets of them are stored: they stay where they are."""
    sharing = shared(new, others)
    sentences = [f"reads the same source partitions as {', '.join(sharing)}"] if sharing else []
    for former, entries in _owners(name, new, stored).items():
        gone = "" if former in others else ", which no longer exists"
        sentences.append(
            f"leaves {counted(len(entries), 'source offset')} of what it reads under the name {former}{gone} (to start "
            f"from them: {CARRY}, or connectctl offsets copy {former} {name})"
        )
    begun = [read_json(key) for entries in _owners(name, new, stored).values() for key, _ in entries]
    partitions = {Fate.BEGUN.value: tuple(begun)} if begun else {}
    return OffsetsOfChange(tuple(sentences), partitions, tuple(sharing))


def has_owner(name: str, new: Config, stored: OffsetsByConnector) -> bool:
    """Whether offsets of what ``new`` reads are stored under another name, and none under ``name``."""
    return bool(_owners(name, new, stored))


def carried(name: str, new: Config, stored: OffsetsByConnector, running: Collection[str]) -> Entries:
    """The offsets of another name with which the connector ``name`` is created. Raises ``Refused``."""
    hint = f"Create it without {CARRY}, and set them: connectctl offsets copy NAME {name}."
    if stored.unseen is not None:
        raise Refused(
            f"No offsets can be carried over to {name}", why=stored.unseen, next_step=hint, code="unsupported"
        )
    owners = _owners(name, new, stored)
    if len(owners) != 1:
        why = (
            f"several connectors have such offsets: {', '.join(owners)}"
            if owners
            else "no connector has offsets of what it reads"
        )
        raise Refused(f"No offsets can be carried over to {name}", why=why, next_step=hint, code="offsets")
    ((former, entries),) = owners.items()
    if former in running:
        raise Refused(
            f"The offsets of {former} cannot be carried over while it runs",
            next_step=f"Stop it first: connectctl connectors stop {former} --wait.",
            code="running",
        )
    return entries


def _owners(name: str, new: Config, stored: OffsetsByConnector) -> dict[str, Entries]:
    """The offsets of what ``new`` reads that are stored under other names; none where its own name has some."""
    if also_of(new, {name: stored.by_name.get(name, ())}):
        return {}
    found = also_of(new, {other: offsets for other, offsets in stored.by_name.items() if other != name})
    return {
        former: tuple((text_of(p), text_of(o)) for p, o in stored.by_name[former] if p in partitions)
        for former, partitions in found.items()
    }

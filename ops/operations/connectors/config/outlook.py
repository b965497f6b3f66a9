"""Effects of a change of configurations on source offsets, for plans, and the offsets that move
with the change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.connector import Connector, path_of
from connectctl.ops.connect.offset_store import TOPIC, client_bootstrap
from connectctl.ops.connect.partition_changes import (
    Offsets,
    matters,
    outlook,
    partitions_of_others,
    reads,
    shared,
)
from connectctl.ops.connect.partition_fate import NEW, Fate, OffsetOutlook, PartitionFate
from connectctl.ops.connect.release import CHANGES_OFFSETS, older
from connectctl.ops.core.errors import ConnectctlError, Refused, Unreachable
from connectctl.ops.core.finding import counted, some_of
from connectctl.ops.operations.connectors.config.values import Config, difference
from connectctl.ops.operations.offsets.validity import refuse_invalid_offsets

MOST_NAMED = 3
CARRY = "--carry-offsets"
CARRIED = "carried over"
Partitions = Mapping[str, tuple[Mapping[str, Any], ...]]
"""Source partitions by their ``Fate``, or ``CARRIED``; some have only the fields that are known."""
Entries = tuple[tuple[str, str], ...]
"""Partitions and offsets as JSON texts; the offset ``null`` stands for none."""


@dataclass(frozen=True)
class OffsetsOfChange:
    """The effects of a change on source offsets, as ``sentences`` and as ``partitions``.

    ``shares`` are the connectors that read the same source partitions. ``former`` are the offsets
    that an undo restores: those of source partitions that are read only after the change; None if
    workers cannot set them. ``carried`` are pairs of source partitions, of which the second gets
    the offset of the first.
    """

    sentences: tuple[str, ...] = ()
    partitions: Partitions = field(default_factory=dict)
    shares: tuple[str, ...] = ()
    former: Entries | None = None
    carried: Entries = ()

    @property
    def of_step(self) -> dict[str, Any]:
        """Return the fields of a step."""
        return {"offsets": self.sentences, "partitions": self.partitions, "shares": self.shares}

    def __add__(self, other: OffsetsOfChange) -> OffsetsOfChange:
        partitions = {**self.partitions, **other.partitions}
        shares = (*self.shares, *other.shares)
        former = self.former if other.former is None else other.former
        carried = (*self.carried, *other.carried)
        return OffsetsOfChange(
            (*self.sentences, *other.sentences), partitions, shares, former, carried
        )


NONE = OffsetsOfChange()


def of_change(
    calls: ConnectCalls, connector: Connector, new: Config, *, carry: bool, force: bool = False
) -> OffsetsOfChange:
    """Return the effects of ``new`` on the offsets of a connector. Raises ``Refused`` if they
    cannot be carried over.

    ``force``: offsets that the connector would refuse are carried over as well.
    """
    old = connector.config
    if connector.type == "sink" or not any(
        matters(name, old, new) for name in difference(old, new)
    ):
        return OffsetsOfChange()
    offsets = read_offsets(calls, connector.name)
    if isinstance(offsets, str):
        if carry:
            raise Refused(
                f"The source offsets of {connector.name} cannot be carried over",
                why=offsets,
                next_step="Workers that do not answer may wait for an open transaction: "
                "connectctl transactions lag.",
                code="unsupported",
            )
        return OffsetsOfChange((f"what it does to its source offsets is unknown ({offsets})",))
    found = outlook(old, new, offsets)
    stored = {text_of(partition) for partition, _ in offsets}
    movable = [fate for fate in found.of(Fate.ORPHANED) if fate.carry_to is not None]
    # A source partition that the former configuration reads as well is not a new name of another.
    free = [
        fate
        for fate in movable
        if text_of(fate.carry_to) not in stored and reads(old, fate.carry_to or {}) is not True
    ]
    by_partition = {text_of(partition): text_of(offset) for partition, offset in offsets}
    if not carry:
        new_fates = (Fate.BEGUN, Fate.RESUMED, Fate.LEFT)
        former = [
            (key, by_partition[key])
            for fate in found.of(*new_fates)
            if (key := text_of(fate.partition)) in stored
        ]
        sets = (found.of(Fate.BEGUN, Fate.RESUMED) or found.may_begin) and _unsettable(
            calls, connector.name, old, old
        ) is None
        return of_outlook(found, can_carry=bool(free)) + OffsetsOfChange(
            former=tuple(former) if sets else None
        )
    _refuse_uncarried(calls, connector, new, found, free)
    entries = [(text_of(fate.carry_to), by_partition[text_of(fate.partition)]) for fate in free]
    refuse_invalid_offsets(connector.name, new, entries, offsets, force=force)
    pairs = tuple((text_of(fate.partition), text_of(fate.carry_to)) for fate in free)
    return of_outlook(found, carried=free) + OffsetsOfChange(carried=pairs)


def of_outlook(
    found: OffsetOutlook, *, can_carry: bool = False, carried: Sequence[PartitionFate] = ()
) -> OffsetsOfChange:
    targets, carried_ids = (
        {text_of(fate.carry_to) for fate in carried},
        {id(fate) for fate in carried},
    )
    orphaned = [fate for fate in found.of(Fate.ORPHANED) if id(fate) not in carried_ids]
    begun = [fate for fate in found.of(Fate.BEGUN) if text_of(fate.partition) not in targets]
    resumed, unknown = found.of(Fate.RESUMED), found.of(Fate.UNKNOWN)
    fates_of = {
        CARRIED: carried,
        Fate.ORPHANED.value: orphaned,
        Fate.RESUMED.value: resumed,
        Fate.BEGUN.value: begun,
        Fate.UNKNOWN.value: unknown,
    }
    sentences = [
        carried and f"carries {_count(carried)} over: {_named_fates(carried, to=True)}",
        orphaned
        and f"orphans {_count(orphaned)}: {_named_fates(orphaned)}, because {orphaned[0].why}",
        resumed and f"resumes from {_count(resumed)} stored before: {_named_fates(resumed)}",
        begun and f"starts from the beginning: {_named_fates(begun)}{_reason(begun)}",
        found.may_begin
        and f"starts from the beginning for what else it finds: {'; '.join(found.may_begin)}",
        unknown
        and f"may orphan {_count(unknown)}: {_named_fates(unknown)}, because {unknown[0].why}",
        found.of(Fate.KEPT)
        and found.inherited
        and f"keeps its offsets although {', '.join(found.inherited)} changes",
        can_carry and f"{CARRY} carries them over instead",
        (orphaned or begun or resumed)
        and found.source.startswith("learned")
        and f"all of this is {found.source}",
    ]
    partitions = {
        name: tuple(fate.partition for fate in fates) for name, fates in fates_of.items() if fates
    }
    return OffsetsOfChange(
        tuple(fate for fate in sentences if isinstance(fate, str) and fate), partitions
    )


def read_offsets(calls: ConnectCalls, name: str) -> Offsets | str:
    """Return the offsets of a connector from the workers (KIP-875), or the reason why they could
    not be read.
    """
    try:
        answer = calls.get(path_of("connectors", name, "offsets"))["offsets"]
        return [(entry["partition"], entry["offset"]) for entry in answer]
    except ConnectctlError as e:
        return e.why or e.what
    except (KeyError, TypeError):
        return "the workers returned none"


def text_of(value: Any) -> str:
    """Return ``value`` as canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def named(texts: Sequence[str]) -> str:
    return some_of(texts, MOST_NAMED)


def _unsettable(
    calls: ConnectCalls, name: str, old: Config, new: Config
) -> tuple[str, str | None] | None:
    """Return why offsets cannot be set under ``old``, or would not be in the store that ``new``
    reads; None if they can.
    """
    version = str(calls.get("/").get("version"))
    if older(version, CHANGES_OFFSETS):
        return f"The workers are {version}; setting offsets requires 3.6", None
    if old.get(TOPIC) or new.get(TOPIC):
        why = "with exactly-once and a dedicated offsets topic, workers from 3.8 to 4.3 do"
        return f"The workers may fail to set the offsets of {name}", why
    if client_bootstrap(old, "producer", "") != client_bootstrap(new, "producer", ""):
        return (
            f"The change may move the offsets of {name} to another Kafka cluster",
            "it changes its producer's servers",
        )
    return None


def _refuse_uncarried(
    calls: ConnectCalls,
    connector: Connector,
    new: Config,
    found: OffsetOutlook,
    free: Sequence[PartitionFate],
) -> None:
    hint = (
        f"Change it without {CARRY}, and set them: connectctl offsets set {connector.name} -f "
        "FILE --stop."
    )
    if unsettable := _unsettable(calls, connector.name, connector.config, new):
        raise Refused(unsettable[0], why=unsettable[1], next_step=hint, code="unsupported")
    unused = [fate for fate in found.of(Fate.BEGUN) if fate.why != NEW]
    carried = {id(fate) for fate in free}
    lost = [
        *(fate for fate in found.of(Fate.ORPHANED, Fate.UNKNOWN) if id(fate) not in carried),
        *unused,
    ]
    if lost:
        what = (
            f"Not every source offset of {connector.name} can be carried over: {_named_fates(lost)}"
        )
        raise Refused(what, why=lost[0].why, next_step=hint, code="offsets")


def _reason(begun: Sequence[PartitionFate]) -> str:
    return next((f", because {fate.why}" for fate in begun if fate.why != NEW), "")


def _count(fates: Sequence[PartitionFate]) -> str:
    return counted(len(fates), "source offset")


def _named_fates(fates: Sequence[PartitionFate], *, to: bool = False) -> str:
    def shown(fate: PartitionFate) -> str:
        text = text_of(fate.partition)
        return (text if fate.whole else f"{text[:-1]},…}}") + (
            f" to {text_of(fate.carry_to)}" if to else ""
        )

    return named([shown(fate) for fate in fates])


@dataclass(frozen=True)
class OffsetsByConnector:
    """The offsets in the global topic by connector. ``unseen`` is the error if they could not be
    read.
    """

    by_name: Mapping[str, Offsets] = field(default_factory=dict)
    unseen: ConnectctlError | None = None


def of_new(name: str, new: Config, stored: OffsetsByConnector) -> OffsetsOfChange:
    """Return the effects of the new connector ``name`` on the offsets that are stored under its
    name.
    """
    if stored.unseen is not None:
        return OffsetsOfChange(
            (f"whether offsets are stored under its name is unknown ({stored.unseen.what})",)
        )
    offsets = stored.by_name.get(name, ())
    if not offsets:
        return OffsetsOfChange()
    found = outlook(None, new, offsets)
    effects = of_outlook(found)
    if found.of(Fate.UNKNOWN):
        words = "may resume from offsets that are stored under its name"
        return OffsetsOfChange(
            (f"{words}: {', '.join(text_of(p) for p, _ in offsets[:1])} …",), effects.partitions
        )
    return effects


def of_others(
    name: str,
    new: Config,
    others: Mapping[str, Config],
    stored: OffsetsByConnector = OffsetsByConnector(),
) -> OffsetsOfChange:
    """Return the connectors that read the same source partitions, and those whose offsets of them
    are stored and not used.
    """
    sharing = shared(new, others)
    sentences = [f"reads the same source partitions as {', '.join(sharing)}"] if sharing else []
    for former, entries in stored_under_others(name, new, stored).items():
        ending = "" if former in others else ", which no longer exists"
        sentences.append(
            f"leaves {counted(len(entries), 'source offset')} of what it reads under the name "
            f"{former}{ending} (to start from them: {CARRY}, or connectctl offsets copy {former} "
            f"{name} --stop)"
        )
    begun = [
        read_json(key)
        for entries in stored_under_others(name, new, stored).values()
        for key, _ in entries
    ]
    partitions = {Fate.BEGUN.value: tuple(begun)} if begun else {}
    return OffsetsOfChange(tuple(sentences), partitions, tuple(sharing))


def carried(
    name: str, new: Config, stored: OffsetsByConnector, running: Collection[str]
) -> Entries:
    """Return the offsets under another name with which the connector ``name`` is created. Raises
    ``Refused``.
    """
    hint = f"Create it without {CARRY}, and set them: connectctl offsets copy NAME {name} --stop."
    if isinstance(stored.unseen, Unreachable):
        raise stored.unseen
    if stored.unseen is not None:
        raise Refused(
            f"No offsets can be carried over to {name}",
            why=stored.unseen.what,
            next_step=stored.unseen.next_step or hint,
            code="unsupported",
        )
    owners = stored_under_others(name, new, stored)
    if len(owners) != 1:
        why = (
            f"several connectors have such offsets: {', '.join(owners)}"
            if owners
            else "no connector has offsets of what it reads"
        )
        raise Refused(
            f"No offsets can be carried over to {name}", why=why, next_step=hint, code="offsets"
        )
    ((former, entries),) = owners.items()
    if former in running:
        raise Refused(
            f"The offsets of {former} cannot be carried over while it runs",
            next_step=f"Stop it first: connectctl connectors stop {former} --wait.",
            code="running",
        )
    return entries


def stored_under_others(name: str, new: Config, stored: OffsetsByConnector) -> dict[str, Entries]:
    """Return the offsets of source partitions of ``new`` under other names; none if its own name
    has some.
    """
    if partitions_of_others(new, {name: stored.by_name.get(name, ())}):
        return {}
    found = partitions_of_others(
        new, {other: offsets for other, offsets in stored.by_name.items() if other != name}
    )
    return {
        former: tuple(
            (text_of(p), text_of(o)) for p, o in stored.by_name[former] if p in partitions
        )
        for former, partitions in found.items()
    }

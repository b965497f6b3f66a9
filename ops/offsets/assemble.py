"""Sets the two sides of every source partition beside each other: pure, from a snapshot to the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.errors import BadInput
from connectctl.ops.model import oddities
from connectctl.ops.model.offsets import (
    UNKNOWN,
    ConnectorOffsets,
    Side,
    SourceOffset,
    effective,
    read_side,
    worker_reads,
)
from connectctl.ops.model.partitioning import partitions_of
from connectctl.ops.model.sourcekey import SourceKey, parse_key
from connectctl.ops.offsets.snapshot import OffsetsSnapshot, ReadTopic, SourceOffsets, Wish

if TYPE_CHECKING:
    from connectctl.ops.edges.contract import Record
    from connectctl.ops.model.finding import Finding


def assemble(snapshot: OffsetsSnapshot, wish: Wish) -> SourceOffsets:
    """Every wished-for connector with its source partitions, and the findings. Raises ``BadInput`` for unknown names."""
    found = list(snapshot.findings)
    globals_ = _index(snapshot.global_topic, found)
    own = {name: _index(topic, found).get(name, {}) for name, topic in snapshot.dedicated.items()}
    configured = snapshot.configs.connectors if snapshot.configs else {}
    names = sorted({*globals_, *own, *(n for n, c in configured.items() if c.looks_like != "sink")})
    if wish.connectors:
        _check_names(wish.connectors, names, configured)
        names = [name for name in dict.fromkeys(wish.connectors) if name in names]
    unread = {finding.subject for finding in found if finding.id == "OFFSETS011"}
    partitions = len(snapshot.global_topic.image.end_offsets) if snapshot.global_topic else 0
    connectors = []
    for name in names:
        store, topic = snapshot.stores.get(name), snapshot.dedicated.get(name)
        seen = name not in unread
        sides = _Sides(
            globals_.get(name, {}), own.get(name, {}), partitions, _partitions(topic), store is not None, seen
        )
        connector = ConnectorOffsets(
            name,
            store.topic if store else None,
            tuple(sides.offsets()),
            configured=snapshot.configs is None or name in configured,
            bootstrap=store.bootstrap if store else None,
        )
        # Beside a topic that was not read, nothing can be said of what is odd.
        found += oddities.of_connector(connector) if seen else ()
        connectors.append(connector)
    topics = [t for t in (snapshot.global_topic, *_distinct(snapshot.dedicated.values())) if t is not None]
    for topic in topics:
        found += oddities.of_open_transactions(topic.image.topic, topic.image.held_back)
    return SourceOffsets(tuple(connectors), tuple(topics), tuple(found))


def check_names(name: str, snapshot: OffsetsSnapshot) -> None:
    """Raises ``BadInput`` for a connector that nobody knows, with the nearest name, and for a sink."""
    assemble(OffsetsSnapshot(snapshot.global_topic, {}, snapshot.configs), Wish((name,)))


def _distinct(topics: Iterable[ReadTopic]) -> list[ReadTopic]:
    """Each topic once: connectors may share a dedicated one."""
    return list({(t.bootstrap, t.image.topic): t for t in topics}.values())


def _partitions(topic: ReadTopic | None) -> int:
    return len(topic.image.end_offsets) if topic else 0


def _check_names(wanted: Sequence[str], names: Sequence[str], configured: Mapping[str, object]) -> None:
    from difflib import get_close_matches

    for name in wanted:
        if name in names:
            continue
        if name in configured:
            raise BadInput(f"{name} is a sink connector, it has no source offsets")
        near = get_close_matches(name, names, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names[:10]) or 'none'}."
        raise BadInput(f"Nobody knows a source connector called {name}", next_step=hint)


ByKey = dict[bytes, tuple[SourceKey, list["Record"], list["Record"]]]


def _index(topic: ReadTopic | None, found: list[Finding]) -> dict[str, ByKey]:
    """Records by connector and raw key: the newest ones of each Kafka partition, and the superseded ones."""
    index: dict[str, ByKey] = {}
    if topic is None:
        return index
    foreign: list[tuple[Record, str]] = []
    for n, records in enumerate((topic.image.latest, topic.image.superseded), start=1):
        seen: dict[bytes, ByKey] = {}
        for record in records:
            raw = record.key
            if raw is not None and raw in seen:
                seen[raw][raw][n].append(record)  # type: ignore[union-attr]
                continue
            key = parse_key(raw)
            if isinstance(key, str) or raw is None:
                foreign.append((record, str(key)))
                continue
            by_key = index.setdefault(key.connector, {})
            if raw not in by_key:
                by_key[raw] = (key, [], [])
            by_key[raw][n].append(record)  # type: ignore[union-attr]
            seen[raw] = by_key
    found += oddities.of_foreign_records(topic.image.topic, foreign)
    return index


@dataclass(frozen=True)
class _Sides:
    """The records of one connector in the global and in its dedicated topic, by raw key.

    ``dedicated_seen`` is False where the dedicated topic could not be read: then nothing is known to be effective.
    """

    global_: ByKey
    dedicated: ByKey
    global_partitions: int
    dedicated_partitions: int
    has_dedicated: bool
    dedicated_seen: bool = True

    def offsets(self) -> Iterable[SourceOffset]:
        """One entry per raw key, in the order of the keys' text."""
        raws = sorted({**self.global_, **self.dedicated})
        homes = partitions_of(raws, self.global_partitions or self.dedicated_partitions)
        there = homes
        if self.dedicated and self.dedicated_partitions != self.global_partitions:
            there = partitions_of(raws, self.dedicated_partitions)
        for raw, home, other in zip(raws, homes, there, strict=True):
            theirs, ours = self.global_.get(raw), self.dedicated.get(raw)
            key = (theirs or ours or _NOBODY)[0]
            left, strays = _choose(theirs, home) if theirs else _NOTHING
            right, more = _choose(ours, other) if ours else _NOTHING
            value, origin, reads = None, UNKNOWN, None
            if self.dedicated_seen:
                value, origin = effective(left, right)
                reads = worker_reads(key, left, right, has_dedicated=self.has_dedicated)
            older = [*(theirs[2] if theirs else ()), *(ours[2] if ours else ())]
            earlier = tuple(map(read_side, sorted(older, key=lambda r: (r.timestamp or 0, r.offset)))) if older else ()
            yield SourceOffset(key, left, right, value, origin, reads, strays + more, earlier)


_NOBODY: tuple[SourceKey, list[Record], list[Record]] = (SourceKey("", None, ""), [], [])
_NOTHING: tuple[None, tuple[Side, ...]] = (None, ())


def _choose(entry: tuple[SourceKey, list[Record], list[Record]], home: int) -> tuple[Side | None, tuple[Side, ...]]:
    """The record that counts, and those that lie where Java's partitioner, which says ``home``, does not put the key.

    The one on Java's partition counts, because that is where a worker writes next; without one, the newest.
    """
    records = entry[1]
    if not records:
        return _NOTHING
    if len(records) == 1 and records[0].partition == home:
        return read_side(records[0]), ()
    strays = [record for record in records if record.partition != home]
    right = [record for record in records if record.partition == home]
    counts = right[0] if right else max(strays, key=lambda r: (r.timestamp or 0, r.offset))
    return read_side(counts), tuple(map(read_side, strays))

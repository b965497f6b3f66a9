"""The offsets of every source partition in the global and the dedicated topic. Pure: from a snapshot to the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING

from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.source_keys import SourceKey, connector_of, parse_key
from connectctl.ops.connect.source_offsets import (
    UNKNOWN,
    ConnectorOffsets,
    SourceOffset,
    StoredOffset,
    effective,
    read_offset,
    worker_reads,
)
from connectctl.ops.core.errors import BadInput, did_you_mean
from connectctl.ops.kafka.partitioner import partitions_of
from connectctl.ops.operations.connectors.observe import is_glob
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, ReadTopic, SourceOffsets

if TYPE_CHECKING:
    from connectctl.ops.connect.config_topic import ConfiguredConnector
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.kafka.records import ConsumerRecord


def assemble(snapshot: OffsetsSnapshot, query: OffsetsQuery) -> SourceOffsets:
    """Every requested connector with its source partitions, and the findings. Raises ``BadInput`` for unknown names."""
    found = list(snapshot.findings)
    globals_ = _index(snapshot.global_topic, found)
    own = {name: _index(topic, found).get(name, {}) for name, topic in snapshot.dedicated.items()}
    configured = snapshot.configs.connectors if snapshot.configs else {}
    names = known_names(snapshot, {*globals_, *own})
    if query.connectors:
        names = asked(query.connectors, names, configured)
    unread = {finding.subject for finding in found if finding.id == "OFFSETS011"}
    partitions = len(snapshot.global_topic.image.end_offsets) if snapshot.global_topic else 0
    connectors = []
    for name in names:
        store, topic = snapshot.stores.get(name), snapshot.dedicated.get(name)
        seen = name not in unread
        theirs, ours = globals_.get(name, {}), own.get(name, {})
        pairs = ((raw, theirs.get(raw), ours.get(raw)) for raw in sorted({**theirs, **ours}))
        connector = ConnectorOffsets(
            name,
            store.topic if store else None,
            tuple(Sides(partitions, partitions_in(topic), store is not None, seen).offsets(pairs)),
            configured=snapshot.configs is None or name in configured,
            bootstrap=store.bootstrap if store else None,
        )
        # Without the records of one topic, anomalies cannot be determined.
        found += offsets_findings.of_connector(connector) if seen else ()
        connectors.append(connector)
    topics = topics_of(snapshot)
    for topic in topics:
        found += offsets_findings.of_open_transactions(topic.image.topic, topic.image.held_back)
    return SourceOffsets(tuple(connectors), tuple(topics), tuple(found))


def topics_of(snapshot: OffsetsSnapshot) -> list[ReadTopic]:
    """The global topic and the dedicated ones, each once: connectors may share a dedicated one."""
    distinct = {(t.bootstrap, t.image.topic): t for t in snapshot.dedicated.values()}.values()
    return [t for t in (snapshot.global_topic, *distinct) if t is not None]


def known_names(snapshot: OffsetsSnapshot, there: Iterable[str]) -> list[str]:
    """Return the names of all source connectors: of those whose offsets are ``there``, configured ones and others."""
    configured = snapshot.configs.connectors if snapshot.configs else {}
    left_out = snapshot.global_topic.image.left_out if snapshot.global_topic else ()
    return sorted({*there, *left_out, *(n for n, c in configured.items() if c.looks_like != "sink")})


def check_names(name: str, snapshot: OffsetsSnapshot) -> None:
    """Raise ``BadInput`` for an unknown connector, with the nearest name, and for a sink."""
    records = snapshot.global_topic.image.latest if snapshot.global_topic else ()
    configured = snapshot.configs.connectors if snapshot.configs else {}
    check_known([name], known_names(snapshot, {*names_in(records), *snapshot.dedicated}), configured)


def names_in(records: Iterable[ConsumerRecord]) -> set[str]:
    """Return the connectors that have offsets in ``records``."""
    return {name for record in records if (name := connector_of(record.key)) is not None}


def partitions_in(topic: ReadTopic | None) -> int:
    return len(topic.image.end_offsets) if topic else 0


def asked(wanted: Sequence[str], names: Sequence[str], configured: Mapping[str, ConfiguredConnector]) -> list[str]:
    """What is ``wanted``, by name or by glob, of ``names``, the known source connectors. Raises ``BadInput`` for others."""
    known, sinks = set(names), {name for name, connector in configured.items() if connector.looks_like == "sink"}
    found: list[str] = []
    for each in wanted:
        if each in known or not is_glob(each):
            found.append(each)
            continue
        there = [name for name in names if fnmatchcase(name, each) and name not in sinks]
        if not there and any(fnmatchcase(name, each) for name in sinks):
            raise BadInput(f"{each} matches sink connectors alone; they have no source offsets", code="sink")
        if not there:
            raise BadInput(f"No source connector matches {each}", next_step="See connectctl connectors list.")
        found += there
    check_known(found, names, configured)
    return list(dict.fromkeys(found))


def check_known(wanted: Sequence[str], names: Sequence[str], configured: Mapping[str, ConfiguredConnector]) -> None:
    """Raises ``BadInput`` for what is ``wanted`` and not in ``names``, the known source connectors."""
    known = set(names)
    for name in wanted:
        # One whose name a source had before has offsets of that, and is meant as what it is now.
        if name in configured and configured[name].looks_like == "sink":
            raise BadInput(f"{name} is a sink connector; it has no source offsets", code="sink")
        if name in known:
            continue
        hint = did_you_mean(name, names, f"Source connectors: {', '.join(names[:10]) or 'none'}.")
        raise BadInput(f"Source connector not found: {name}", next_step=hint)


ByKey = dict[bytes, "Entry"]


def _index(topic: ReadTopic | None, found: list[Finding]) -> dict[str, ByKey]:
    """Records by connector and raw key: the newest ones of each Kafka partition, and the superseded ones."""
    index: dict[str, ByKey] = {}
    if topic is None:
        return index
    foreign: list[tuple[ConsumerRecord, str]] = []
    for n, records in enumerate((topic.image.latest, topic.image.superseded), start=1):
        seen: dict[bytes, ByKey] = {}
        for record in records:
            raw = record.key
            if raw is not None and raw in seen:
                seen[raw][raw][n].append(record)  # type: ignore[union-attr]  # n is 1 or 2: a list
                continue
            key = parse_key(raw)
            if isinstance(key, str) or raw is None:
                foreign.append((record, str(key)))
                continue
            by_key = index.setdefault(key.connector, {})
            if raw not in by_key:
                by_key[raw] = (key, [], [])
            by_key[raw][n].append(record)  # type: ignore[union-attr]  # n is 1 or 2: a list
            seen[raw] = by_key
    found += offsets_findings.of_foreign_records(topic.image.topic, foreign)
    return index


Entry = tuple[SourceKey, list["ConsumerRecord"], list["ConsumerRecord"]]
"""A key, its newest record of each Kafka partition, and its superseded ones."""
TOGETHER = 4096
"""Keys whose partitions are computed together."""


@dataclass(frozen=True)
class Sides:
    """How a connector's offsets lie in the global and in its dedicated topic.

    ``dedicated_seen`` is False where the dedicated topic could not be read: then nothing is known to be effective.
    """

    global_partitions: int
    dedicated_partitions: int
    has_dedicated: bool
    dedicated_seen: bool = True

    def offsets(self, pairs: Iterable[tuple[bytes, Entry | None, Entry | None]]) -> Iterator[SourceOffset]:
        """One entry per raw key with what the global and the dedicated topic have of it."""
        pairs = iter(pairs)
        while some := list(islice(pairs, TOGETHER)):
            raws = [raw for raw, _, _ in some]
            homes = there = partitions_of(raws, self.global_partitions or self.dedicated_partitions)
            if self.dedicated_partitions not in (0, self.global_partitions):
                there = partitions_of(raws, self.dedicated_partitions)
            for (_, theirs, ours), home, other in zip(some, homes, there, strict=True):
                yield self._offset(theirs, ours, home, other)

    def _offset(self, theirs: Entry | None, ours: Entry | None, home: int, other: int) -> SourceOffset:
        key = (theirs or ours or _NOBODY)[0]
        left, strays = _choose(theirs, home) if theirs else _NOTHING
        right, more = _choose(ours, other) if ours else _NOTHING
        value, origin, reads = None, UNKNOWN, None
        if self.dedicated_seen:
            value, origin = effective(left, right)
            reads = worker_reads(key, left, right, has_dedicated=self.has_dedicated)
        older = [*(theirs[2] if theirs else ()), *(ours[2] if ours else ())]
        earlier = tuple(map(read_offset, sorted(older, key=lambda r: (r.timestamp or 0, r.offset)))) if older else ()
        return SourceOffset(key, left, right, value, origin, reads, strays + more, earlier)


_NOBODY: Entry = (SourceKey("", None, ""), [], [])
_NOTHING: tuple[None, tuple[StoredOffset, ...]] = (None, ())


def _choose(
    entry: tuple[SourceKey, list[ConsumerRecord], list[ConsumerRecord]], home: int
) -> tuple[StoredOffset | None, tuple[StoredOffset, ...]]:
    """The record that counts, and those that lie where Java's partitioner, which says ``home``, does not put the key.

    The one on Java's partition counts, because that is where a worker writes next; without one, the newest.
    """
    records = entry[1]
    if not records:
        return _NOTHING
    if len(records) == 1 and records[0].partition == home:
        return read_offset(records[0]), ()
    strays = [record for record in records if record.partition != home]
    right = [record for record in records if record.partition == home]
    counts = right[0] if right else max(strays, key=lambda r: (r.timestamp or 0, r.offset, r.partition))
    return read_offset(counts), tuple(map(read_offset, strays))

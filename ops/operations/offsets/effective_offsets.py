"""The offsets of every source partition in the global and the dedicated topic. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice, repeat

from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.config_topic import ConfiguredConnector, is_configured
from connectctl.ops.connect.source_keys import SourceKey, connectors_of, parse_keys
from connectctl.ops.connect.source_offsets import (
    UNKNOWN,
    ConnectorOffsets,
    SourceOffset,
    StoredOffset,
    effective,
    read_offset,
    read_offsets,
    worker_reads,
)
from connectctl.ops.core.errors import BadInput, did_you_mean
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.partitioner import partitions_of
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.connectors.observe import is_glob
from connectctl.ops.operations.offsets.snapshot import (
    OffsetsQuery,
    OffsetsSnapshot,
    ReadTopic,
    SourceOffsets,
)


def assemble(snapshot: OffsetsSnapshot, query: OffsetsQuery) -> SourceOffsets:
    """Return the requested connectors with their source partitions, and the findings. Raises
    ``BadInput`` for unknown names.
    """
    found = list(snapshot.findings)
    in_global = _index(snapshot.global_topic, found)
    dedicated = {
        name: _index(topic, found).get(name, {}) for name, topic in snapshot.dedicated.items()
    }
    configured = snapshot.configs.connectors if snapshot.configs else {}
    names = known_names(snapshot, {*in_global, *dedicated})
    if query.connectors:
        names = selected_names(query.connectors, names, configured)
    unread = {finding.subject for finding in found if finding.id == "OFFSETS011"}
    partitions = partitions_in(snapshot.global_topic)
    connectors = []
    for name in names:
        store, topic = snapshot.stores.get(name), snapshot.dedicated.get(name)
        is_read = name not in unread
        global_records, dedicated_records = in_global.get(name, {}), dedicated.get(name, {})
        pairs = (
            (raw, global_records.get(raw), dedicated_records.get(raw))
            for raw in sorted({**global_records, **dedicated_records})
        )
        connector = ConnectorOffsets(
            name,
            store.topic if store else None,
            tuple(
                Sides(partitions, partitions_in(topic), store is not None, is_read).offsets(pairs)
            ),
            configured=is_configured(snapshot.configs, name),
            bootstrap=store.bootstrap if store else None,
        )
        # Without the records of one topic, anomalies cannot be determined.
        found += offsets_findings.of_connector(connector) if is_read else ()
        connectors.append(connector)
    topics = topics_of(snapshot)
    for topic in topics:
        found += offsets_findings.of_open_transactions(topic.image.topic, topic.image.held_back)
    return SourceOffsets(tuple(connectors), tuple(topics), tuple(found))


def topics_of(snapshot: OffsetsSnapshot) -> list[ReadTopic]:
    """Return the global topic and the dedicated ones, without duplicates: connectors may share a
    dedicated topic.
    """
    distinct = {(t.bootstrap, t.image.topic): t for t in snapshot.dedicated.values()}.values()
    return [t for t in (snapshot.global_topic, *distinct) if t is not None]


def known_names(snapshot: OffsetsSnapshot, names: Iterable[str]) -> list[str]:
    """Return the names of all source connectors: ``names``, which have offsets, and configured
    ones.
    """
    configured = snapshot.configs.connectors if snapshot.configs else {}
    left_out = snapshot.global_topic.image.left_out if snapshot.global_topic else ()
    return sorted(
        {*names, *left_out, *(n for n, c in configured.items() if c.looks_like != "sink")}
    )


def check_names(name: str, snapshot: OffsetsSnapshot) -> None:
    """Raise ``BadInput`` for an unknown connector, with the nearest name, and for a sink."""
    records = snapshot.global_topic.image.latest if snapshot.global_topic else ()
    configured = snapshot.configs.connectors if snapshot.configs else {}
    check_known(
        [name], known_names(snapshot, {*names_in(records), *snapshot.dedicated}), configured
    )


def names_in(records: Iterable[ConsumerRecord]) -> set[str]:
    """Return the connectors that have offsets in ``records``."""
    found = connectors_of([record.key for record in records])
    return {name for name in found if name is not None}


def partitions_in(topic: ReadTopic | None) -> int:
    return len(topic.image.end_offsets) if topic else 0


def selected_names(
    patterns: Sequence[str], names: Sequence[str], configured: Mapping[str, ConfiguredConnector]
) -> list[str]:
    """Return the names in ``patterns``, and those of the source connectors ``names`` that match its
    globs.

    Raises ``BadInput`` for unknown names, for globs without a match, and for sinks.
    """
    known, sinks = (
        set(names),
        {name for name, connector in configured.items() if connector.looks_like == "sink"},
    )
    found: list[str] = []
    for pattern in patterns:
        if pattern in known or not is_glob(pattern):
            found.append(pattern)
            continue
        matches = [name for name in names if fnmatchcase(name, pattern) and name not in sinks]
        if not matches and any(fnmatchcase(name, pattern) for name in sinks):
            raise BadInput(
                f"{pattern} matches sink connectors alone; they have no source offsets", code="sink"
            )
        if not matches:
            raise BadInput(
                f"No source connector matches {pattern}",
                next_step="See connectctl connectors list.",
            )
        found += matches
    check_known(found, names, configured)
    return list(dict.fromkeys(found))


def check_known(
    requested: Sequence[str], names: Sequence[str], configured: Mapping[str, ConfiguredConnector]
) -> None:
    """Raise ``BadInput`` for a name in ``requested`` that is not in ``names``, the known source
    connectors.
    """
    known = set(names)
    for name in requested:
        # A sink may have the offsets of a former source of its name.
        if name in configured and configured[name].looks_like == "sink":
            raise BadInput(f"{name} is a sink connector; it has no source offsets", code="sink")
        if name in known:
            continue
        hint = did_you_mean(name, names, f"Source connectors: {', '.join(names[:10]) or 'none'}.")
        raise BadInput(f"Source connector not found: {name}", next_step=hint)


ByKey = dict[bytes, "Entry"]


def _index(topic: ReadTopic | None, found: list[Finding]) -> dict[str, ByKey]:
    """Return the records by connector and raw key: the newest of each Kafka partition, and the
    superseded ones.
    """
    index: dict[str, ByKey] = {}
    if topic is None:
        return index
    foreign: list[tuple[ConsumerRecord, str]] = []
    for n, records in enumerate((topic.image.latest, topic.image.superseded), start=1):
        indexed: dict[bytes, ByKey] = {}
        keys = parse_keys([record.key for record in records])
        for record, key in zip(records, keys, strict=True):
            raw = record.key
            if raw is not None and raw in indexed:
                # n is 1 or 2: a list
                indexed[raw][raw][n].append(record)  # type: ignore[union-attr]
                continue
            if isinstance(key, str) or raw is None:
                foreign.append((record, str(key)))
                continue
            by_key = index.setdefault(key.connector, {})
            if raw not in by_key:
                by_key[raw] = (key, [], [])
            by_key[raw][n].append(record)  # type: ignore[union-attr]  # n is 1 or 2: a list
            indexed[raw] = by_key
    found += offsets_findings.of_foreign_records(topic.image.topic, foreign)
    return index


Entry = tuple[SourceKey, list["ConsumerRecord"], list["ConsumerRecord"]]
"""A key, its newest record of each Kafka partition, and its superseded ones."""
TOGETHER = 4096
"""Keys whose partitions are computed together."""


@dataclass(frozen=True)
class Sides:
    """The global and the dedicated topic of a connector.

    ``dedicated_seen`` is False if the dedicated topic could not be read: then the effective offsets
    are unknown.
    """

    global_partitions: int
    dedicated_partitions: int
    has_dedicated: bool
    dedicated_seen: bool = True

    def offsets(
        self, pairs: Iterable[tuple[bytes, Entry | None, Entry | None]]
    ) -> Iterator[SourceOffset]:
        """Yield an entry for each raw key, with its records in the global and in the dedicated
        topic.
        """
        pairs = iter(pairs)
        while chunk := list(islice(pairs, TOGETHER)):
            raws = [raw for raw, _, _ in chunk]
            global_homes = dedicated_homes = partitions_of(
                raws, self.global_partitions or self.dedicated_partitions
            )
            if self.dedicated_partitions not in (0, self.global_partitions):
                dedicated_homes = partitions_of(raws, self.dedicated_partitions)
            yield from map(
                self._offset,
                chunk,
                _chosen([in_global for _, in_global, _ in chunk], global_homes),
                _chosen([in_dedicated for _, _, in_dedicated in chunk], dedicated_homes),
            )

    def _offset(
        self,
        pair: tuple[bytes, Entry | None, Entry | None],
        chosen_global: Chosen,
        chosen_dedicated: Chosen,
    ) -> SourceOffset:
        _, in_global, in_dedicated = pair
        key = (in_global or in_dedicated or _NO_ENTRY)[0]
        global_offset, strays = chosen_global
        dedicated_offset, dedicated_strays = chosen_dedicated
        value, origin, reads = None, UNKNOWN, None
        if self.dedicated_seen:
            value, origin = effective(global_offset, dedicated_offset)
            reads = worker_reads(
                key, global_offset, dedicated_offset, has_dedicated=self.has_dedicated
            )
        older = [record for side in (in_global, in_dedicated) if side for record in side[2]]
        older.sort(key=lambda record: (record.timestamp or 0, record.offset))
        return SourceOffset(
            key,
            global_offset,
            dedicated_offset,
            value,
            origin,
            reads,
            strays + dedicated_strays,
            tuple(map(read_offset, older)),
        )


_NO_ENTRY: Entry = (SourceKey("", None, ""), [], [])
Chosen = tuple["StoredOffset | None", tuple[StoredOffset, ...]]
"""The offset that workers use, and those on other partitions than the key's."""
_NO_OFFSET: Chosen = (None, ())


def _chosen(entries: Sequence[Entry | None], homes: Sequence[int]) -> Iterator[Chosen]:
    """Yield the offsets of each entry; its home is the partition of Java's partitioner."""
    if not any(entries):
        yield from repeat(_NO_OFFSET, len(entries))
        return
    records = [
        _used(entry[1], home) if entry else None for entry, home in zip(entries, homes, strict=True)
    ]
    for entry, home, offset in zip(entries, homes, read_offsets(records), strict=True):
        if entry is None or (len(entry[1]) == 1 and entry[1][0].partition == home):
            yield offset, ()
        else:
            yield offset, tuple(read_offset(each) for each in entry[1] if each.partition != home)


def _used(records: Sequence[ConsumerRecord], home: int) -> ConsumerRecord | None:
    """Return the record that workers use.

    It is the one on ``home``, because they write the next one there; without one, the newest.
    """
    if len(records) < 2:
        return records[0] if records else None
    at_home = (record for record in records if record.partition == home)
    newest = max(records, key=lambda r: (r.timestamp or 0, r.offset, r.partition))
    return next(at_home, newest)

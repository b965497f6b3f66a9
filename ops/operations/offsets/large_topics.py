"""The answer from topics too big for memory: connector by connector, and each source partition when its turn comes.

What ``effective_offsets`` says of topics in memory is said here of records that come in the order of connectors and keys,
and are forgotten at once. In memory stay findings, and keys that could be a second spelling of another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any

from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.source_keys import SourceKey, owner_of, owners_of, parse_key
from connectctl.ops.connect.source_offsets import SourceOffset
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.aligned_blocks import are_single
from connectctl.ops.kafka.records import GROUP, ConsumerRecord, SortedRecords, record_in
from connectctl.ops.kafka.spill import in_order
from connectctl.ops.operations.offsets.effective_offsets import Entry, Sides, asked, partitions_in, topics_of
from connectctl.ops.operations.offsets.plain_records import Plain, PlainRows
from connectctl.ops.operations.offsets.snapshot import INCOMPLETE, OffsetsQuery, OffsetsSnapshot, ReadTopic

Group = tuple[str, bytes, Entry]
"""A connector, a raw key of its, and the key's records."""
Orders = dict[frozenset[str], tuple[str, ...]]
"""The order in which members came first, by their names."""


def is_big(snapshot: OffsetsSnapshot) -> bool:
    """Whether a topic was too big for memory."""
    return any(topic.image.in_order for topic in topics_of(snapshot))


def check_names(name: str, snapshot: OffsetsSnapshot) -> None:
    """Raises ``BadInput`` for an unknown connector, with the nearest name, and for a sink."""
    InOrder(replace(snapshot, dedicated={}), OffsetsQuery((name,)))


@dataclass
class Passing:
    """A connector whose ``offsets`` can be gone through once, before the next connector is asked for.

    Each is a ``SourceOffset``, or ``PlainRows`` of many where they are passed plainly.
    """

    name: str
    dedicated_topic: str | None
    configured: bool
    offsets: Iterator[Any]


@dataclass
class InOrder:
    """Goes through a snapshot. ``findings`` are complete once ``connectors`` has been gone through, with all offsets.

    With ``plainly`` what is plain is given as rows, and not understood one by one. Raises ``BadInput`` for an unknown
    connector in ``query``.
    """

    snapshot: OffsetsSnapshot
    query: OffsetsQuery
    plainly: bool = False
    findings: list[Finding] = field(default_factory=list)
    _suspects: list[SourceKey] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.findings += self.snapshot.findings
        for topic in self.topics:
            self.findings += offsets_findings.of_open_transactions(topic.image.topic, topic.image.held_back)
        self._configured = self.snapshot.configs.connectors if self.snapshot.configs else {}
        self._known = sorted(
            {*self.snapshot.dedicated, *(n for n, c in self._configured.items() if c.looks_like != "sink")}
        )
        self._chosen = frozenset(self.query.connectors)
        if not self._chosen.issubset(self._known):
            there = names_in(_latest(self.snapshot.global_topic))
            self._chosen = frozenset(asked(self.query.connectors, sorted({*self._known, *there}), self._configured))

    @property
    def topics(self) -> list[ReadTopic]:
        return topics_of(self.snapshot)

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for could be read to its end."""
        return not any(f.id in INCOMPLETE for f in self.findings)

    def connectors(self) -> Iterator[Passing]:
        self._plain = Plain(partitions_in(self.snapshot.global_topic), self._is_alone) if self.plainly else None
        theirs = _Cursor(_groups(self.snapshot.global_topic, self.findings, self._plain))
        dedicated = (topic for topic in self.topics if topic is not self.snapshot.global_topic)
        own = {topic.place: _Cursor(_groups(topic, self.findings)) for topic in dedicated}
        for name in theirs.names_and(self._known):
            topic = self.snapshot.dedicated.get(name)
            ours = own[topic.place].of(name) if topic else iter(())
            if self._chosen and name not in self._chosen:
                continue
            yield self._connector(name, theirs.of(name), ours)
        self.findings += self._spellings()

    def keys(self) -> int:
        """How many keys there are, Connect's and others: counted, and not looked at."""
        if len(self.topics) == 1 and isinstance(there := self.topics[0].image.latest, SortedRecords):
            return sum(len(rows) if are_single(rows) else len({row[1:3] for row in rows}) for rows in there.blocks())
        rows = merge(*(((owner_of(r.key), r.key or b"") for r in _latest(topic)) for topic in self.topics))
        return sum(1 for _ in groupby(rows))

    def _is_alone(self, name: str) -> bool:
        """Whether the global topic is all there is of a connector."""
        return name not in self.snapshot.stores and name not in self.snapshot.dedicated and self._is_seen(name)

    def _is_seen(self, name: str) -> bool:
        return not any(f.id == "OFFSETS011" and f.subject == name for f in self.snapshot.findings)

    def _connector(self, name: str, theirs: Iterator[Group | PlainRows], ours: Iterator[Group | PlainRows]) -> Passing:
        store, topic = self.snapshot.stores.get(name), self.snapshot.dedicated.get(name)
        seen = self._is_seen(name)
        sides = Sides(partitions_in(self.snapshot.global_topic), partitions_in(topic), store is not None, seen)
        configured = self.snapshot.configs is None or name in self._configured
        odd = offsets_findings.OffsetFindings(name, configured, store.topic if store else None)
        offsets = self._watched(_offsets(sides, theirs, ours), odd, seen=seen)
        return Passing(name, store.topic if store else None, configured, offsets)

    def _watched(
        self, offsets: Iterable[SourceOffset | PlainRows], odd: offsets_findings.OffsetFindings, *, seen: bool
    ) -> Iterator[SourceOffset | PlainRows]:
        orders: Orders = self._plain.orders.setdefault(odd.name, {}) if self._plain else {}
        for entry in offsets:
            if isinstance(entry, PlainRows):
                odd.pass_by(len(entry.rows))
                yield entry
                continue
            odd.see(entry)
            if _may_be_second(entry.key, orders):
                self._suspects.append(entry.key)
            yield entry
        # Beside a topic that was not read, nothing can be said of what is odd.
        self.findings += odd.findings() if seen else ()

    def _spellings(self) -> Iterator[Finding]:
        """Source partitions in several spellings: looked for in a second pass, for what may be one."""
        meant = {key.meaning for key in self._suspects}
        if not meant:
            return
        names = {key.connector for key in self._suspects}
        found: list[SourceKey] = []
        for topic in self.topics:
            for record in topic.image.latest:
                key = parse_key(record.key)
                if isinstance(key, SourceKey) and key.connector in names and key.meaning in meant:
                    found.append(key)
        yield from offsets_findings.of_spellings(found)


def _may_be_second(key: SourceKey, orders: Orders) -> bool:
    """Whether another key may mean the same, where ``orders`` are those in which members came first.

    Keys that Connect spells, that have their members in one order and none of them twice, differ where their bytes do.
    """
    if not key.spelled_as_connect or key.partition is None or key.nested:
        return True
    order = tuple(key.partition)
    first = orders.get(names := frozenset(order))
    if first is None:
        orders[names] = first = order
    return order != first or key.text.count('":') > len(order)


class _Cursor:
    """Groups in the order of connectors, of which one connector's are asked for after the other's."""

    def __init__(self, groups: Iterator[Group | PlainRows]) -> None:
        self._groups = groups
        self._next = next(groups, None)

    def names_and(self, known: list[str]) -> Iterator[str]:
        """The connectors that have groups, and those in ``known``, in order. What was not asked for is passed over."""
        left = known[::-1]
        while left or self._next:
            name = min([*left[-1:], *([self._next[0]] if self._next else [])])
            while left and left[-1] == name:
                left.pop()
            yield name
            for _ in self.of(name):
                pass

    def of(self, name: str) -> Iterator[Group | PlainRows]:
        """The groups of ``name``; those of names before it are passed over."""
        while self._next is not None and self._next[0] <= name:
            group, self._next = self._next, next(self._groups, None)
            if group[0] == name:
                yield group


def _groups(topic: ReadTopic | None, found: list[Finding], plain: Plain | None = None) -> Iterator[Group | PlainRows]:
    """The records of each key together, in the order of connectors and keys; what Connect ignores is a finding."""
    if topic is None:
        return
    there = topic.image.latest
    if plain is None or not isinstance(there, SortedRecords):
        yield from _understood(topic, _latest(topic), found)
        return
    for rows in there.blocks():
        plain_rows = plain.tell(rows)
        if all(plain_rows) and rows[0][GROUP] == rows[-1][GROUP]:
            yield PlainRows(rows[0][GROUP].decode(), rows)
            continue
        owners = (row[0] if is_plain else None for row, is_plain in zip(rows, plain_rows, strict=True))
        start = 0
        for owner, same in groupby(owners):
            end = start + sum(1 for _ in same)
            if owner is None:
                yield from _understood(topic, map(record_in, rows[start:end]), found)
            else:
                yield PlainRows(owner.decode(), rows[start:end])
            start = end


def _understood(topic: ReadTopic, there: Iterable[ConsumerRecord], found: list[Finding]) -> Iterator[Group]:
    for raw, records in groupby(there, key=attrgetter("key")):
        key = parse_key(raw)
        if isinstance(key, SourceKey):
            yield key.connector, raw, (key, list(records), [])
        else:
            found += offsets_findings.of_foreign_records(topic.image.topic, [(record, key) for record in records])


def _offsets(
    sides: Sides, theirs: Iterator[Group | PlainRows], ours: Iterator[Group | PlainRows]
) -> Iterator[SourceOffset | PlainRows]:
    """What is plain as it is, and the others understood, in the order of the keys."""
    own = (each for each in ours if not isinstance(each, PlainRows))  # a dedicated topic's never are
    for _, some in groupby(theirs, key=type):
        first = next(some)
        if isinstance(first, PlainRows):  # of a connector that has nothing beside the global topic
            yield first
            yield from (each for each in some if isinstance(each, PlainRows))
        else:
            groups = (each for each in chain((first,), some) if not isinstance(each, PlainRows))
            yield from sides.offsets(_beside(groups, own))
    yield from sides.offsets(_beside(iter(()), own))


def _latest(topic: ReadTopic | None) -> Collection[ConsumerRecord]:
    if topic is None or topic.image.in_order:
        return topic.image.latest if topic else ()
    return [record_in(row) for row in in_order(topic.image.latest, owners_of)]


def names_in(records: Iterable[ConsumerRecord]) -> set[str]:
    return {key.connector for record in records if isinstance(key := parse_key(record.key), SourceKey)}


def _beside(theirs: Iterator[Group], ours: Iterator[Group]) -> Iterator[tuple[bytes, Entry | None, Entry | None]]:
    """What two topics have of each key, in the order of the keys."""
    left = ((raw, False, entry) for _, raw, entry in theirs)
    right = ((raw, True, entry) for _, raw, entry in ours)
    for raw, sides in groupby(merge(left, right, key=itemgetter(0)), key=itemgetter(0)):
        entries = {dedicated: entry for _, dedicated, entry in sides}
        yield raw, entries.get(False), entries.get(True)

"""What must hold on the topics after all that was done to tasks: a source of numbers tells its own
losses.

Every source partition gives 0, 1, 2 …; its record key names it, its offset is ``{"next": N}``.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.headers import Headers
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.connect.source_keys import SourceKey, decode_json, parse_key
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT, Marker
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.operations.transactions.hanging import open_transactions

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.kafka.records import ConsumerRecord

PATIENCE = 600.0
"""Seconds for the transactions of those that were killed to time out."""
Whose = Callable[[dict[str, Any]], bytes | None]


@dataclass(frozen=True)
class Verdict:
    """``findings`` are what is wrong, in words; ``records`` are the committed ones of each source
    partition.
    """

    findings: tuple[str, ...]
    records: dict[bytes | None, int]

    @property
    def kinds(self) -> set[str]:
        """The findings without their numbers."""
        return {finding.partition(":")[0] for finding in self.findings}


def judge(
    kafka: Kafka, topic: str, offsets: str, connector: str, whose: Whose = lambda partition: None
) -> Verdict:
    """Read both topics with read_committed, once no transaction is open on them; one that stays
    open is a finding.

    ``whose`` gives the record key of a source partition.
    """
    if found := _stays_open(kafka, topic, offsets):
        return Verdict(found, {})
    images = kafka.image([topic, offsets], patience=60, superseded=True)
    assert not any(image.held_back for image in images.values())
    committed, findings = _history(in_order(images[offsets]), connector, whose)
    return _verdict(findings, in_order(images[topic]), committed)


def judge_group(
    kafka: Kafka, topic: str, ends: Mapping[bytes, int], committed: Mapping[bytes, int]
) -> Verdict:
    """The same of a transform: ``topic`` has the offset of each record of the input, with its
    partition as the key. By partition, ``ends`` are those of the input, and ``committed`` are the
    group's offsets, which are to be the same.
    """
    if found := _stays_open(kafka, topic):
        return Verdict(found, {})
    image = kafka.image([topic], patience=60, superseded=True)[topic]
    assert not image.held_back
    findings = [
        f"not at the end: {_name(key)} of {end}, offset {committed.get(key)}"
        for key, end in sorted(ends.items())
        if committed.get(key) != end
    ]
    return _verdict(findings, in_order(image), committed)


def _stays_open(kafka: Kafka, *topics: str) -> tuple[str, ...]:
    """Once no transaction is open on the topics, nothing; else those that stay open."""
    deadline = time.monotonic() + PATIENCE
    while open_partitions(kafka, *topics):
        if time.monotonic() > deadline:
            return tuple(_open(kafka, *topics))
        time.sleep(0.2)
    return ()


def _verdict(
    findings: list[str], records: Iterable[ConsumerRecord], committed: Mapping[Any, int]
) -> Verdict:
    numbers: dict[bytes | None, list[ConsumerRecord]] = defaultdict(list)
    for record in records:
        numbers[record.key].append(record)
    for key in sorted({*numbers, *committed}, key=str):
        findings += _sequence(_name(key), numbers[key], committed.get(key, 0))
    return Verdict(tuple(findings), {key: len(records) for key, records in numbers.items()})


def in_order(image: Any) -> list[ConsumerRecord]:
    """Every record of a topic, by partition and offset."""
    return sorted((*image.latest, *image.superseded), key=lambda r: (r.partition, r.offset))


def open_partitions(kafka: Kafka, *topics: str) -> list[TopicPartition]:
    """Where a transaction is open."""
    extents = kafka.extents(list(topics))
    return [
        TopicPartition(t, p)
        for t, parts in extents.items()
        for p, e in parts.items()
        if e.stable < e.end
    ]


def markers(kafka: Kafka, topic: str) -> tuple[int, int]:
    """How many transactions were committed and aborted, counted by partition."""
    headers = Headers(kafka.properties(), timeout=30)
    counts: Counter[int] = Counter()
    try:
        for partition, extent in kafka.extents([topic])[topic].items():
            found = headers.read(TopicPartition(topic, partition), extent.first, extent.end)
            counts.update(each.outcome for each in found if isinstance(each, Marker))
    finally:
        headers.close()
    return counts[COMMIT], counts[ABORT]


def _open(kafka: Kafka, *topics: str) -> list[str]:
    """The transactions that are open, and what their coordinators say of them."""
    calls = TransactionClient(kafka.client, timeout=30)
    found = []
    try:
        for (place, producer_id), producer in open_transactions(
            calls.producers(calls.topic_partitions(topics))
        ).items():
            ids = [each.id for each in calls.listed(producer_ids=[producer_id]).seen]
            found.append(
                f"open: {place} from {producer.start_offset}, {producer}; {calls.describe(ids)}"
            )
    finally:
        calls.close()
    return found or ["open: nobody's, and readers are held back all the same"]


def _history(
    records: Iterable[ConsumerRecord], connector: str, whose: Whose
) -> tuple[dict[bytes | None, int], list[str]]:
    newest: dict[bytes | None, int] = {}
    places: dict[bytes | None, set[int]] = defaultdict(set)
    findings = []
    for record in records:
        key = parse_key(record.key)
        if not isinstance(key, SourceKey) or key.connector != connector or record.value is None:
            continue
        stored = decode_json(record.value.decode())[0]
        if "next" not in stored:
            continue  # what a StreamWriter remembers of its batches
        who = whose(key.partition or {})
        places[who].add(record.partition)
        offset = stored["next"]
        if offset < newest.get(who, 0):
            findings.append(f"offset went back: {_name(who)} from {newest[who]} to {offset}")
        newest[who] = offset
    findings += [
        f"offset in two places: {_name(who)} in partitions {sorted(where)}"
        for who, where in places.items()
        if len(where) > 1
    ]
    return newest, findings


def _sequence(name: str, records: list[ConsumerRecord], committed: int) -> list[str]:
    counted = Counter(int(record.value or b"") for record in records)
    twice = sum(n - 1 for n in counted.values())
    missing = [n for n in range(committed) if n not in counted]
    beyond = [n for n in counted if n >= committed]
    by_partition: dict[int, list[int]] = defaultdict(list)
    for record in records:
        by_partition[record.partition].append(int(record.value or b""))
    found = [
        (twice, "twice"),
        (len(missing), "missing"),
        (len(beyond), "beyond the offset"),
        (sum(values != sorted(values) for values in by_partition.values()), "out of order"),
    ]
    return [f"{what}: {count} of {name}, offset {committed}" for count, what in found if count]


def _name(key: bytes | None) -> str:
    return "the source" if key is None else f"source {key.decode()}"

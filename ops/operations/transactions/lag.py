"""The lag of read_committed consumers: from the last stable offset to the high watermark, with the
transaction that causes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.clients.protocols import KafkaReads, TransactionCalls
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.error_handling import PRODUCERS, Code, verdict
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Bounds, PartitionProducer, Transaction
from connectctl.ops.kafka.visibility import (
    Complete,
    Gap,
    Observation,
    gap_findings,
    gap_of,
    observation_of,
)
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.observe import Named
from connectctl.ops.operations.fencing.observe import describe_ids, read_config_topic
from connectctl.ops.operations.transactions import rules
from connectctl.ops.operations.transactions.hanging import (
    BLOCKING,
    hanging,
    open_transactions,
    refuse_unreadable,
    unread_findings,
)
from connectctl.ops.operations.transactions.listing import Owned, owned

LONG = 60.0
"""Seconds after which an open transaction on an internal topic is a warning: Connect's own
time-out.
"""


@dataclass(frozen=True)
class Suspect:
    """The transaction at a last stable offset. ``transaction`` is None if no coordinator knows the
    producer.
    """

    producer: PartitionProducer
    transaction: Owned | None
    hangs: bool

    def as_json(self, now: float) -> dict[str, Any]:
        """Return the JSON of the suspect; ``now`` in seconds since the epoch."""
        return {
            "producerId": self.producer.producer_id,
            "producerEpoch": self.producer.epoch,
            "startOffset": self.producer.start_offset,
            "hangs": self.hangs,
            "transaction": self.transaction.as_json(now) if self.transaction else None,
        }


@dataclass(frozen=True)
class Lag:
    """A partition and its lag for read_committed consumers. ``role`` is the role of its topic in
    the Connect cluster.
    """

    partition: TopicPartition
    role: str
    bounds: Bounds
    suspect: Suspect | None

    def as_json(self, now: float) -> dict[str, Any]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "role": self.role,
            "lastStableOffset": self.bounds.stable,
            "highWatermark": self.bounds.end,
            "lag": self.bounds.lag,
            "suspect": self.suspect.as_json(now) if self.suspect else None,
        }


@dataclass(frozen=True)
class Lags:
    partitions: tuple[Lag, ...]
    findings: tuple[Finding, ...]


def topic_roles(
    kafka: KafkaReads, group: ConnectGroup, named: Named
) -> Observation[dict[str, str]]:
    """Return the role of each internal topic of the group by name: config, offsets, status;
    dedicated topics are offsets.

    Raises the errors of ``find_internal_topics``.
    """
    found = find_internal_topics(kafka, group, named)
    roles = {found.config: "config", found.offsets: "offsets", found.status: "status"}
    gaps: tuple[Gap, ...] = ()
    try:
        connectors = read_config_topic(kafka, group, named).state.connectors.values()
        dedicated = kafka.existing(
            sorted({topic for connector in connectors if (topic := connector.config.get(TOPIC))})
        )
        roles |= {topic: "offsets" for topic in sorted(dedicated.seen) if topic not in roles}
        gaps = dedicated.gaps
    except ConnectctlError as e:
        gaps = (gap_of(e, "dedicated offsets topics"),)
    return observation_of({topic: role for topic, role in roles.items() if topic}, gaps)


def measure(
    calls: TransactionCalls, directory: TransactionalIdIndex, roles: Mapping[str, str], now: float
) -> Lags:
    """Return the lag of every partition of the topics in ``roles``; ``now`` in seconds since the
    epoch.
    """
    partitions = calls.topic_partitions(list(roles))
    bounds = calls.bounds(partitions)
    refuse_unreadable(bounds)
    lagging = [
        partition
        for partition in partitions
        if isinstance(bound := bounds[partition], Bounds) and bound.lag
    ]
    producers = calls.producers(lagging) if lagging else {}
    held = suspects_of(calls, directory, producers) if lagging else Complete({})
    suspects = held.seen
    lags = tuple(
        Lag(partition, roles[partition.topic], bound, suspects.get(partition))
        for partition in partitions
        if isinstance(bound := bounds[partition], Bounds)
    )
    problems = [
        _unread(partition, code)
        for partition in partitions
        if isinstance(code := bounds[partition], Code)
    ]
    found = filter(None, (finding(lag, now) for lag in lags))
    return Lags(lags, (*gap_findings(held.gaps), *unread_findings(producers), *problems, *found))


def suspects_of(
    calls: TransactionCalls,
    directory: TransactionalIdIndex,
    producers: Mapping[TopicPartition, Any],
) -> Observation[dict[TopicPartition, Suspect]]:
    """Return for each partition the first open transaction, which holds the last stable offset.

    ``producers`` is the first reading of the partitions.

    The observation is partial if such a transaction may belong to an id that was not described; it
    is not reported as hanging then.
    """
    before = open_transactions(producers)
    listed = calls.listed(producer_ids=sorted({number for _, number in before})) if before else None
    owners = {listing.producer_id: listing.id for listing in listed.seen} if listed else {}
    described = describe_ids(calls, sorted(set(owners.values())))
    unknown = hanging(
        before, owners, described, open_transactions(calls.producers(list(producers)))
    )
    gaps = listed.gaps if listed and any(h.id is None for h in unknown) else ()
    hang = {
        (h.topic_partition, h.producer.producer_id) for h in unknown if h.id is not None or not gaps
    }
    found: dict[TopicPartition, Suspect] = {}
    for (partition, number), producer in sorted(
        before.items(), key=lambda item: item[1].start_offset or 0
    ):
        known = described.get(owners.get(number, ""))
        transaction = owned(known, directory) if isinstance(known, Transaction) else None
        found.setdefault(partition, Suspect(producer, transaction, (partition, number) in hang))
    return observation_of(found, gaps)


def finding(lag: Lag, now: float) -> Finding | None:
    suspect = lag.suspect
    if suspect is None:
        return None
    if suspect.hangs:
        words = BLOCKING.get(lag.role, "A hanging transaction blocks read_committed consumers.")
        hint = (
            f"connectctl transactions abort --topic {lag.partition.topic} --partition "
            f"{lag.partition.partition}"
        )
        since = suspect.producer.last_timestamp / 1000
        return rules.BLOCKING_TRANSACTION.found(str(lag.partition), words, hint, since=since)
    return _open_for_long(lag, suspect, now)


def _open_for_long(lag: Lag, suspect: Suspect, now: float) -> Finding | None:
    seconds = suspect.transaction.transaction.seconds_open(now) if suspect.transaction else None
    if suspect.transaction is None or seconds is None or seconds < LONG:
        return None
    id = suspect.transaction.transaction.id
    since = suspect.transaction.transaction.open_since
    message = (
        f"{id} has a transaction open for {seconds:.0f} s; read_committed consumers cannot "
        "read beyond it."
    )
    hint = (
        f"connectctl transactions show {id}. If its producer is gone: connectctl transactions "
        f"abort {id}."
    )
    return rules.OPEN_FOR_LONG.found(str(lag.partition), message, hint, since=since)


def _unread(partition: TopicPartition, code: Code) -> Finding:
    answer = verdict(PRODUCERS, code, partition.topic)
    return rules.UNREAD.found(
        str(partition), f"Could not be read: {answer.meaning}.", answer.advice
    )

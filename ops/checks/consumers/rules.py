"""READER001 … and SINK001: who reads what source connectors write without read_committed, as far as it can be seen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from connectctl.ops.checks.consumers.observe import COMMITTED, ISOLATION, MIRROR, SINK, UNCOMMITTED, ReaderFacts
from connectctl.ops.checks.severity import leads_to_enabled
from connectctl.ops.checks.types import Wish
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.brokers import SHARE

if TYPE_CHECKING:
    from connectctl.ops.checks.consumers.observe import Beyond, Reading, Written
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.kafka.brokers import ReaderGroup

_WHY = "It gets records of transactions that are aborted later, and for those there is no exactly-once"
_SOURCE = "KIP-98, isolation.level"
_SHOWN = 20
"""Names in one sentence."""

SINK_READS_ALL = Rule(
    "READER001",
    Severity.WARNING,
    "A sink reads a source connector's topics without read_committed",
    _WHY,
    _SOURCE,
    """
    A source task with exactly-once support writes in transactions. When one fails, its transaction is aborted, and the
    records are written again by the next. They stay in the topic, and only readers with isolation.level=read_committed
    leave them out.

    Kafka's default is read_uncommitted, and exactly-once source support does not change it for sinks. A sink's consumer
    has what consumer.override.isolation.level of the connector says, else consumer.isolation.level of the worker.

    Set consumer.override.isolation.level=read_committed, before the workers are enabled: it does no harm. The sink then
    waits for the end of each transaction, so that records come as late as transactions are long.
    """,
)
MIRROR_READS_ALL = Rule(
    "READER002",
    Severity.WARNING,
    "A MirrorSourceConnector copies a source connector's topics without read_committed",
    "Records of aborted transactions are copied as if they had been committed, and cannot be distinguished any more",
    "MirrorSourceConnector.exactlyOnceSupport",
    """
    A mirror writes what it reads into new transactions or none. Whether the original was committed is not copied. So a
    mirror with read_uncommitted turns aborted records into committed ones, and its readers cannot help it.

    Set source.consumer.isolation.level=read_committed on the mirror (in MirrorMaker's own file: CLUSTER.consumer.…). With
    exactly.once.support=required Connect refuses a mirror without it; with requested it does not.

    Only mirrors that run in this Connect cluster are seen, and judged by the default topic filter.
    """,
)
PROVEN = Rule(
    "READER003",
    Severity.WARNING,
    "A consumer group has read records of a transaction that is still open",
    _WHY,
    _SOURCE,
    """
    Brokers do not tell a consumer's isolation.level. But no read_committed reader gets beyond the last stable offset,
    where the first open transaction begins. This group has committed an offset above it, and the last stable offset was
    asked for after that: it never goes back. So the group reads with read_uncommitted.

    The one other way to such an offset is that somebody set it by hand, to the latest, while nobody was reading.

    Set isolation.level=read_committed in the consumers of that group. In Kafka Streams it comes with
    processing.guarantee=exactly_once_v2, in librdkafka it is the default.
    """,
)
SHARES_ALL = Rule(
    "READER004",
    Severity.WARNING,
    "A share group reads a source connector's topics without read_committed",
    _WHY,
    "KIP-932, share.isolation.level",
    """
    The isolation level of a share group is no setting of its consumers but of the group, on the brokers, and can be seen.
    It is read_uncommitted unless somebody set it.

    Set it: kafka-configs.sh --alter --group GROUP --add-config share.isolation.level=read_committed. It holds for all
    consumers of the group at once.
    """,
)
CANNOT_BE_SEEN = Rule(
    "READER005",
    Severity.INFO,
    "Consumer groups read a source connector's topics, and their isolation level is unknown",
    "With exactly-once, only read_committed readers get each record once",
    _SOURCE,
    """
    No request tells a consumer's isolation.level. A group gives itself away only when it commits while a transaction is
    open (READER003). So this is a list of whom to ask: each group that has committed offsets on one of the topics, or has
    members that were assigned some.

    Who reads without a group is not on it: Spark and Flink, consumers that assign partitions themselves and keep their
    offsets elsewhere, mirrors of other Connect clusters, and the REST proxies of this world.

    The default is read_uncommitted in Java and most others, and read_committed in librdkafka and what is built on it
    (confluent-kafka for Python, Go and .NET).
    """,
)
SINKS_UNTOUCHED = Rule(
    "SINK001",
    Severity.INFO,
    "Sink connectors are untouched by exactly-once source support",
    "Their delivery guarantees are what they were; only source connectors get transactions",
    "KIP-618, Motivation",
    """
    exactly.once.source.support is about source connectors alone. Sinks go on as before: they commit their offsets after
    put, and are at least once unless the connector itself keeps offsets in the system that it writes to.

    What changes for them is what they read: topics with transactions in them, for which they want
    consumer.override.isolation.level=read_committed (READER001). exactly.once.support, transaction.boundary and
    offsets.storage.topic mean nothing to a sink.

    Like all connectors they move between workers while those are restarted.
    """,
)
RULES: tuple[Rule, ...] = (SINK_READS_ALL, MIRROR_READS_ALL, PROVEN, SHARES_ALL, CANNOT_BE_SEEN, SINKS_UNTOUCHED)


def check(facts: ReaderFacts, wish: Wish) -> Iterator[Finding]:
    """Everything about readers and sinks, where source connectors have transactions or are to have them."""
    yield from sinks_untouched(facts, wish)
    if not leads_to_enabled(facts.enabled, wish):
        return
    for reading in facts.connectors:
        yield from reads_all(reading)
    for group in facts.groups:
        yield from proven(group, facts)
        yield from shares_all(group, facts)
    for source in facts.sources:
        yield from cannot_be_seen(source, facts)


def sinks_untouched(facts: ReaderFacts, wish: Wish) -> Iterator[Finding]:
    """SINK001, once."""
    if facts.sinks and wish in (Wish.PREPARING, Wish.ENABLED):
        message = f"{_some(facts.sinks)}: exactly-once source support changes nothing for sinks."
        hint = f"Set consumer.override.{ISOLATION}={COMMITTED} on those that read what source connectors write."
        yield SINKS_UNTOUCHED.found("sinks", message, hint)


def reads_all(reading: Reading) -> Iterator[Finding]:
    """READER001 and READER002, for each connector that does not have read_committed as far as anybody says."""
    rule = {SINK: SINK_READS_ALL, MIRROR: MIRROR_READS_ALL}[reading.kind]
    if reading.level == COMMITTED:
        return
    message = f"It reads {_some(reading.topics)}"
    if reading.level is not None:
        message += f" with {ISOLATION}={reading.level}."
    elif reading.kind == SINK:
        message += (
            f", and {reading.property} is not set: read_uncommitted, unless the workers set consumer.{ISOLATION}."
        )
    else:
        message += f", and {reading.property} is not set: read_uncommitted."
    yield rule.found(reading.name, message, f"Set {reading.property}={COMMITTED}")


def proven(group: ReaderGroup, facts: ReaderFacts) -> Iterator[Finding]:
    """READER003, for a group with evidence."""
    evidence = facts.beyond.get(group.id, ())
    if not evidence:
        return
    first = evidence[0]
    message = (
        f"It committed {first.committed} on {first.place}; read_committed readers get no further than {first.stable}"
    )
    message += f", and so on {len(evidence) - 1} more partitions." if len(evidence) > 1 else "."
    if not group.active and _at_the_end(evidence):
        message += " It has no members now, so its offsets may have been set by hand."
    yield PROVEN.found(group.id, message + _clients(group), f"Set {ISOLATION}={COMMITTED} in its consumers.")


def shares_all(group: ReaderGroup, facts: ReaderFacts) -> Iterator[Finding]:
    """READER004, for a share group."""
    if group.type == SHARE and group.isolation == UNCOMMITTED:
        message = f"It reads {_some(group.topics & facts.topics)}, and its share.isolation.level is {group.isolation}."
        hint = f"kafka-configs.sh --alter --group {group.id} --add-config share.isolation.level={COMMITTED}"
        yield SHARES_ALL.found(group.id, message, hint)


def cannot_be_seen(source: Written, facts: ReaderFacts) -> Iterator[Finding]:
    """READER005, for each source connector, with the groups of which nothing is known."""
    unknown = {group for topic in source.topics for group in facts.unexplained.get(topic, ())}
    if unknown:
        message = f"What it writes is read by {_some(unknown)}; their {ISOLATION} is unknown."
        yield CANNOT_BE_SEEN.found(source.name, message, f"Check {ISOLATION}={COMMITTED} in their consumers.")


def _at_the_end(evidence: tuple[Beyond, ...]) -> bool:
    return all(each.committed == each.end for each in evidence)


def _clients(group: ReaderGroup) -> str:
    clients = sorted({f"{member.client_id} at {member.host.lstrip('/')}" for member in group.members})
    return f" Its members: {_some(clients)}." if clients else ""


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more

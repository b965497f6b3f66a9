"""TOPIC007 to TOPIC013: the durability and availability of the workers' topics and dedicated
offsets topics.

``cluster_findings`` has TOPIC001 to TOPIC006 about the workers' three topics; these rules add them
for dedicated offsets topics. TXN001 and TXN004, about transactions that hold a topic back, are from
``transactions.lag``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect import cluster_findings
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.offset_store import TOPIC, connects_to
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Case, Several, rule
from connectctl.ops.core.unseen import Unseen, answer_of, unseen_by
from connectctl.ops.kafka import replication
from connectctl.ops.kafka.brokers import BrokerVersion, bounds_min_in_sync
from connectctl.ops.kafka.replication import numbers
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.operations.transactions.lag import measure

OFFSETS, DEDICATED = "offsets", "dedicated offsets"
TOMBSTONES, SHORTEST_MS = "delete.retention.ms", 60 * 60 * 1000
"""The milliseconds in which any worker reads a whole topic."""


@dataclass(frozen=True)
class TopicsSeen:
    """The topics of Connect's state, with their roles by name; a dedicated offsets topic is
    ``DEDICATED``.

    ``bounded``: the brokers bound min.insync.replicas by the number of replicas. ``held`` are
    findings about transactions that hold the topics back.
    """

    topics: tuple[TopicFacts, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 1
    bounded: bool = True
    held: tuple[Finding, ...] = ()
    unseen: tuple[Unseen, ...] = ()

    def role(self, topic: TopicFacts) -> str:
        """Return the role of a topic."""
        return self.roles.get(topic.name, DEDICATED)


def observe(context: CheckContext, now: float) -> TopicsSeen:
    """Observe every internal topic, and the transactions on it; ``now`` in seconds since the
    epoch.
    """
    roles = _roles(context)
    kafka = context.edges.kafka
    unseen: list[Unseen] = []
    found: dict[str, TopicFacts] = {}
    brokers = 1
    bounded = True
    with ThreadPoolExecutor(2) as pool:
        # ``transactions.lag`` has one role for all offsets topics.
        named = {name: OFFSETS if role == DEDICATED else role for name, role in roles.items()}
        versions = pool.submit(context.edges.brokers().versions)
        lag = pool.submit(measure, context.edges.transactions(), context.directory, named, now)
        try:
            existing = kafka.existing(list(roles))
            unseen += [
                Unseen(f"the layout of {gap.subject}", gap.why, gap.next_step)
                for gap in existing.gaps
            ]
            found, brokers = kafka.topics(sorted(existing.seen)), kafka.brokers()
        except ConnectctlError as e:
            unseen.append(unseen_by("the layout of internal topics", e))
        with suppress(ConnectctlError):  # the area of the brokers reports unknown versions
            known = versions.result().values()
            bounded = bounds_min_in_sync(
                version for version in known if isinstance(version, BrokerVersion)
            )
        held = (
            answer_of(lambda: lag.result().findings, unseen, "transactions on internal topics")
            or ()
        )
    for name, topic in found.items():
        if not topic.config:
            hint = f"Grant this principal DescribeConfigs on the topic {name}."
            unseen.append(
                Unseen(f"the settings of {name}", "this principal may not describe them", hint)
            )
    # Missing topics are reported by TOPIC002, and by STORE003 and STORE004 for dedicated ones.
    return TopicsSeen(tuple(found.values()), roles, brokers, bounded, held, tuple(unseen))


def _roles(context: CheckContext) -> dict[str, str]:
    """Return every topic of the workers' Kafka cluster to observe, with its role."""
    dedicated = {
        source.config[TOPIC]
        for source in context.sources
        if source.config.get(TOPIC)
        and connects_to(source.config, "producer", context.edges.bootstrap)
    }
    return dict.fromkeys(sorted(dedicated), DEDICATED) | {
        name: role for role, name in context.internal.items()
    }


@rule("TOPIC007", Severity.ERROR, each="topics")
def no_leader(facts: TopicsSeen, topic: TopicFacts, goal: Goal) -> Case | None:
    """Return TOPIC007 if partitions of the topic have no leader."""
    leaderless = replication.leaderless(topic)
    message = f"No broker leads {numbers(leaderless)} of the {facts.role(topic)} topic."
    return (
        Case(topic.name, message, "Start the brokers that host its replicas.")
        if leaderless
        else None
    )


@rule("TOPIC008", Severity.ERROR, each="topics")
def refuses_writes(facts: TopicsSeen, topic: TopicFacts, goal: Goal) -> Case | None:
    """Return TOPIC008 if partitions have fewer in-sync replicas than min.insync.replicas."""
    few = replication.too_few_in_sync(topic, bounded=facts.bounded)
    message = (
        f"On {numbers(few)} of the {facts.role(topic)} topic fewer replicas are in sync than "
        f"min.insync.replicas ({replication.min_in_sync(topic)})."
    )
    return Case(topic.name, message, replication.cure_of_too_few(topic)) if few else None


@rule("TOPIC009", Severity.WARNING, each="topics")
def acknowledged_alone(facts: TopicsSeen, topic: TopicFacts, goal: Goal) -> Case | None:
    """Return TOPIC009 if the leader alone may acknowledge a write."""
    if not replication.keeps_no_second_copy(topic):
        return None
    replicas = replication.fewest_replicas(topic)
    message = (
        f"min.insync.replicas of the {facts.role(topic)} topic is 1, with {replicas} replicas."
    )
    return Case(topic.name, message, replication.alter(topic.name, f"{replication.MIN_IN_SYNC}=2"))


@rule("TOPIC010", Severity.WARNING, each="topics")
def unclean(facts: TopicsSeen, topic: TopicFacts, goal: Goal) -> Case | None:
    """Return TOPIC010 if a replica that is out of sync may become the leader."""
    if not replication.elects_uncleanly(topic):
        return None
    message = f"{replication.UNCLEAN} of the {facts.role(topic)} topic is true."
    return Case(topic.name, message, replication.alter(topic.name, f"{replication.UNCLEAN}=false"))


@rule("TOPIC011", Severity.WARNING, each="topics")
def stops_with_one(facts: TopicsSeen, topic: TopicFacts, goal: Goal) -> Case | None:
    """Return TOPIC011 if the loss of one broker stops all writes."""
    if not replication.stops_with_one_broker(topic):
        return None
    replicas, minimum = replication.fewest_replicas(topic), replication.min_in_sync(topic)
    message = (
        f"The {facts.role(topic)} topic has {replicas} replicas, and its "
        f"min.insync.replicas is {minimum}."
    )
    return Case(
        topic.name,
        message,
        replication.alter(topic.name, f"{replication.MIN_IN_SYNC}={replicas - 1}"),
    )


@rule("TOPIC012", Severity.INFO, each="topics")
def one_partition(facts: TopicsSeen, topic: TopicFacts, goal: Goal) -> Iterator[Case]:
    """Yield TOPIC012 for an offsets topic with one partition.

    The config topic must have one, and the status topic has no transactions.
    """
    if facts.role(topic) in (OFFSETS, DEDICATED) and topic.partitions == 1:
        hint = (
            "Leave it as it is, or: connectctl offsets merge CONNECTOR --into dedicated "
            "--topic NAME --stop"
        )
        yield Case(topic.name, f"The {facts.role(topic)} topic has one partition.", hint)


@rule("TOPIC013", Severity.WARNING, each="topics")
def tombstones_go_early(facts: TopicsSeen, topic: TopicFacts, goal: Goal) -> Iterator[Case]:
    """Yield TOPIC013 if tombstones are removed so early that a worker may miss one."""
    value = whole_number(topic.config.get(TOMBSTONES))
    if value is not None and value < SHORTEST_MS:
        message = f"{TOMBSTONES} of the {facts.role(topic)} topic is {value:,}."
        hint = replication.alter(topic.name, f"{TOMBSTONES}=86400000")
        yield Case(topic.name, message, hint)


@Several
def of_topics(facts: TopicsSeen, goal: Goal) -> Iterator[Finding]:
    """Yield TOPIC005 and TOPIC006 for dedicated offsets topics, and the findings about
    transactions.
    """
    for topic in facts.topics:
        if facts.role(topic) == DEDICATED:
            about = (
                cluster_findings.under_replicated(DEDICATED, topic),
                cluster_findings.not_replicated(DEDICATED, topic, facts.brokers),
            )
            yield from filter(None, about)
    yield from facts.held

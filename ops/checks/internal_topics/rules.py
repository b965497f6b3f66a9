"""TOPIC007 …: whether the workers' topics, and the offsets topics of connectors, keep and take what is written to them.

What ``cluster_findings`` says of the workers' three topics (TOPIC001 to TOPIC006) is not said again, but of dedicated
offsets topics it is. Transactions that hold a topic back are TXN001 and TXN004, of ``transactions.lag``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.types import Goal, Unseen, answer_of, unseen_by
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect import cluster_findings as say
from connectctl.ops.connect.offset_store import TOPIC, connects_to
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Case, Several, rule
from connectctl.ops.kafka import replication
from connectctl.ops.kafka.brokers import BrokerVersion, bounds_min_in_sync
from connectctl.ops.kafka.replication import numbers
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.operations.transactions.lag import measure

OFFSETS, DEDICATED = "offsets", "dedicated offsets"
TOMBSTONES, SHORTEST_MS = "delete.retention.ms", 60 * 60 * 1000
"""Milliseconds in which any worker has read a topic from its beginning to its end."""


@dataclass(frozen=True)
class TopicsSeen:
    """The topics that Connect keeps its state in, with their roles by name; a dedicated offsets topic is ``DEDICATED``.

    ``bounded``: the brokers want no more replicas in sync than there are. ``held`` are findings about transactions that
    hold the topics back.
    """

    topics: tuple[TopicFacts, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 1
    bounded: bool = True
    held: tuple[Finding, ...] = ()
    unseen: tuple[Unseen, ...] = ()

    def role(self, topic: TopicFacts) -> str:
        """The role of a topic."""
        return self.roles.get(topic.name, DEDICATED)


def observe(context: CheckContext, now: float) -> TopicsSeen:
    """See every internal topic, and the transactions on them; ``now`` in seconds since the epoch."""
    roles = _roles(context)
    kafka = context.edges.kafka
    unseen: list[Unseen] = []
    found: dict[str, TopicFacts] = {}
    brokers = 1
    bounded = True
    with ThreadPoolExecutor(2) as pool:
        # ``transactions.lag`` calls every offsets topic by the one role.
        named = {name: OFFSETS if role == DEDICATED else role for name, role in roles.items()}
        asking = pool.submit(context.edges.brokers().versions)
        measuring = pool.submit(measure, context.edges.transactions(), context.directory, named, now)
        try:
            there = kafka.existing(list(roles))
            unseen += [Unseen(f"the layout of {gap.subject}", gap.why, gap.next_step) for gap in there.gaps]
            found, brokers = kafka.topics(sorted(there.seen)), kafka.brokers()
        except ConnectctlError as e:
            unseen.append(unseen_by("the layout of internal topics", e))
        with suppress(ConnectctlError):  # that their versions are unseen is said with the brokers
            known = asking.result().values()
            bounded = bounds_min_in_sync(each for each in known if isinstance(each, BrokerVersion))
        held = answer_of(lambda: measuring.result().findings, unseen, "transactions on internal topics") or ()
    for name, facts in found.items():
        if not facts.config:
            hint = f"Grant this principal DescribeConfigs on the topic {name}."
            unseen.append(Unseen(f"the settings of {name}", "this principal may not describe them", hint))
    # One that does not exist is reported elsewhere: TOPIC002, and STORE003 and STORE004 for dedicated ones.
    return TopicsSeen(tuple(found.values()), roles, brokers, bounded, held, tuple(unseen))


def _roles(context: CheckContext) -> dict[str, str]:
    """Every topic of the workers' Kafka cluster that is to be looked at, with its role."""
    dedicated = {
        each.config[TOPIC]
        for each in context.sources
        if each.config.get(TOPIC) and connects_to(each.config, "producer", context.edges.bootstrap)
    }
    return dict.fromkeys(sorted(dedicated), DEDICATED) | {name: role for role, name in context.internal.items()}


@rule("TOPIC007", Severity.ERROR, each="topics")
def no_leader(seen: TopicsSeen, facts: TopicFacts, goal: Goal) -> Case | None:
    dark = replication.leaderless(facts)
    message = f"No broker leads {numbers(dark)} of the {seen.role(facts)} topic."
    return Case(facts.name, message, "Start the brokers that host its replicas.") if dark else None


@rule("TOPIC008", Severity.ERROR, each="topics")
def refuses_writes(seen: TopicsSeen, facts: TopicFacts, goal: Goal) -> Case | None:
    few = replication.too_few_in_sync(facts, bounded=seen.bounded)
    message = (
        f"On {numbers(few)} of the {seen.role(facts)} topic fewer replicas are in sync than min.insync.replicas "
        f"({replication.min_in_sync(facts)})."
    )
    return Case(facts.name, message, replication.cure_of_too_few(facts)) if few else None


@rule("TOPIC009", Severity.WARNING, each="topics")
def acknowledged_alone(seen: TopicsSeen, facts: TopicFacts, goal: Goal) -> Case | None:
    if not replication.keeps_no_second_copy(facts):
        return None
    replicas = replication.fewest_replicas(facts)
    message = f"min.insync.replicas of the {seen.role(facts)} topic is 1, with {replicas} replicas."
    return Case(facts.name, message, replication.alter(facts.name, f"{replication.MIN_IN_SYNC}=2"))


@rule("TOPIC010", Severity.WARNING, each="topics")
def unclean(seen: TopicsSeen, facts: TopicFacts, goal: Goal) -> Case | None:
    if not replication.elects_uncleanly(facts):
        return None
    message = f"{replication.UNCLEAN} of the {seen.role(facts)} topic is true."
    return Case(facts.name, message, replication.alter(facts.name, f"{replication.UNCLEAN}=false"))


@rule("TOPIC011", Severity.WARNING, each="topics")
def stops_with_one(seen: TopicsSeen, facts: TopicFacts, goal: Goal) -> Case | None:
    if not replication.stops_with_one_broker(facts):
        return None
    replicas, wanted = replication.fewest_replicas(facts), replication.min_in_sync(facts)
    message = f"The {seen.role(facts)} topic has {replicas} replicas, and its min.insync.replicas is {wanted}."
    return Case(facts.name, message, replication.alter(facts.name, f"{replication.MIN_IN_SYNC}={replicas - 1}"))


@rule("TOPIC012", Severity.INFO, each="topics")
def one_partition(seen: TopicsSeen, facts: TopicFacts, goal: Goal) -> Iterator[Case]:
    """TOPIC012, for offsets topics; the config topic must have one, the status topic has no transactions."""
    if seen.role(facts) in (OFFSETS, DEDICATED) and facts.partitions == 1:
        hint = "Leave it as it is, or: connectctl offsets merge CONNECTOR --into dedicated --topic NAME --stop"
        yield Case(facts.name, f"The {seen.role(facts)} topic has one partition.", hint)


@rule("TOPIC013", Severity.WARNING, each="topics")
def tombstones_go_early(seen: TopicsSeen, facts: TopicFacts, goal: Goal) -> Iterator[Case]:
    value = whole_number(facts.config.get(TOMBSTONES))
    if value is not None and value < SHORTEST_MS:
        message = f"{TOMBSTONES} of the {seen.role(facts)} topic is {value:,}."
        hint = replication.alter(facts.name, f"{TOMBSTONES}=86400000")
        yield Case(facts.name, message, hint)


@Several
def of_topics(seen: TopicsSeen, goal: Goal) -> Iterator[Finding]:
    """TOPIC005 and TOPIC006 of dedicated offsets topics, and what holds topics back."""
    for facts in seen.topics:
        if seen.role(facts) == DEDICATED:
            about = (say.under_replicated(DEDICATED, facts), say.not_replicated(DEDICATED, facts, seen.brokers))
            yield from filter(None, about)
    yield from seen.held

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
from connectctl.ops.checks.types import Unseen, answer_of, unseen_by
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect import cluster_findings as say
from connectctl.ops.connect.offset_store import TOPIC, connects_to
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka import replication
from connectctl.ops.kafka.brokers import BrokerVersion, bounds_min_in_sync
from connectctl.ops.kafka.replication import numbers
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.operations.transactions.lag import measure

OFFSETS, DEDICATED = "offsets", "dedicated offsets"
TOMBSTONES, SHORTEST_MS = "delete.retention.ms", 60 * 60 * 1000
"""Milliseconds in which any worker has read a topic from its beginning to its end."""

NO_LEADER = Rule("TOPIC007", Severity.ERROR)
REFUSES_WRITES = Rule("TOPIC008", Severity.ERROR)
ACKNOWLEDGED_ALONE = Rule("TOPIC009", Severity.WARNING)
UNCLEAN = Rule("TOPIC010", Severity.WARNING)
STOPS_WITH_ONE = Rule("TOPIC011", Severity.WARNING)
ONE_PARTITION = Rule("TOPIC012", Severity.INFO)
TOMBSTONES_GO_EARLY = Rule("TOPIC013", Severity.WARNING)


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


def check(seen: TopicsSeen) -> Iterator[Finding]:
    """Everything about the internal topics; what they are is the same for every goal."""
    for facts in seen.topics:
        role = seen.roles.get(facts.name, DEDICATED)
        yield from _writable(role, facts, bounded=seen.bounded)
        yield from _durable(role, facts)
        yield from one_partition(role, facts)
        yield from tombstones_go_early(role, facts)
        if role == DEDICATED:
            about = (say.under_replicated(role, facts), say.not_replicated(role, facts, seen.brokers))
            yield from filter(None, about)
    yield from seen.held


def _writable(role: str, facts: TopicFacts, *, bounded: bool) -> Iterator[Finding]:
    """TOPIC007 and TOPIC008."""
    if dark := replication.leaderless(facts):
        message = f"No broker leads {numbers(dark)} of the {role} topic."
        yield NO_LEADER.found(facts.name, message, "Start the brokers that host its replicas.")
    if few := replication.too_few_in_sync(facts, bounded=bounded):
        message = (
            f"On {numbers(few)} of the {role} topic fewer replicas are in sync than min.insync.replicas "
            f"({replication.min_in_sync(facts)})."
        )
        yield REFUSES_WRITES.found(facts.name, message, replication.cure_of_too_few(facts))


def _durable(role: str, facts: TopicFacts) -> Iterator[Finding]:
    """TOPIC009 to TOPIC011."""
    replicas = replication.fewest_replicas(facts)
    if replication.keeps_no_second_copy(facts):
        message = f"min.insync.replicas of the {role} topic is 1, with {replicas} replicas."
        hint = replication.alter(facts.name, f"{replication.MIN_IN_SYNC}=2")
        yield ACKNOWLEDGED_ALONE.found(facts.name, message, hint)
    if replication.elects_uncleanly(facts):
        message = f"{replication.UNCLEAN} of the {role} topic is true."
        yield UNCLEAN.found(facts.name, message, replication.alter(facts.name, f"{replication.UNCLEAN}=false"))
    if replication.stops_with_one_broker(facts):
        wanted = replication.min_in_sync(facts)
        message = f"The {role} topic has {replicas} replicas, and its min.insync.replicas is {wanted}."
        hint = replication.alter(facts.name, f"{replication.MIN_IN_SYNC}={replicas - 1}")
        yield STOPS_WITH_ONE.found(facts.name, message, hint)


def one_partition(role: str, facts: TopicFacts) -> Iterator[Finding]:
    """TOPIC012, for offsets topics; the config topic must have one, the status topic has no transactions."""
    if role in (OFFSETS, DEDICATED) and facts.partitions == 1:
        hint = "Leave it as it is, or: connectctl offsets merge CONNECTOR --into dedicated --topic NAME --stop"
        yield ONE_PARTITION.found(facts.name, f"The {role} topic has one partition.", hint)


def tombstones_go_early(role: str, facts: TopicFacts) -> Iterator[Finding]:
    """TOPIC013."""
    value = whole_number(facts.config.get(TOMBSTONES))
    if value is not None and value < SHORTEST_MS:
        message = f"{TOMBSTONES} of the {role} topic is {value:,}."
        hint = replication.alter(facts.name, f"{TOMBSTONES}=86400000")
        yield TOMBSTONES_GO_EARLY.found(facts.name, message, hint)

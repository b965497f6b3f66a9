"""How safe the partitions of a topic are, by their replicas and by what the topic asks of them.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from connectctl.ops.config.numbers import whole_number
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka.topics import TopicFacts

MIN_IN_SYNC, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def min_in_sync(facts: TopicFacts) -> int | None:
    """How many replicas must have a write before it is acknowledged; None where the topic's
    settings are hidden.
    """
    return whole_number(facts.config.get(MIN_IN_SYNC))


def fewest_replicas(facts: TopicFacts) -> int:
    """The replicas of the partition that has the fewest."""
    return min(facts.replicas.values(), default=0)


def leaderless(facts: TopicFacts) -> list[int]:
    """The partitions that can be neither read nor written, because no broker leads them."""
    return sorted(partition for partition, leader in facts.leaders.items() if leader is None)


def too_few_in_sync(facts: TopicFacts, *, bounded: bool = True) -> list[int]:
    """The partitions that refuse writes with ``acks=all``: fewer replicas are in sync than the
    topic wants.

    ``bounded``: the brokers want no more than there are (``ops.kafka.brokers.bounds_min_in_sync``).
    """
    wanted = min_in_sync(facts)
    if wanted is None:
        return []
    led = [p for p in facts.in_sync if facts.leaders.get(p, 0) is not None]
    return sorted(
        p for p in led if facts.in_sync[p] < (min(wanted, facts.replicas[p]) if bounded else wanted)
    )


def behind(facts: TopicFacts, *, bounded: bool = True) -> list[int]:
    """The partitions that have fewer replicas in sync than replicas, and still take writes."""
    short = {*too_few_in_sync(facts, bounded=bounded), *leaderless(facts)}
    return sorted(
        p
        for p, count in facts.replicas.items()
        if facts.in_sync.get(p, 0) < count and p not in short
    )


def keeps_no_second_copy(facts: TopicFacts) -> bool:
    """Whether a write is acknowledged with one copy of it, where three replicas would allow for
    more.
    """
    return min_in_sync(facts) == 1 and fewest_replicas(facts) >= 3


def stops_with_one_broker(facts: TopicFacts) -> bool:
    """Whether writes stop as soon as any one replica is away, as in every rolling restart of the
    brokers.
    """
    wanted, there = min_in_sync(facts), fewest_replicas(facts)
    return wanted is not None and there > 1 and wanted >= there


def elects_uncleanly(facts: TopicFacts) -> bool:
    """Whether a replica that lacks acknowledged writes may become leader."""
    return facts.config.get(UNCLEAN) == "true"


def cure_of_too_few(facts: TopicFacts) -> str:
    """What to do about partitions with too few in sync: more brokers, unless there are not enough
    replicas at all.
    """
    wanted, there = min_in_sync(facts) or 0, fewest_replicas(facts)
    return (
        alter(facts.name, f"{MIN_IN_SYNC}={there}")
        if there < wanted
        else "Start the brokers that host its replicas."
    )


def alter(topic: str, setting: str) -> str:
    """The command that changes a topic's setting."""
    return f"kafka-configs.sh --alter --topic {topic} --add-config {setting}"


def numbers(partitions: Sequence[int]) -> str:
    """Partitions for a sentence."""
    return (
        f"{'partition' if len(partitions) == 1 else 'partitions'} "
        f"{some_of([*map(str, partitions)], 10)}"
    )

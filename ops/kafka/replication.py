"""How safe the partitions of a topic are, by their replicas and by the configuration of the topic.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from connectctl.ops.config.numbers import whole_number
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka.topics import TopicFacts

MIN_IN_SYNC, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def min_in_sync(facts: TopicFacts) -> int | None:
    """Return how many replicas must have a write before it is acknowledged; None if the topic's
    configuration is hidden.
    """
    return whole_number(facts.config.get(MIN_IN_SYNC))


def fewest_replicas(facts: TopicFacts) -> int:
    """Return the replicas of the partition that has the fewest."""
    return min(facts.replicas.values(), default=0)


def leaderless(facts: TopicFacts) -> list[int]:
    """Return the partitions that can be neither read nor written, because no broker leads them."""
    return sorted(partition for partition, leader in facts.leaders.items() if leader is None)


def too_few_in_sync(facts: TopicFacts, *, bounded: bool = True) -> list[int]:
    """Return the partitions that refuse writes with ``acks=all``: fewer replicas are in sync than
    the topic requires.

    ``bounded``: the brokers require at most the number of replicas
    (``ops.kafka.brokers.bounds_min_in_sync``).
    """
    required = min_in_sync(facts)
    if required is None:
        return []
    led = [p for p in facts.in_sync if facts.leaders.get(p, 0) is not None]
    return sorted(
        p
        for p in led
        if facts.in_sync[p] < (min(required, facts.replicas[p]) if bounded else required)
    )


def partitions_out_of_sync(facts: TopicFacts, *, bounded: bool = True) -> list[int]:
    """Return the partitions that have fewer replicas in sync than replicas, and still take writes."""
    short = {*too_few_in_sync(facts, bounded=bounded), *leaderless(facts)}
    return sorted(
        p
        for p, count in facts.replicas.items()
        if facts.in_sync.get(p, 0) < count and p not in short
    )


def brokers_out_of_sync(facts: TopicFacts) -> str:
    """Return the brokers that have replicas which are not in sync, in words."""
    if not facts.out_of_sync:
        return "the brokers"
    brokers = ", ".join(map(str, sorted(facts.out_of_sync)))
    return f"broker{'s'[: len(facts.out_of_sync) - 1]} {brokers}"


def keeps_no_second_copy(facts: TopicFacts) -> bool:
    """Return whether a write is acknowledged with one copy, although three replicas would allow for
    more.
    """
    return min_in_sync(facts) == 1 and fewest_replicas(facts) >= 3


def stops_with_one_broker(facts: TopicFacts) -> bool:
    """Return whether writes stop when any one replica is offline, as in every rolling restart of
    the brokers.
    """
    required, fewest = min_in_sync(facts), fewest_replicas(facts)
    return required is not None and fewest > 1 and required >= fewest


def elects_uncleanly(facts: TopicFacts) -> bool:
    """Return whether a replica without acknowledged writes may become leader."""
    return facts.config.get(UNCLEAN) == "true"


def cure_of_too_few(facts: TopicFacts) -> str:
    """Return the next step for partitions with too few replicas in sync: start brokers, or create
    replicas if there are not enough.
    """
    required, fewest = min_in_sync(facts) or 0, fewest_replicas(facts)
    return (
        alter(facts.name, f"{MIN_IN_SYNC}={fewest}")
        if fewest < required
        else "Start the brokers that host its replicas."
    )


def alter(topic: str, setting: str) -> str:
    """Return the command that changes a topic's setting."""
    return f"kafka-configs.sh --alter --topic {topic} --add-config {setting}"


def numbers(partitions: Sequence[int]) -> str:
    """Partitions for a sentence."""
    return (
        f"{'partition' if len(partitions) == 1 else 'partitions'} "
        f"{some_of([*map(str, partitions)], 10)}"
    )

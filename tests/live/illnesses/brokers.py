"""Illnesses of the workers' topics, planted one after the other on three brokers."""

from __future__ import annotations

from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from fakes.sandboxes import kill_broker, start_broker
from live.illnesses.bed import Bed, Where, situation
from live.illnesses.workers import members
from live.real import eventually

GONE = 3
"""The broker that is killed."""


def set_config(bed: Bed, topic: str, name: str, value: str | None) -> None:
    """Set a topic's property, or remove it."""
    what = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value, incremental_operation=what)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in bed.admin.incremental_alter_configs([resource]).values():
        future.result()


def without_a_broker(bed: Bed) -> None:
    kill_broker(bed.cluster, GONE)
    bed.closing.append(lambda: start_broker(bed.cluster, GONE))


@situation("The status topic begins a segment each second, to be compacted", where=Where.BROKERS)
def a_topic_with_short_segments(bed: Bed) -> None:
    topic = bed.cluster.topics["status"]
    set_config(bed, topic, "segment.ms", "1000")
    bed.closing.append(lambda: set_config(bed, topic, "segment.ms", None))
    bed.source("one\n")
    bed.runs()


@situation("A worker was restarted in order, and its tasks came back", where=Where.BROKERS)
def a_worker_is_restarted(bed: Bed) -> None:
    bed.source("one\n")
    bed.runs()
    bed.cluster.group.stop_worker(2)
    bed.cluster.group.start_worker(2)
    bed.runs()


@situation(
    "Retention deletes from the status topic",
    "TOPIC004",
    "cleanup.policy of the status topic is delete",
    where=Where.BROKERS,
)
def a_topic_is_not_compacted(bed: Bed) -> None:
    topic = bed.cluster.topics["status"]
    set_config(bed, topic, "cleanup.policy", "delete")
    bed.closing.append(lambda: set_config(bed, topic, "cleanup.policy", "compact"))


@situation(
    "One of three brokers is down",
    "TOPIC005",
    "are under-replicated",
    where=Where.BROKERS,
    also=["BROKER008"],
)
def a_broker_is_down(bed: Bed) -> None:
    without_a_broker(bed)


@situation(
    "A broker is down, and the config topic wants all three in sync",
    "TOPIC008",
    "fewer replicas are in sync",
    where=Where.BROKERS,
    also=["TOPIC005", "BROKER008"],
)
def a_topic_takes_no_writes(bed: Bed) -> None:
    topic = bed.cluster.topics["config"]
    set_config(bed, topic, "min.insync.replicas", "3")
    bed.closing.append(lambda: set_config(bed, topic, "min.insync.replicas", "2"))
    without_a_broker(bed)


@situation(
    "The broker is down that has a connector's offsets topic alone",
    "TOPIC007",
    "No broker leads",
    where=Where.BROKERS,
    also=["TOPIC005", "BROKER008", "TXN002", "UNSEEN001"],
)
def a_topic_has_no_leader(bed: Bed) -> None:
    own = f"{bed.name}-offsets"
    policy = {"cleanup.policy": "compact"}
    topic = NewTopic(own, 1, replica_assignment=[[GONE]], config=policy)
    bed.admin.create_topics([topic])[own].result()
    bed.source(state="STOPPED", offsets__storage__topic=own)
    bed.states("STOPPED")
    without_a_broker(bed)


@situation(
    "A worker was killed, and its tasks wait for its return",
    "CLUSTER003",
    "A worker has left",
    where=Where.BROKERS,
)
def a_worker_is_killed(bed: Bed) -> None:
    for number in (1, 2):
        bed.source("one\n", name=f"{bed.name}-{number}")
        bed.states("RUNNING", "RUNNING", name=f"{bed.name}-{number}")
    bed.cluster.group.stop_worker(2, kill=True)
    eventually(lambda: len(members(bed)) == 1)


@situation(
    "The config topic was given a second partition",
    "TOPIC003",
    "has 2 partitions",
    where=Where.BROKERS,
    also=["CLUSTER003", "GROUP006"],
)
def the_config_topic_has_two_partitions(bed: Bed) -> None:
    more = NewPartitions(bed.cluster.topics["config"], 2)
    for future in bed.admin.create_partitions([more]).values():
        future.result()

"""Checks the preconditions of a run: brokers, group, topics and Spark master."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from connectctl.ops.clients.spark.session import without_context
from connectctl.ops.core.errors import BadInput, Refused, Unreachable
from connectctl.ops.core.finding import counted
from connectctl.ops.kafka.brokers import BrokerVersion
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.connectors.access import ConnectorAccess
from connectctl.ops.operations.connectors.contradictions import refuse_doubtful
from connectctl.ops.operations.connectors.observe import read_facts

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.clients.protocols import BrokerReads
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.task_runtime.job.internal_topics import RunClients
    from connectctl.ops.task_runtime.job.job_file import Job
    from connectctl.ops.task_runtime.spi.subscription import Subscription

AUTO_CREATE = "auto.create.topics.enable"
BUILT_IN_FROM = "connectctl.ops.task_runtime.connectors."
_MASTERS = re.compile(r"(local(\[[^]]*\])?|local-cluster\[[^]]*\]|yarn|(spark|k8s)://.+)")


def check_brokers(scene: RunClients, *, reads_groups: bool) -> None:
    """Raise ``Refused`` if brokers are too old for exactly-once, and with ``reads_groups`` also if
    they are too old for offsets of a consumer group.
    """
    for brokers in scene.brokers:
        if reads_groups:
            brokers_know_groups(brokers)
        brokers_verify(brokers)


def live_workers(group: ConnectGroup) -> Refused:
    """Return the error for a run in ``group``, which has live workers."""
    return Refused(
        f"Group {group.id} has live workers; running here would fence their tasks",
        why=f"the group has {counted(len(group.members), 'worker')}",
        next_step="Use a separate --group-id, or --take-over to stop the connector on its workers "
        "during the run.",
        code="live-workers",
    )


def check_take_over(scene: RunClients, name: str, config_topic: str) -> None:
    """Raise ``Refused`` if the workers and the config topic contradict each other about the
    connector. Also raises the errors of requests to the workers.
    """
    if scene.workers is not None:
        facts = partial(read_facts, scene.kafka, scene.group.id, config_topic)
        found = ConnectorAccess(scene.workers, scene.kafka, scene.group, facts).connectors([name])
        refuse_doubtful(each.connector for each in found)


def check_target(scene: RunClients, name: str, path: str, config: Mapping[str, str]) -> None:
    """Raise ``Refused`` if the topic of a built-in connector does not exist and no broker creates
    it automatically.

    The topics of other connectors are unknown here. Their tasks fail with the error of the broker.
    """
    topic = config.get("topic")
    if not path.startswith(BUILT_IN_FROM) or topic is None or those_that_exist(scene.target, topic):
        return
    answers = scene.brokers[-1].settings([AUTO_CREATE]).values()
    if {
        answer[AUTO_CREATE]
        for answer in answers
        if isinstance(answer, dict) and AUTO_CREATE in answer
    } == {"false"}:
        raise Refused(
            f"The topic {topic} of {name} does not exist, and the brokers do not create topics "
            "automatically",
            why=f"{AUTO_CREATE}=false",
            next_step=f"Create it: kafka-topics.sh --create --topic {topic}",
            code="no-topic",
        )


def missing_inputs(kafka: Kafka, reads: Subscription) -> list[str]:
    """Return a clause for each input topic that does not exist, or for the pattern that no topic
    matches.
    """
    if reads.regex is not None:
        matches = any(re.fullmatch(reads.regex, topic) for topic in kafka.topic_names())
        return [] if matches else [f"No topic matches topics.regex={reads.regex}"]
    existing = those_that_exist(kafka, *reads.topics)
    return [
        f"The input topic {topic} does not exist" for topic in reads.topics if topic not in existing
    ]


def check_inputs(reads: Subscription, missing: Sequence[str], job: Job) -> None:
    """Raise ``Refused`` if the run ends by itself and all its input topics are missing."""
    if missing and job.until.ends and len(missing) >= len(reads.topics):
        raise Refused(
            missing[0],
            why=f"the job runs {job.until}, and has no other input",
            next_step="Create the topic, correct topics, or run it with until: {forever: true}.",
            code="no-topic",
        )


def brokers_know_groups(brokers: BrokerReads) -> None:
    """Raise ``Refused`` if a broker accepts group offsets in a transaction without the generation
    of the group (KIP-447). A member that was removed from the group could commit then: librdkafka
    omits the generation for such a broker without an error.
    """
    versions = [v for v in brokers.versions().values() if isinstance(v, BrokerVersion)]
    if old := [lacks for v in versions if (lacks := v.lacks_of_groups)]:
        raise Refused(
            "Brokers do not support the group metadata commit API, which requires 2.5 or above "
            "(KIP-447)",
            why="; ".join(old),
            next_step="Upgrade the brokers to 3.6 or newer.",
            code="old-brokers",
        )


def brokers_verify(brokers: BrokerReads) -> None:
    """Raise ``Refused`` if a broker does not verify transactions: a late write of a fenced task
    could be committed.
    """
    old = [
        v for v in brokers.versions().values() if isinstance(v, BrokerVersion) and not v.verifies
    ]
    if old:
        text = ", ".join(f"{v.id} ({'.'.join(map(str, v.release))})" for v in old)
        raise Refused(
            f"Brokers older than 3.6 do not guarantee exactly-once: {text}",
            why="they can add a late write of a fenced task to a transaction of its successor "
            "(KIP-890, part 1)",
            next_step="Upgrade the brokers.",
            code="old-brokers",
        )


def check_master(master: str, timeout: float) -> None:
    """Raise ``BadInput`` if ``master`` is not a Spark master, ``Unreachable`` if a standalone
    master does not accept a connection.
    """
    if master.startswith("sc://"):
        raise without_context()
    if not _MASTERS.fullmatch(master):
        hint = "Use local[N], spark://HOST:PORT, k8s://URL or yarn."
        raise BadInput(f"Invalid Spark master {master}", next_step=hint, code="bad-master")
    if not master.startswith("spark://"):
        return
    failures: list[str] = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout).close()
            return
        except (OSError, ValueError) as e:
            failures.append(str(e))
    raise Unreachable(
        f"The Spark master {master} does not answer",
        why=failures[0],
        next_step="Check spark.master.",
    )

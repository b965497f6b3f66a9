"""What a run needs of brokers, of the group and of Spark before it is started; what is missing is
refused.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import BadInput, Refused, Unreachable
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
    """Raises ``Refused`` where brokers are too old for exactly-once; ``reads_groups``: also for
    offsets of a group.
    """
    for brokers in scene.brokers:
        if reads_groups:
            brokers_know_groups(brokers)
        brokers_verify(brokers)


def live_workers(group: ConnectGroup) -> Refused:
    """A run beside the workers of ``group`` is refused."""
    return Refused(
        f"Group {group.id} has live workers; running here would fence their tasks",
        why=f"{len(group.members)} workers are members of the group",
        next_step="Use a separate --group-id, or --take-over to stop the connector on its workers "
        "during the run.",
        code="live-workers",
    )


def check_take_over(scene: RunClients, name: str, config_topic: str) -> None:
    """Raises what keeps the workers of the connector from being asked, and ``Refused`` where they
    contradict the topic.
    """
    if scene.workers is not None:
        facts = partial(read_facts, scene.kafka, scene.group.id, config_topic)
        found = ConnectorAccess(scene.workers, scene.kafka, scene.group, facts).connectors([name])
        refuse_doubtful(each.connector for each in found)


def check_target(scene: RunClients, name: str, path: str, config: Mapping[str, str]) -> None:
    """Raises ``Refused`` where the topic that a built-in connector writes to is not there, and no
    broker will create it.

    The topics of other connectors are unknown here: its tasks fail with the brokers' words.
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
    there = those_that_exist(kafka, *reads.topics)
    return [
        f"The input topic {topic} does not exist" for topic in reads.topics if topic not in there
    ]


def check_inputs(reads: Subscription, missing: Sequence[str], job: Job) -> None:
    """Raises ``Refused`` for a job with an end that has nothing to read: it would wait for the
    topic in vain.
    """
    if missing and job.until.ends and len(missing) >= len(reads.topics):
        raise Refused(
            missing[0],
            why=f"the job runs {job.until}, and has no other input",
            next_step="Create the topic, correct topics, or run it with until: {forever: true}.",
            code="no-topic",
        )


def brokers_know_groups(brokers: BrokerReads) -> None:
    """Raises ``Refused`` where a broker takes offsets into a transaction without the group's
    generation (KIP-447): a member that the group has lost could commit. librdkafka would leave the
    generation out, and say nothing.
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
    """Raises ``Refused`` where a broker does not verify transactions: a late write of a fenced task
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
    """Raises ``BadInput`` for what is not a Spark master, ``Unreachable`` where a standalone one
    does not answer.
    """
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

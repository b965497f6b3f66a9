"""Findings about a cluster's group, workers and internal topics, each with its stable id.

One function returns the finding of one id. Its docstring says when the finding is raised and why it
matters. The function returns None where there is no finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from connectctl.ops.config.masking import masked
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.rest_membership import NotAMember
from connectctl.ops.connect.worker import Support, Worker
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.group_state import is_dead
from connectctl.ops.kafka.replication import brokers_out_of_sync
from connectctl.ops.kafka.topics import TopicFacts

NO_MEMBERS = Rule("CLUSTER001", Severity.ERROR)
REBALANCING = Rule("CLUSTER002", Severity.INFO)
REBALANCE_DELAYED = Rule("CLUSTER003", Severity.WARNING)
WORKER_SILENT = Rule("CLUSTER004", Severity.ERROR)
VERSIONS_DIFFER = Rule("CLUSTER005", Severity.WARNING)
SUPPORT_DIFFERS = Rule("CLUSTER006", Severity.WARNING)
OTHER_CLUSTER = Rule("CLUSTER007", Severity.ERROR)
SAME_ADDRESS = Rule("CLUSTER008", Severity.ERROR)
CONFIG_LAG = Rule("CLUSTER009", Severity.WARNING)
SEEN_IN_TOPICS = Rule("CLUSTER010", Severity.WARNING)
CONNECTORS_UNSEEN = Rule("CLUSTER011", Severity.ERROR)
UNREPORTED = Rule("CLUSTER012", Severity.WARNING)
EMPTY_TOPIC_CHOSEN = Rule("TOPIC001", Severity.WARNING)
TOPIC_MISSING = Rule("TOPIC002", Severity.ERROR)
TOO_MANY_PARTITIONS = Rule("TOPIC003", Severity.ERROR)
NOT_COMPACTED = Rule("TOPIC004", Severity.ERROR)
UNDER_REPLICATED = Rule("TOPIC005", Severity.WARNING)
NOT_REPLICATED = Rule("TOPIC006", Severity.WARNING)


def no_members(group: ConnectGroup) -> Finding | None:
    """Return CLUSTER001 if the group has no member: all workers are down, or the group id is
    wrong.
    """
    if group.members:
        return None
    message = "No worker is in the group; nothing runs."
    if is_dead(group.state):
        message = (
            "The group does not exist: all workers have been down for a while, or the group "
            "id is wrong."
        )
    hint = (
        "Start the workers. If they run, check --group-id: it is the group.id in their properties."
    )
    return NO_MEMBERS.found(group.id, message, hint)


def rebalancing(group: ConnectGroup) -> Finding | None:
    """Return CLUSTER002 if the group is rebalancing: assignments are known when it is Stable
    again.
    """
    if group.settled:
        return None
    return REBALANCING.found(
        group.id, f"The group is rebalancing ({group.state}). Try again when it has ended."
    )


def rebalance_delayed(group: ConnectGroup) -> Finding | None:
    """Return CLUSTER003 if a worker left and its connectors and tasks wait for its return."""
    if not group.delay_ms:
        return None
    message = (
        "A worker has left. Its connectors and tasks stay unassigned for up to "
        f"{group.delay_ms / 1000:g} s (scheduled.rebalance.max.delay.ms), counted from the last "
        "rebalance."
    )
    return REBALANCE_DELAYED.found(group.id, message, "Bring the worker back, or wait.")


def worker_silent(worker: Worker) -> Finding | None:
    """Return CLUSTER004 if a member's REST server does not answer: requests that are forwarded to
    it fail. One that is ``hung`` is reported by GROUP005.
    """
    if worker.problem is None or worker.without_rest or worker.hung:
        return None
    role = "The leader" if worker.leader else "This worker"
    message = (
        f"{role} is in the group, but its REST server cannot be used: {worker.problem.rstrip('.')}."
    )
    hint = (
        "Check rest.advertised.host.name, listeners and firewalls; or give --rest addresses "
        "that work from here."
    )
    if worker.shut:
        hint = "Check rest_auth and rest_tls: connectctl context show."
    return WORKER_SILENT.found(
        worker.address,
        message,
        hint,
        severity=Severity.ERROR if worker.leader else Severity.WARNING,
    )


def versions_differ(workers: Sequence[Worker], since: float | None = None) -> Finding | None:
    """Return CLUSTER005 if workers run different versions, which is normal during a rolling upgrade
    only. ``since`` is when the first one of an upgrade joined, in seconds since the epoch.
    """
    versions = Counter(w.version for w in workers if w.version)
    if len(versions) < 2:
        return None
    text = ", ".join(f"{version} on {count}" for version, count in sorted(versions.items()))
    if since is not None:
        message = f"A rolling upgrade is in progress: they run different versions, {text}."
        return VERSIONS_DIFFER.found("workers", message, severity=Severity.INFO, since=since)
    return VERSIONS_DIFFER.found("workers", f"They run different versions: {text}.")


def support_differs(workers: Sequence[Worker]) -> Finding | None:
    """Return CLUSTER006 if some workers only have exactly-once enabled; the guarantee needs all
    (KIP-618).
    """
    lacking = [
        w.address for w in workers if w.support in (Support.NOT_ENABLED, Support.NOT_SUPPORTED)
    ]
    if not lacking or not any(w.support is Support.ENABLED for w in workers):
        return None
    message = (
        f"Exactly-once source support is enabled on some workers and not on {', '.join(lacking)}."
    )
    return SUPPORT_DIFFERS.found("workers", message, "Finish the rollout, or roll it back.")


def other_cluster(worker: Worker, cluster_id: str) -> Finding | None:
    """Return CLUSTER007 if the server at a worker's address uses another Kafka cluster: the address
    is wrong.
    """
    if worker.cluster_id in (None, cluster_id):
        return None
    message = (
        f"The worker at {worker.url} uses the Kafka cluster {worker.cluster_id}, not {cluster_id}."
    )
    hint = "Correct rest.advertised.host.name and .port of the worker."
    return OTHER_CLUSTER.found(worker.address, message, hint)


def same_address(workers: Sequence[Worker]) -> Finding | None:
    """Return CLUSTER008 if several members advertise one address: workers forward requests to the
    wrong one.
    """
    twice = sorted(
        url for url, count in Counter(w.url for w in workers if w.url).items() if count > 1
    )
    if not twice:
        return None
    message = f"Several workers advertise the address {', '.join(twice)}."
    hint = "Give each its own rest.advertised.host.name or rest.advertised.port."
    return SAME_ADDRESS.found("workers", message, hint)


def config_lag(group: ConnectGroup) -> Finding | None:
    """Return CLUSTER009 if the leader assigned with an older config offset than a member's; a new
    round follows.
    """
    if not any(m.assignment and m.assignment.config_mismatch for m in group.members):
        return None
    offsets = ", ".join(f"{m.url or m.name} at {m.config_offset}" for m in group.members)
    message = (
        "The last assignment failed: the leader had read less of the config topic than "
        f"another worker ({offsets})."
    )
    return CONFIG_LAG.found(group.id, message, "Try again; if it persists, see the leader's log.")


def seen_in_topics(
    group: ConnectGroup, error: ConnectctlError | None = None, *, shut: bool = False
) -> Finding:
    """Return CLUSTER010: no worker answers, or none grants access (``shut``), so connectors are
    read from the config and status topics.

    Workers without REST cannot answer, which is not a fault.
    """
    message: str = (
        "No worker grants access to its REST API" if shut else "No worker answers over REST"
    )
    hint: str | None = None
    severity = Severity.WARNING
    if group.without_rest:
        message = "Its workers have no REST API, as MirrorMaker 2 in dedicated mode"
        hint, severity = (
            "To change connectors, edit mm2.properties and restart the process.",
            Severity.INFO,
        )
    elif error is not None:
        # The secrets of the connectors are known only now that their configurations are read.
        message, hint = (
            masked(f"{error.what}: {error.why}" if error.why else error.what),
            error.next_step,
        )
        severity = Severity.ERROR if isinstance(error, NotAMember) else severity
    message = f"{message}; connectors are read from the config and status topics."
    return SEEN_IN_TOPICS.found(group.id, message, hint, severity=severity)


def connectors_unseen(group: ConnectGroup, why: str) -> Finding:
    """Return CLUSTER011: no worker answers and the topics cannot be read; the connectors are
    unknown.
    """
    return CONNECTORS_UNSEEN.found(group.id, f"The state of the connectors is unknown: {why}.")


def unreported(connectors: Sequence[str], *, starting: bool = False) -> Finding | None:
    """Return CLUSTER012 if a part's newest status is from a worker that no longer has it, and its
    owner wrote none; as information while workers are ``starting`` what they were assigned.
    """
    if not connectors:
        return None
    message = (
        "They are assigned to workers that have not reported on them since. They may still run: a "
        "worker that was cut off for a while keeps its tasks and writes no new status."
    )
    hint = f"Try again; if it persists: connectctl connectors restart {' '.join(connectors)}"
    subject = ", ".join(connectors)
    if starting:
        hint = "They may be starting; try again in half a minute."
        return UNREPORTED.found(subject, message, hint, severity=Severity.INFO)
    return UNREPORTED.found(subject, message, hint)


def empty_topic_chosen(topic: str, role: str) -> Finding:
    """Return TOPIC001: a compacted topic without records was chosen, and no record proves its
    role.
    """
    message = (
        f"It is assumed to be the {role} topic, by its name or because no other compacted topic "
        "is left; no record proves it."
    )
    hint = f"Give --{role}-topic, or topics.{role} in the context."
    return EMPTY_TOPIC_CHOSEN.found(topic, message, hint)


def topic_missing(role: str, why: str, hint: str, *, fresh: bool = False) -> Finding:
    """Return TOPIC002: the internal topic does not exist, was not found, or is one of several
    candidates.
    """
    if fresh:
        message = (
            f"{why}. The cluster has no connectors, so nothing is kept there yet; its "
            "layout is not checked."
        )
        return TOPIC_MISSING.found(f"{role} topic", message, hint, severity=Severity.WARNING)
    return TOPIC_MISSING.found(f"{role} topic", f"{why}.", hint)


def too_many_partitions(role: str, facts: TopicFacts) -> Finding | None:
    """Return TOPIC003 if the config topic has several partitions: record order is lost, workers do
    not start.
    """
    if role != "config" or facts.partitions == 1:
        return None
    message = (
        f"The config topic has {facts.partitions} partitions and must have one; workers "
        "refuse to start with it."
    )
    return TOO_MANY_PARTITIONS.found(
        facts.name, message, "Copy its records to a topic with one partition."
    )


def not_compacted(role: str, facts: TopicFacts) -> Finding | None:
    """Return TOPIC004 if ``cleanup.policy`` is not ``compact``: records get deleted, and workers do
    not start.
    """
    policy = facts.config.get("cleanup.policy")
    if policy in (None, "compact"):
        return None
    hint = f"kafka-configs.sh --alter --topic {facts.name} --add-config cleanup.policy=compact"
    if policy == "":
        message = (
            f"cleanup.policy of the {role} topic is empty: workers start with it and lose "
            "nothing, but it is never compacted: it grows without end, and every start reads all "
            "of it."
        )
        return NOT_COMPACTED.found(facts.name, message, hint, severity=Severity.WARNING)
    message = (
        f"cleanup.policy of the {role} topic is {policy}; Kafka will delete from it, and "
        "workers refuse to start."
    )
    return NOT_COMPACTED.found(facts.name, message, hint)


def under_replicated(role: str, facts: TopicFacts) -> Finding | None:
    """Return TOPIC005 if some partitions have fewer in-sync replicas than replicas."""
    under = [
        p for p, replicas in sorted(facts.replicas.items()) if facts.in_sync.get(p, 0) < replicas
    ]
    if not under:
        return None
    message = (
        f"{len(under)} of {facts.partitions} partitions of the {role} topic are under-replicated"
    )
    brokers = brokers_out_of_sync(facts)
    message += f": replicas on {brokers} are not in sync."
    return UNDER_REPLICATED.found(facts.name, message, f"Check {brokers}.")


def not_replicated(role: str, facts: TopicFacts, brokers: int) -> Finding | None:
    """Return TOPIC006 if a topic has one replica on several brokers: the loss of one broker loses
    it.
    """
    if brokers < 2 or not facts.replicas or min(facts.replicas.values()) > 1:
        return None
    message = (
        f"The {role} topic has one replica on a Kafka cluster of {brokers} brokers; losing "
        "one broker may lose it."
    )
    return NOT_REPLICATED.found(facts.name, message, "Raise its replication factor, best to 3.")

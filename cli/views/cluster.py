"""The views of ``cluster show``: tables for users, JSON members for scripts."""

from __future__ import annotations

from typing import Any

from connectctl.cli.output.terminal import Block
from connectctl.cli.views import connectors
from connectctl.ops.connect.worker import Worker
from connectctl.ops.operations.cluster.observe import ClusterView, InternalTopic

DOUBT = {"not enabled": "not enabled (preparing or disabled)"}
SPARE_OF_TOPICS = ("CLEANUP", "REPLICAS", "PARTITIONS", "IN-SYNC")


# ------------------------------------------------------------------------------------------- tables


def blocks(view: ClusterView, wide: bool) -> list[Block]:
    """Return the tables: the group, its workers, the internal topics, the connectors."""
    return [_group(view, wide), _workers(view, wide), _topics(view, wide), _connectors(view, wide)]


def _connectors(view: ClusterView, wide: bool) -> Block:
    return connectors.block(view.connectors, wide, seen=view.connectors_from != "nothing")


def _group(view: ClusterView, wide: bool) -> Block:
    group = view.group
    delay = f"{group.delay_ms / 1000:g} s" if group.delay_ms else "-"
    columns = ["GROUP", "STATE", "PROTOCOL", "WORKERS", "REBALANCE-DELAY", "KAFKA-CLUSTER"]
    row = [
        group.id,
        group.state,
        group.protocol or "-",
        str(len(group.members)),
        delay,
        view.cluster_id,
    ]
    return Block(
        columns, [row], spare=() if wide else ("REBALANCE-DELAY", "PROTOCOL", "KAFKA-CLUSTER")
    )


def _workers(view: ClusterView, wide: bool) -> Block:
    columns = ["WORKER", "LEADER", "VERSION", "REST", "EXACTLY-ONCE", "CONNECTORS", "TASKS"]
    more = ["CONFIG-OFFSET", "URL", "PROBLEM"] if wide else []
    rows = [_worker(worker, wide) for worker in view.workers]
    return Block(
        columns + more,
        rows,
        "No worker is in the group.",
        () if wide else ("VERSION", "CONNECTORS", "REST"),
    )


def _worker(worker: Worker, wide: bool) -> list[str]:
    support = worker.support.value
    row = [
        worker.address,
        "leader" if worker.leader else "",
        worker.version or "-",
        _rest(worker),
        DOUBT.get(support, support),
        str(worker.connectors),
        str(worker.tasks),
    ]
    return row + ([str(worker.config_offset), worker.url, worker.problem or ""] if wide else [])


def _rest(worker: Worker) -> str:
    if worker.without_rest:
        return "none"
    return "ok" if worker.problem is None else "no answer"


def _topics(view: ClusterView, wide: bool) -> Block:
    columns = ["TOPIC", "NAME", "PARTITIONS", "REPLICAS", "IN-SYNC", "CLEANUP", "FINDINGS"]
    return Block(
        columns,
        [_topic(topic, view) for topic in view.topics],
        spare=() if wide else SPARE_OF_TOPICS,
    )


def _topic(topic: InternalTopic, view: ClusterView) -> list[str]:
    ids = [f.id for f in view.findings if f.subject in (topic.name, f"{topic.role} topic")]
    if topic.facts is None:
        return [topic.role, topic.name or "not found", "-", "-", "-", "-", ",".join(ids)]
    facts = topic.facts
    replicas, in_sync = sum(facts.replicas.values()), sum(facts.in_sync.values())
    policy = facts.config.get("cleanup.policy", "?") or "none"
    each = "/".join(map(str, sorted(set(facts.replicas.values()))))
    whole = "all" if in_sync == replicas else f"{in_sync} of {replicas}"
    return [
        topic.role,
        facts.name,
        str(facts.partitions),
        each,
        whole,
        policy,
        ",".join(ids) or "-",
    ]


# --------------------------------------------------------------------------------------------- JSON


def as_json(view: ClusterView) -> dict[str, Any]:
    leader = next((worker.url for worker in view.workers if worker.leader), None)
    return {
        "clusterId": view.cluster_id,
        "groupId": view.group.id,
        "group": {
            "state": view.group.state,
            "protocol": view.group.protocol or None,
            "leader": leader,
            "rebalanceDelayMs": view.group.delay_ms,
        },
        "workers": list(map(_worker_json, view.workers)),
        "topics": list(map(_topic_json, view.topics)),
        "connectorsFrom": view.connectors_from,
        "connectors": list(map(connectors.as_json, view.connectors)),
        "findings": [finding.as_json() for finding in view.findings],
    }


def _worker_json(worker: Worker) -> dict[str, Any]:
    return {
        "address": worker.address,
        "url": worker.url or None,
        "leader": worker.leader,
        "version": worker.version,
        "reachable": worker.problem is None,
        "problem": worker.problem,
        "exactlyOnceSupport": worker.support.value,
        "connectors": worker.connectors,
        "tasks": worker.tasks,
        "configOffset": worker.config_offset,
    }


def _topic_json(topic: InternalTopic) -> dict[str, Any]:
    facts = topic.facts
    return {
        "role": topic.role,
        "name": topic.name,
        "partitions": facts.partitions if facts else None,
        "replicationFactor": min(facts.replicas.values(), default=None) if facts else None,
        "underReplicated": sum(facts.in_sync.get(p, 0) < n for p, n in facts.replicas.items())
        if facts
        else None,
        "cleanupPolicy": facts.config.get("cleanup.policy") if facts else None,
    }

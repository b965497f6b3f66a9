"""Reports the statuses of connectors in the status topics of workers and runs, and the group
members that killed runs left.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

from connectctl.ops.clients.kafka_protocol.pending_offsets import in_words, transactions_holding
from connectctl.ops.config.masking import masked
from connectctl.ops.connect.connector import statuses_from_topic
from connectctl.ops.connect.internal_topics import run_status_topic
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.plan import Plan
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.operations.cluster.internal_topic_discovery import (
    check_named,
    find_internal_topics,
)
from connectctl.ops.operations.connectors.observe import PATIENCE
from connectctl.ops.task_runtime.job.config_topic_records import config_topic_state
from connectctl.ops.task_runtime.job.group_members import TaskMembers
from connectctl.ops.task_runtime.job.internal_topics import RunClients, default_topics
from connectctl.ops.task_runtime.job.left_members import (
    LeftMembers,
    MembersContext,
    left_members,
    plan_removal,
)
from connectctl.ops.task_runtime.job.status_topic import RUN_PREFIX, TaskStatus, statuses_from
from connectctl.ops.task_runtime.spi.delivery_settings import target_cluster
from connectctl.ops.task_runtime.spi.subscription import REGEX, TOPICS, subscription


def statuses(scene: RunClients, group: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the statuses of the connectors ``names``, or of all connectors if it is empty. Raises
    ``BadInput`` for unknown topics and names.
    """
    topics = _topics(scene, group, "status")
    check_named(scene.kafka, {"status": topics["status"]})
    images = scene.kafka.image([topics["status"], run_status_topic(group)], patience=PATIENCE)
    sources = [
        (images[topic].latest, prefix, topic)
        for topic, prefix in _where(topics["status"], group, images)
    ]
    existing = sorted({name for source in sources for name in names_of(*source)})
    if unknown := [name for name in names if name not in existing]:
        raise BadInput(f"No status of {unknown[0]} in {topics['status']}", code="unknown-connector")
    now = time.time()
    chosen = {name: _chosen(sources, name) for name in names or existing}
    matching = [
        name
        for name, (_, topic) in chosen.items()
        if topic == run_status_topic(group) or not scene.group.members
    ]
    configs = run_configs(scene, group, matching)
    kafka: Any = scene.kafka
    found = []
    for name, (parts, topic) in chosen.items():
        ended = parts.get(None) is not None and parts[None].state != "RUNNING"
        tasks = [
            _task(n, parts[n], now, ended=ended) for n in sorted(p for p in parts if p is not None)
        ]
        status = {
            "name": name,
            "statusTopic": topic,
            "connector": _part(parts.get(None), now),
            "tasks": tasks,
        }
        config = configs.get(name, {}) if not isinstance(configs, str) else {}
        with _connected(scene, group, name, config) as members:
            remaining = left_members(kafka, group, name, config, members)
            pending = pending_offsets(scene, group, name, config, members)
        if isinstance(configs, str) and name in matching:
            remaining = LeftMembers("?", unknown=configs)
        found.append(status | {"leftMembers": _left(remaining), "pendingOffsets": pending})
    return {"groupId": group, "statusTopic": topics["status"], "connectors": found}


Configs = Mapping[str, Mapping[str, str]] | str
"""Configurations by connector, or the reason if they could not be read."""


def run_configs(scene: RunClients, group: str, names: Sequence[str]) -> Configs:
    """Return the configurations of the connectors ``names`` of runs."""
    if not names:
        return {}
    try:
        topic = _topics(scene, group, "config")["config"]
        image = scene.kafka.image([topic], patience=PATIENCE).get(topic)
        why = (
            "it does not exist"
            if image is None
            else "it has an open transaction"
            if image.held_back
            else None
        )
    except ConnectctlError as e:
        image, topic, why = None, "the config topic", str(e)
    if image is None or why is not None:
        return f"{topic} could not be read: {why}"
    return {name: config_topic_state(image.latest, name).config or {} for name in names}


def read_left_members(
    scene: RunClients, group: str, names: Sequence[str], configs: Configs
) -> dict[str, LeftMembers | None]:
    """Return the static members that killed runs of ``names`` left in their consumer groups."""
    if isinstance(configs, str):
        return dict.fromkeys(names, LeftMembers("?", unknown=configs))
    kafka: Any = scene.kafka
    return {name: left_members(kafka, group, name, config) for name, config in configs.items()}


@contextmanager
def _connected(
    scene: RunClients, group: str, name: str, config: Mapping[str, str]
) -> Iterator[TaskMembers | None]:
    """Yield the members of the connector with one connection to their group; None if the connection
    cannot be opened.
    """
    members, kafka = None, cast("Any", scene.kafka)
    with ExitStack() as open_:
        if _has_group(scene, config):
            with suppress(ConnectctlError):
                every = TaskMembers(kafka, group, name, subscription(name, config))
                members = open_.enter_context(every.connected())
        yield members


def _has_group(scene: RunClients, config: Mapping[str, str]) -> bool:
    """Return whether tasks with this configuration are members of a consumer group of this Kafka
    cluster.
    """
    return bool(config.get(TOPICS) or config.get(REGEX)) and not target_cluster(
        config, scene.kafka.bootstrap
    )


def pending_offsets(
    scene: RunClients, group: str, name: str, config: Mapping[str, str], members: TaskMembers | None
) -> dict[str, Any] | None:
    """Return the offsets of the connector's consumer group that wait for a transaction to end; None
    for a source.
    """
    if not _has_group(scene, config):
        return None
    consumer, pending, unknown = f"connect-{name}", frozenset[TopicPartition](), None
    try:
        reads = subscription(name, config)
        consumer, kafka = reads.consumer.group, cast("Any", scene.kafka)
        pending = (members or TaskMembers(kafka, group, name, reads)).pending()
    except ConnectctlError as e:
        unknown = str(e)
    held = transactions_holding(scene.calls, consumer) if pending else []
    return {
        "group": consumer,
        "partitions": [{"topic": topic, "partition": number} for topic, number in sorted(pending)],
        "transactions": [
            {"transactionalId": each.id, "startedMs": each.started_ms} for each in held
        ],
        "waitsFor": in_words(held) if pending else None,
        "unknown": unknown,
    }


def planned_removal(scene: RunClients, group: str, names: Sequence[str]) -> Plan:
    """Return the plan that removes the left members of ``names``. Raises as ``plan_removal``, and
    ``BadInput`` without names.
    """
    if not names:
        raise BadInput(
            "--remove-members needs the names of connectors",
            next_step="connectctl run status lists them.",
        )
    names = list(dict.fromkeys(names))
    remaining = read_left_members(scene, group, names, run_configs(scene, group, names))
    return plan_removal(scene.kafka.cluster_id(), group, names, remaining.get)


def members_context(scene: RunClients, group: str) -> MembersContext:
    """Return the context of the steps of a removal."""
    kafka: Any = scene.kafka

    def left_members_of(name: str) -> LeftMembers | None:
        return read_left_members(scene, group, [name], run_configs(scene, group, [name]))[name]

    def remove(name: str, ids: Collection[str]) -> None:
        topic = _topics(scene, group, "config")["config"]
        config = config_topic_state(
            kafka.image([topic], patience=PATIENCE)[topic].latest, name
        ).config
        TaskMembers(kafka, group, name, subscription(name, config or {})).remove_ids(ids)

    return MembersContext(left_members=left_members_of, remove=remove)


def _topics(scene: RunClients, group: str, role: str) -> dict[str, str]:
    """Return the internal topics of the group. With live workers the topic of ``role`` is
    discovered.
    """
    topics = default_topics(group, scene.named)
    if scene.group.members:
        found = find_internal_topics(scene.kafka, scene.group, scene.named, needed=(role,))
        topics[role] = str(getattr(found, role))
    return topics


def _left(left: LeftMembers | None) -> dict[str, Any] | None:
    return (
        None
        if left is None
        else {"group": left.group, "instanceIds": list(left.ids), "unknown": left.unknown}
    )


Source = tuple[Iterable[Any], str, str]
"""Records, the prefix of their keys, and their topic."""


def _where(workers: str, group: str, images: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the status topics with the prefixes of their keys: that of the workers, and that of
    runs if it exists.
    """
    return [
        (workers, ""),
        *([(run_status_topic(group), RUN_PREFIX)] if run_status_topic(group) in images else []),
    ]


def names_of(records: Iterable[ConsumerRecord], prefix: str, topic: str) -> set[str]:
    start = prefix.encode()
    matching = [
        r._replace(key=r.key.removeprefix(start))
        for r in records
        if r.key and r.key.startswith(start)
    ]
    return {name for name, _ in statuses_from_topic(matching, topic)}


def _chosen(sources: Sequence[Source], name: str) -> tuple[dict[int | None, TaskStatus], str]:
    """Return the statuses of the connector from its current owner, and their topic: the topic with
    the newest status.

    A status other than STOPPED has priority: workers write STOPPED again whenever the connector is
    assigned to another worker, also during a run.
    """

    def rank(parts: Mapping[int | None, TaskStatus]) -> tuple[bool, float]:
        of_connector = parts.get(None)
        return of_connector is not None and of_connector.state != "STOPPED", max(
            (each.written_at or 0.0 for each in parts.values()), default=-1.0
        )

    found = [(statuses_from(records, name, prefix), topic) for records, prefix, topic in sources]
    return max(found, key=lambda each: rank(each[0]))


def _part(status: Any, now: float) -> dict[str, Any]:
    if status is None:
        return {"state": None, "workerId": None, "trace": None, "secondsAgo": None}
    ago = None if status.written_at is None else round(max(0.0, now - status.written_at), 1)
    return {
        "state": status.state,
        "workerId": status.worker,
        "trace": status.trace and masked(status.trace),
        "secondsAgo": ago,
    }


def _task(number: int, status: Any, now: float, *, ended: bool) -> dict[str, Any]:
    """Return the status of a task. Only statuses of runs have metrics.

    A run that ``ended`` leaves its tasks UNASSIGNED, a state of Connect. It is reported as ENDED:
    these tasks do not wait for an assignment.
    """
    over = ended and status.metrics is not None and status.state == "UNASSIGNED"
    return {
        "task": number,
        **_part(status, now),
        **({"state": "ENDED"} if over else {}),
        "metrics": status.metrics,
    }

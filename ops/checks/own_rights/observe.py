"""The names of a cluster's resources for connectctl's own rights, as the principal in use can
determine them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectctl.ops.checks.own_rights.rules import ResourceNames
from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.connect import cluster_lock
from connectctl.ops.connect import config_topic as connect_config_topic
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector_class import configured_topics
from connectctl.ops.connect.internal_topics import manifest_topic, run_status_topic
from connectctl.ops.connect.offset_store import TOPIC as DEDICATED
from connectctl.ops.connect.run_presence import presence_group
from connectctl.ops.connect.sink_group import (
    dead_letters,
    sink_group,
    topics_of_sink,
    unknown_group,
)
from connectctl.ops.connect.transactional_ids import leader_id, task_id
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.rights import Name
from connectctl.ops.core.unseen import reason
from connectctl.ops.kafka import offset_commits
from connectctl.ops.kafka.transaction_log import TOPIC as TRANSACTION_LOG
from connectctl.ops.operations.cluster.config_state import state_in
from connectctl.ops.operations.cluster.internal_topic_discovery import not_found, search_topics
from connectctl.ops.operations.connectors.observe import from_workers

ARCHIVE = "ParquetArchive"
PATIENCE = 3.0
"""Seconds to wait for an open transaction on the config topic."""
ROLES = {"config": Name.CONFIG, "offsets": Name.OFFSETS, "status": Name.STATUS}
OF_CONNECTORS = (
    Name.DEDICATED,
    Name.TARGETS,
    Name.TASKS,
    Name.PRESENCE,
    Name.SINK_GROUPS,
    Name.SINK_TOPICS,
    Name.SINK_OUTPUTS,
)


def observe(
    kafka: KafkaReads,
    calls: ConnectCalls | None,
    group: ConnectGroup,
    named: Mapping[str, str | None],
    wanted: Sequence[str],
) -> ResourceNames:
    """Return the names by role.

    ``wanted`` are the relevant connectors, empty for all; ``calls`` are given if workers are known.
    A name that cannot be determined is not an error: its role is in ``lost``, with the reason.
    Raises ``BadInput`` for a connector that does not exist.
    """
    names: dict[Name, tuple[str, ...]] = {
        Name.GROUP: (group.id,),
        Name.LEADER: (leader_id(group.id),),
        Name.CHANGES: (f"connectctl-offsets-{group.id}",),
        Name.LOCK: (cluster_lock.group_of(group.id),),
        Name.LOG: (TRANSACTION_LOG,),
        Name.GROUP_LOG: (offset_commits.TOPIC,),
        Name.RUN_STATUS: (run_status_topic(group.id),),
    }
    lost: dict[Name, str] = {}
    for role, answer in _internal(kafka, group, named).items():
        if isinstance(answer, str):
            names[ROLES[role]] = (answer,)
        else:
            lost[ROLES[role]] = reason(answer)
    try:
        names |= _of_connectors(
            group.id, _connectors(kafka, calls, names.get(Name.CONFIG, ("",))[0], wanted)
        )
    except BadInput:
        raise
    except ConnectctlError as e:
        lost |= dict.fromkeys(OF_CONNECTORS, reason(e))
    return ResourceNames(names, lost, all(named.values()), kafka.topic_names())


def _internal(
    kafka: KafkaReads, group: ConnectGroup, named: Mapping[str, str | None]
) -> dict[str, str | ConnectctlError]:
    """Return the internal topics by role, or why one is unknown. A topic that the user named need
    not be visible.
    """
    found: dict[str, str | ConnectctlError] = {role: name for role, name in named.items() if name}
    missing = [role for role in ROLES if role not in found]
    if not missing:
        return found
    try:
        choices = search_topics(kafka, group, {}, missing)
    except ConnectctlError as e:
        return found | dict.fromkeys(missing, e)
    return found | {
        role: choice.topic if choice.topic else not_found(role, choice, group)
        for role, choice in choices.items()
    }


def _connectors(
    kafka: KafkaReads, calls: ConnectCalls | None, config_topic: str, wanted: Sequence[str]
) -> list[ConfiguredConnector]:
    """Return the connectors from the config topic, else from a worker."""
    known: list[ConfiguredConnector]
    try:
        if not config_topic:
            raise ConnectctlError("The config topic is unknown")
        image = kafka.image([config_topic], patience=PATIENCE)[config_topic]
        known = list(state_in(kafka, image, patience=PATIENCE).connectors.values())
    except (ConnectctlError, KeyError) as e:
        if calls is None or not calls.urls:
            raise (
                e
                if isinstance(e, ConnectctlError)
                else ConnectctlError(f"Topic not found: {config_topic}")
            ) from e
        known = [
            connect_config_topic.ConfiguredConnector(
                connector.name, dict(connector.config), task_count=len(connector.tasks)
            )
            for connector in from_workers(calls, timeout=PATIENCE * 2)
        ]
    names = {connector.name for connector in known}
    for name in wanted:
        if name not in names:
            raise BadInput(f"Connector not found: {name}", next_step="connectctl connectors list")
    return [connector for connector in known if not wanted or connector.name in wanted]


def _of_connectors(
    group: str, connectors: Sequence[ConfiguredConnector]
) -> dict[Name, tuple[str, ...]]:
    """Return topics, groups and ids of the connectors. A connector without tasks has its first id,
    to be used later.
    """
    sources = [connector for connector in connectors if connector.looks_like != "sink"]
    sinks = [
        connector
        for connector in connectors
        if connector.looks_like == "sink"
        and unknown_group(connector.name, connector.config) is None
    ]
    # A sink that writes to a topic is a transform of ``connectctl run``.
    writing = [
        connector
        for connector in connectors
        if connector.looks_like == "sink" and connector.config.get("topic")
    ]
    transforms = [connector for connector in writing if _is_of_runs(connector)]
    of_runs = [connector for connector in sinks if _is_of_runs(connector)]
    classes = {
        connector.name: connector.config.get("connector.class", "").rpartition(":")[2]
        for connector in of_runs
    }
    archives = {name: manifest_topic(name) for name, kind in classes.items() if kind == ARCHIVE}
    of_sources = [connector for connector in sources if _is_of_runs(connector)]
    letters = {
        queue for connector in (*sinks, *of_sources) if (queue := dead_letters(connector.config))
    }
    writers = [
        *sources,
        *transforms,
        *(connector for connector in sinks if connector.name in archives),
    ]
    dedicated = [topic for connector in sources if (topic := connector.config.get(DEDICATED))]
    outputs = {connector.config["topic"] for connector in transforms}
    targets = sorted(
        {topic for connector in sources for topic in configured_topics(connector.config)} | outputs
    )
    ids = [
        task_id(group, connector.name, n)
        for connector in writers
        for n in range(max(1, connector.task_count, connector.task_count_record or 0))
    ]
    return {
        Name.DEDICATED: tuple(dict.fromkeys(dedicated)),
        Name.TARGETS: tuple(targets),
        Name.TASKS: tuple(ids),
        Name.PRESENCE: tuple(
            presence_group(group, connector.name) for connector in (*sources, *of_runs)
        ),
        Name.SINK_GROUPS: tuple(
            dict.fromkeys(sink_group(connector.name, connector.config) for connector in sinks)
        ),
        Name.SINK_TOPICS: tuple(
            sorted({topic for connector in sinks for topic in topics_of_sink(connector.config)})
        ),
        Name.SINK_OUTPUTS: tuple(sorted({*archives.values(), *letters})),
    }


def _is_of_runs(connector: ConfiguredConnector) -> bool:
    """Return whether it may be a class of ``connectctl run``: no Java class, but perhaps an alias
    of one for workers.
    """
    name = connector.config.get("connector.class", "")
    return ":" in name or "." not in name

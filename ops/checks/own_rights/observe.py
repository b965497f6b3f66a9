"""The names of a cluster that connectctl's own rights are about, as far as the principal in use can find them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectctl.ops.checks.connector_config.active_topics import configured_topics
from connectctl.ops.checks.own_rights.rules import Places
from connectctl.ops.checks.types import reason
from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.connect import cluster_lock
from connectctl.ops.connect import config_topic as connect_config_topic
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.run_presence import presence_group
from connectctl.ops.connect.sink_group import sink_group, topics_of_sink, unknown_group
from connectctl.ops.connect.transactional_ids import leader_id, task_id
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.rights import Name
from connectctl.ops.operations.cluster.config_state import state_in
from connectctl.ops.operations.cluster.internal_topic_discovery import not_found, search_topics
from connectctl.ops.operations.connectors.observe import from_workers
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import manifest_topic
from connectctl.ops.task_runtime.job.status_topic import run_status_topic

ARCHIVE = "ParquetArchive"
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"
PATIENCE = 3.0
"""Seconds to wait for an open transaction on the config topic."""
LOG = "__transaction_state"
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


def look(
    kafka: KafkaReads,
    calls: ConnectCalls | None,
    group: ConnectGroup,
    named: Mapping[str, str | None],
    wanted: Sequence[str],
) -> Places:
    """The names by role. ``wanted`` are the connectors that matter, all for none; ``calls`` where workers are known.

    What cannot be found out is not an error: it is in ``lost``, with the reason. Raises ``BadInput`` for a connector that is
    not there.
    """
    names: dict[Name, tuple[str, ...]] = {
        Name.GROUP: (group.id,),
        Name.LEADER: (leader_id(group.id),),
        Name.CHANGES: (f"connectctl-offsets-{group.id}",),
        Name.LOCK: (cluster_lock.group_of(group.id),),
        Name.LOG: (LOG,),
        Name.RUN_STATUS: (run_status_topic(group.id),),
    }
    lost: dict[Name, str] = {}
    for role, answer in _internal(kafka, group, named).items():
        if isinstance(answer, str):
            names[ROLES[role]] = (answer,)
        else:
            lost[ROLES[role]] = reason(answer)
    try:
        names |= _of_connectors(group.id, _connectors(kafka, calls, names.get(Name.CONFIG, ("",))[0], wanted))
    except BadInput:
        raise
    except ConnectctlError as e:
        lost |= dict.fromkeys(OF_CONNECTORS, reason(e))
    return Places(names, lost, all(named.values()), kafka.topic_names())


def _internal(
    kafka: KafkaReads, group: ConnectGroup, named: Mapping[str, str | None]
) -> dict[str, str | ConnectctlError]:
    """The internal topics by role, or why one is not known. One that is named need not be seen."""
    found: dict[str, str | ConnectctlError] = {role: name for role, name in named.items() if name}
    missing = [role for role in ROLES if role not in found]
    if not missing:
        return found
    try:
        choices = search_topics(kafka, group, {}, missing)
    except ConnectctlError as e:
        return found | dict.fromkeys(missing, e)
    return found | {
        role: choice.topic if choice.topic else not_found(role, choice, group) for role, choice in choices.items()
    }


def _connectors(
    kafka: KafkaReads, calls: ConnectCalls | None, config_topic: str, wanted: Sequence[str]
) -> list[ConfiguredConnector]:
    """The connectors, from the config topic, or else from a worker."""
    known: list[ConfiguredConnector]
    try:
        if not config_topic:
            raise ConnectctlError("The config topic is unknown")
        image = kafka.image([config_topic], patience=PATIENCE)[config_topic]
        known = list(state_in(kafka, image, patience=PATIENCE).connectors.values())
    except (ConnectctlError, KeyError) as e:
        if calls is None or not calls.urls:
            raise e if isinstance(e, ConnectctlError) else ConnectctlError(f"Topic not found: {config_topic}") from e
        known = [
            connect_config_topic.ConfiguredConnector(each.name, dict(each.config), task_count=len(each.tasks))
            for each in from_workers(calls, timeout=PATIENCE * 2)
        ]
    there = {each.name for each in known}
    for name in wanted:
        if name not in there:
            raise BadInput(f"Connector not found: {name}", next_step="connectctl connectors list")
    return [each for each in known if not wanted or each.name in wanted]


def _of_connectors(group: str, connectors: Sequence[ConfiguredConnector]) -> dict[Name, tuple[str, ...]]:
    """Topics, groups and ids of the connectors. One that has no task has none to fence, but gets its first id some day."""
    sources = [each for each in connectors if each.looks_like != "sink"]
    sinks = [each for each in connectors if each.looks_like == "sink" and unknown_group(each.name, each.config) is None]
    # What reads topics and writes to one is a transform of ``connectctl run``.
    writing = [each for each in connectors if each.looks_like == "sink" and each.config.get("topic")]
    transforms = [each for each in writing if _is_of_runs(each)]
    of_runs = [each for each in sinks if _is_of_runs(each)]
    classes = {each.name: each.config.get("connector.class", "").rpartition(":")[2] for each in of_runs}
    archives = {name: manifest_topic(name) for name, kind in classes.items() if kind == ARCHIVE}
    letters = {dead for each in sinks if (dead := each.config.get(_DEAD_LETTERS, "").strip())}
    writers = [*sources, *transforms, *(each for each in sinks if each.name in archives)]
    own = [topic for each in sources if (topic := each.config.get("offsets.storage.topic"))]
    outputs = {each.config["topic"] for each in transforms}
    targets = sorted({topic for each in sources for topic in configured_topics(each.config)} | outputs)
    ids = [
        task_id(group, each.name, n)
        for each in writers
        for n in range(max(1, each.task_count, each.task_count_record or 0))
    ]
    return {
        Name.DEDICATED: tuple(dict.fromkeys(own)),
        Name.TARGETS: tuple(targets),
        Name.TASKS: tuple(ids),
        Name.PRESENCE: tuple(presence_group(group, each.name) for each in (*sources, *of_runs)),
        Name.SINK_GROUPS: tuple(dict.fromkeys(sink_group(each.name, each.config) for each in sinks)),
        Name.SINK_TOPICS: tuple(sorted({topic for each in sinks for topic in topics_of_sink(each.config)})),
        Name.SINK_OUTPUTS: tuple(sorted({*archives.values(), *letters})),
    }


def _is_of_runs(connector: ConfiguredConnector) -> bool:
    """Whether it is not a class of Java: workers may run it, too, where it is one of their aliases."""
    name = connector.config.get("connector.class", "")
    return ":" in name or "." not in name

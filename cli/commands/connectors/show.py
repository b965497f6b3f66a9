"""``connectctl connectors show``: all facts about one connector."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Block, Output
from connectctl.cli.views import connectors
from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.config.masking import config_of, masked, remember
from connectctl.ops.connect.cluster_findings import topic_missing
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import Connector, Status, cause_of, part_now
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, TimedOut, Unreachable
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.visibility import gap_findings, gap_of
from connectctl.ops.operations.cluster.internal_topic_discovery import not_found, search_topics
from connectctl.ops.operations.connectors import fencing_diagnosis
from connectctl.ops.operations.connectors.access import ClusterAccess, listing_of
from connectctl.ops.operations.connectors.observe import ConnectorHealth, configured, exactly_one
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords
from connectctl.ops.operations.transactions.sources import directory_of


def show(cluster: ClusterAccess, name: str, output: Output) -> None:
    """Print one connector. Raises ``BadInput`` for an unknown one."""
    seen = listing_of(cluster)
    health = exactly_one(seen.connectors, name)
    answers = not isinstance(seen.blind, (Unreachable, TimedOut))
    passwords = (
        defined_passwords(cluster.calls, health.connector.config) if answers else frozenset()
    )
    remember(health.connector.config, passwords)
    config = config_of(health.connector.config, passwords)
    found, offsets_topic, doubts = _from_config_topic(cluster, health)
    doubts = [*seen.findings, *doubts, *_fencing_findings(cluster, health.connector, found)]
    data = _as_json(health, found, offsets_topic, doubts, config)

    def table(wide: bool) -> None:
        terminal.blocks(_blocks(health, found, offsets_topic, config))
        if wide:
            _print_traces(health)

    terminal.emit("Connector", data, output, table, doubts)


def _from_config_topic(
    cluster: ClusterAccess, health: ConnectorHealth
) -> tuple[ConfiguredConnector | None, dict[str, Any] | None, list[Finding]]:
    """Return the facts in the config topic, the offsets topic, and findings if they are unknown."""
    offsets = _dedicated_topic(health)
    if cluster.kafka is None or cluster.group is None:
        return None, offsets, []
    needed = ["config"] + (
        ["offsets"] if health.connector.type != "sink" and offsets is None else []
    )
    names = {role: cluster.clients.named_topics.get(role) for role in needed}
    # A named topic is not searched for: its name is shown without a right on it.
    choices = search_topics(
        cluster.kafka, cluster.group, {}, [role for role in needed if not names[role]]
    )
    names |= {role: choice.topic for role, choice in choices.items()}
    doubts = []
    for role, choice in choices.items():
        if choice.topic is None:
            error = not_found(role, choice, cluster.group)
            doubts.append(topic_missing(role, str(error.why or error.what), str(error.next_step)))
    if names.get("offsets"):
        offsets = {"name": names["offsets"], "dedicated": False, "bootstrapServers": None}
    try:
        found = configured(cluster.kafka, names["config"], health.name) if names["config"] else None
    except NotAuthorized as e:
        return (
            None,
            offsets,
            [*doubts, *gap_findings([gap_of(e, f"config topic {names['config']}")])],
        )
    return found, offsets, doubts


def _fencing_findings(
    cluster: ClusterAccess, connector: Connector, found: ConfiguredConnector | None
) -> list[Finding]:
    """Return the coordinators' findings on failed tasks and rounds of fencing; none for a healthy
    connector.
    """
    if (
        cluster.kafka is None
        or cluster.group is None
        or not fencing_diagnosis.needs_diagnosis(connector, found)
    ):
        return []
    try:
        seen = directory_of(cluster.clients)
        case = fencing_diagnosis.Case(
            group=cluster.group.id,
            connector=connector,
            configured=found,
            written=_record_times(cluster.kafka, cluster.group, cluster.clients.named_topics),
            directory=seen.seen,
            workers=len(cluster.group.members),
            versions=_versions(cluster.calls),
        )
        return [
            *gap_findings(seen.gaps),
            *fencing_diagnosis.findings(cluster.clients.transactions, case, time.time()),
        ]
    except ConnectctlError as e:
        return [fencing_diagnosis.unknown_finding(connector.name, e)]


def _versions(calls: ConnectCalls) -> tuple[str, ...]:
    """Return the versions of the workers; none if one of them does not report it."""
    try:
        return tuple(calls.get("/", url=url)["version"] for url in calls.urls)
    except (ConnectctlError, KeyError):
        return ()


def _record_times(
    kafka: KafkaReads, group: ConnectGroup, named: Mapping[str, str | None]
) -> dict[str, float]:
    """Return when records of the config and status topics were written, by key."""
    choices = search_topics(kafka, group, named, ("config", "status"))
    images = kafka.image(
        [choice.topic for choice in choices.values() if choice.topic], patience=1.0
    )
    found: dict[str, float] = {}
    for image in images.values():
        found |= fencing_diagnosis.write_times(image.latest)
    return found


def _dedicated_topic(health: ConnectorHealth) -> dict[str, Any] | None:
    config = health.connector.config
    if not config.get("offsets.storage.topic"):
        return None
    elsewhere = config.get("producer.override.bootstrap.servers")
    return {
        "name": config["offsets.storage.topic"],
        "dedicated": True,
        "bootstrapServers": elsewhere,
    }


# ------------------------------------------------------------------------------------------- tables


def _blocks(
    health: ConnectorHealth,
    found: ConfiguredConnector | None,
    offsets: dict[str, Any] | None,
    config: Mapping[str, str],
) -> list[Block]:
    connector = health.connector
    facts = [
        ["state", str(health.verdict)],
        ["cause", health.verdict.cause or ""],
        ["target state", found.target_state if found else "unknown"],
        ["type", connector.type or "unknown"],
        [
            "worker",
            connector.status.worker if connector.status and connector.status.worker else "-",
        ],
        ["offsets topic", _offsets_text(offsets)],
        ["fencing", _fencing_text(found) if connector.type != "sink" else ""],
    ]
    return [
        Block(["CONNECTOR", health.name], [fact for fact in facts if fact[1]]),
        Block(
            ["TASK", "STATE", "WORKER", "CAUSE"],
            [_task(connector, n, s) for n, s in connector.tasks.items()],
            "No tasks.",
        ),
        Block(
            ["PROPERTY", "VALUE"],
            [list(item) for item in sorted(config.items())],
            "No configuration.",
        ),
    ]


def _task(connector: Connector, number: int, status: Status | None) -> list[str]:
    """Return the row of a task: its status counts only if the worker that wrote it runs it still."""
    state, remark = part_now(connector, number, status, connector.owners)
    if status is None:
        return [str(number), state, "-", remark]
    if remark:
        remark += f", last seen {status.state} on {status.worker}" if status.worker else ""
        return [str(number), state, "-", remark]
    return [str(number), state, status.worker or "-", cause_of(status) or ""]


def _offsets_text(offsets: dict[str, Any] | None) -> str:
    if offsets is None:
        return ""
    kind = "dedicated" if offsets["dedicated"] else "global"
    where = f", on {offsets['bootstrapServers']}" if offsets["bootstrapServers"] else ""
    return f"{offsets['name']} ({kind}{where})"


def _fencing_text(found: ConfiguredConnector | None) -> str:
    if found is None:
        return "unknown"
    record = found.task_count_record
    if record is None:
        return "no round of fencing is recorded"
    pending = (
        "; a new round is pending and runs when tasks start"
        if found.fencing_pending
        else "; none is pending"
    )
    return f"last round was for {record} task{'' if record == 1 else 's'}{pending}"


def _print_traces(health: ConnectorHealth) -> None:
    connector = health.connector
    parts = [
        ("connector", connector.status),
        *((f"task {n}", status) for n, status in connector.tasks.items()),
    ]
    for part, status in parts:
        if status and status.trace:
            terminal.print_line(f"\n{part} on {status.worker}:\n{masked(status.trace.rstrip())}")


# --------------------------------------------------------------------------------------------- JSON


def _as_json(
    health: ConnectorHealth,
    found: ConfiguredConnector | None,
    offsets: dict[str, Any] | None,
    doubts: list[Finding],
    config: Mapping[str, str],
) -> dict[str, Any]:
    connector = health.connector
    tasks = [
        {"id": n} | connectors.status_json(status, trace=True)
        for n, status in connector.tasks.items()
    ]
    return connectors.as_json(health) | {
        "targetState": found.target_state if found else connector.target_state,
        "connector": connectors.status_json(connector.status, trace=True),
        "tasks": tasks,
        "taskCountRecord": found.task_count_record if found else None,
        "fencingPending": found.fencing_pending if found else None,
        "offsetsTopic": offsets,
        "config": dict(config),
        "findings": [finding.as_json() for finding in doubts],
    }

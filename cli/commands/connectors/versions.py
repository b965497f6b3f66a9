"""``connectctl connectors history``: versions of a configuration, from the config topic and the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connectctl.cli.apply import open_journal
from connectctl.cli.commands.connectors.cluster import observed
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.all_steps import KINDS
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.times import iso_utc
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.access import ConnectorAccess
from connectctl.ops.operations.connectors.config.history import (
    ConfigVersion,
    changes,
    chosen_version,
    journal_versions,
    merged,
    topic_versions,
)
from connectctl.ops.operations.connectors.config.values import shown
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords

MOST_SHOWN = 3
"""The most properties in a line of the table; ``-o json`` has all."""


def history(session: Session, connector: str, show: int | None, output: Output) -> None:
    """Print the versions of ``connector``, or the configuration of one."""
    cluster, found, unseen = versions_of(session, connector)
    rows = rows_of(cluster, found)
    if show is not None:
        chosen_version(found, connector, show)
        row = rows[show - 1]
        terminal.emit(
            "ConnectorVersion", {"connector": connector, **row}, output, lambda wide: configuration(connector, row)
        )
        return
    versions = [{key: value for key, value in row.items() if key != "config"} for row in rows]
    data = {"connector": connector, "configTopicUnseen": unseen, "versions": versions}
    terminal.emit("ConnectorHistory", data, output, lambda wide: table(versions, unseen))


def versions_of(session: Session, name: str) -> tuple[ConnectorAccess, list[ConfigVersion], str | None]:
    """Return the cluster, the versions of ``name``, and why the config topic was not read, None if it was."""
    cluster = observed(session)
    unseen: ConnectctlError | None = None
    topic: list[ConfigVersion] = []
    try:
        topic = topic_versions(config_records(session, cluster), name)
    except ConnectctlError as e:
        unseen = e
    found = merged(
        topic, journal_versions(open_journal(read_only=True), name, cluster.cluster_id(), cluster.group_id, KINDS)
    )
    if not found and unseen is not None:
        raise unseen
    if not found:
        raise BadInput(
            f"No configuration of {name} is known",
            why="neither the config topic nor the journal of this machine has one",
            next_step="See connectctl connectors list.",
            code="unknown-connector",
        )
    return cluster, found, unseen.what if unseen is not None else None


def config_records(session: Session, cluster: ConnectorAccess) -> list[ConsumerRecord]:
    """Return all committed records of the config topic. Raises ``ConnectctlError`` if it is not read to its end."""
    if cluster.kafka is None or cluster.group is None:
        raise BadInput("The config topic was not read: the brokers are not given", next_step="Add --bootstrap-servers.")
    topic = str(find_internal_topics(cluster.kafka, cluster.group, session.named_topics, needed=("config",)).config)
    image = cluster.kafka.image([topic], patience=session.timeout, superseded=True)[topic]
    if image.held_back:
        raise TimedOut(f"{topic} was not read to its end", why="a transaction is open on it")
    return [*image.superseded, *image.latest]


def rows_of(cluster: ConnectorAccess, found: Sequence[ConfigVersion]) -> list[dict[str, Any]]:
    """Return the row of each version, the newest first, secrets masked."""
    rows = []
    for number, each in enumerate(found, 1):
        former = found[number] if number < len(found) else None
        hidden = defined_passwords(cluster.calls, each.config or {})
        if former is not None and former.config is not None:
            hidden |= defined_passwords(cluster.calls, former.config)
        rows.append(
            {
                "version": number,
                "at": None if each.at is None or each.until else iso_utc(each.at),
                "until": iso_utc(each.at) if each.until and each.at is not None else None,
                "what": _what(each, former),
                "changes": shown(changes(each, former), hidden),
                "run": each.run if not each.until else None,
                "configOffset": each.offset,
                "config": None if each.config is None else shown(each.config, hidden),
            }
        )
    return rows


def _what(version: ConfigVersion, former: ConfigVersion | None) -> str:
    if version.config is None:
        return "deleted"
    if former is None:
        return "oldest known"
    return "created" if former.config is None else "changed"


def table(versions: Sequence[dict[str, Any]], unseen: str | None) -> None:
    """Print the versions as a table; ``unseen`` is why the config topic was not read."""
    rows = [
        [str(row["version"]), row["at"] or f"until {row['until']}", row["what"], _changed(row), _by(row)]
        for row in versions
    ]
    terminal.table(["VERSION", "TIME", "WHAT", "PROPERTIES", "BY"], rows, empty="", spare=("BY", "PROPERTIES"))
    if unseen:
        terminal.note(f"warning: only versions in the journal of this machine are shown: {unseen}", style="yellow")
    else:
        terminal.say("Compaction of the config topic may have removed older versions.")


def _changed(row: dict[str, Any]) -> str:
    if row["what"] == "oldest known":
        return f"{len(row['changes'])} properties"
    parts = [f"{name}-" if value is None else f"{name}={value}" for name, value in row["changes"].items()]
    return some_of(parts, MOST_SHOWN)


def _by(row: dict[str, Any]) -> str:
    if row["run"]:
        return f"run {row['run']}"
    return "another client" if row["configOffset"] is not None else "unknown"


def configuration(connector: str, row: dict[str, Any]) -> None:
    if row["config"] is None:
        terminal.say(f"{connector} was deleted.")
    else:
        terminal.table(["PROPERTY", "VALUE"], [[name, value or ""] for name, value in row["config"].items()], empty="")

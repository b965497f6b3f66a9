"""``connectctl connectors history``: revisions of a configuration, from the config topic and the
journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.times import iso_utc
from connectctl.ops.operations.connectors.access import ConnectorAccess, observed_cluster
from connectctl.ops.operations.connectors.config.history import (
    ConfigVersion,
    changes,
    index_of,
    versions_of,
)
from connectctl.ops.operations.connectors.config.operations import KINDS
from connectctl.ops.operations.connectors.config.values import shown
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords

MOST_SHOWN = 3
"""The most properties in a line of the table; ``-o json`` has all."""


def history(session: Session, connector: str, show: str | None, output: Output) -> None:
    """Print the revisions of ``connector``, or the configuration of one."""
    cluster = observed_cluster(session)
    found, unseen = versions_of(cluster, connector, KINDS)
    rows = rows_of(cluster, found)
    if show is not None:
        row = rows[index_of(found, connector, show, unseen)]
        terminal.emit(
            "ConnectorRevision",
            {"connector": connector, **row},
            output,
            lambda wide: configuration(connector, row),
        )
        return
    revisions = [{key: value for key, value in row.items() if key != "config"} for row in rows]
    data = {"connector": connector, "configTopicUnseen": unseen, "revisions": revisions}
    terminal.emit("ConnectorHistory", data, output, lambda wide: table(revisions, unseen))


def rows_of(cluster: ConnectorAccess, found: Sequence[ConfigVersion]) -> list[dict[str, Any]]:
    """Return the row of each revision, the newest first, secrets masked."""
    rows = []
    for number, each in enumerate(found, 1):
        former = found[number] if number < len(found) else None
        hidden = defined_passwords(cluster.calls, each.config or {})
        if former is not None and former.config is not None:
            hidden |= defined_passwords(cluster.calls, former.config)
        rows.append(
            {
                "revision": each.revisions[0],
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


def table(revisions: Sequence[dict[str, Any]], unseen: str | None) -> None:
    """Print the revisions as a table; ``unseen`` is why the config topic was not read."""
    rows = [
        [
            row["revision"],
            row["at"] or f"until {row['until']}",
            row["what"],
            _changed(row),
            _by(row),
        ]
        for row in revisions
    ]
    terminal.table(
        ["REVISION", "TIME", "WHAT", "PROPERTIES", "BY"], rows, empty="", spare=("BY", "PROPERTIES")
    )
    if unseen:
        terminal.note(
            f"warning: only revisions in the journal of this machine are shown: {unseen}",
            style="yellow",
        )
    else:
        terminal.print_wrapped("Compaction of the config topic may have removed older revisions.")


def _changed(row: dict[str, Any]) -> str:
    if row["what"] == "oldest known":
        return f"{len(row['changes'])} properties"
    parts = [
        f"{name}-" if value is None else f"{name}={value}" for name, value in row["changes"].items()
    ]
    return some_of(parts, MOST_SHOWN)


def _by(row: dict[str, Any]) -> str:
    if row["run"]:
        return f"run {row['run']}"
    return "another client" if row["configOffset"] is not None else "unknown"


def configuration(connector: str, row: dict[str, Any]) -> None:
    if row["config"] is None:
        terminal.print_line(f"{connector} was deleted.")
    else:
        terminal.table(
            ["PROPERTY", "VALUE"],
            [[name, value or ""] for name, value in row["config"].items()],
            empty="",
        )

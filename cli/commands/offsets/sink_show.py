"""``connectctl offsets show`` for sink connectors, and for groups without a connector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import typer
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.times import now_utc
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import Gap, Reason, describe_topic, gap_findings, gap_of
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.observe import read_facts
from connectctl.ops.operations.offsets.config_map import config_map
from connectctl.ops.operations.sink_offsets.changes import GroupOffsets, offset_json, partition_json
from connectctl.ops.operations.sink_offsets.observe import (
    offsets_of_connector,
    offsets_of_group,
    sinks_among,
    with_pending,
)

UNKNOWN = "?"
MOST_PENDING = 3
"""Partitions with pending offsets that a line names."""


def configured_sinks(session: Session, names: Sequence[str]) -> list[ConfiguredConnector]:
    """Return the sink connectors ``names``, or all if none are given. Raises ``BadInput`` for
    others.
    """
    group = session.group()
    topics = find_internal_topics(session.kafka, group, session.named_topics, needed=("config",))
    facts = read_facts(session.kafka, group.id, str(topics.config))
    if facts.configured is None:
        raise ConnectctlError(
            "The config topic could not be read to its end", why="an open transaction blocks it"
        )
    return sinks_among(names, facts.configured)


def observed(
    session: Session, sinks: Sequence[ConfiguredConnector]
) -> tuple[list[GroupOffsets], list[Gap]]:
    """Return the offsets of ``sinks``, and gaps: groups without the right to describe them, if
    several are requested.
    """
    found, gaps = [], []
    for sink in sinks:
        try:
            found.append(offsets_of_connector(session.group_offsets, session.kafka, sink))
        except NotAuthorized as e:
            if len(sinks) == 1:
                raise
            gaps.append(gap_of(e, f"the group of {sink.name}"))
    return found, gaps


def show_sinks(session: Session, names: Sequence[str], output: Output | None) -> None:
    """Show the committed offsets of the sink connectors ``names``."""
    _show(session, *observed(session, configured_sinks(session, names)), output)


def show_group(session: Session, group: str, output: Output | None) -> None:
    """Show the committed offsets of one group, without requests to workers."""
    _show(session, [offsets_of_group(session.group_offsets, session.kafka, group)], [], output)


def _show(
    session: Session, found: Sequence[GroupOffsets], gaps: Sequence[Gap], output: Output | None
) -> None:
    found = [with_pending(session.group_offsets, each) for each in found]
    gaps = [*gaps, *(_unseen(topic) for each in found for topic in sorted(each.unseen))]
    findings = gap_findings(gaps)
    data = {
        "clusterId": session.kafka.cluster_id(),
        "readAt": now_utc(),
        "connectors": [as_json(each) for each in found],
        "findings": [finding.as_json() for finding in findings],
    }

    def table(wide: bool) -> None:
        columns = ["CONNECTOR", "PARTITION", "OFFSET", "END", "LAG"] + (
            ["GROUP", "STATE"] if wide else []
        )
        rows = [
            row + ([each.group.id, each.group.state] if wide else [])
            for each in found
            for row in _rows(each)
        ]
        names = ", ".join(each.group.id for each in found) or "no group"
        seen = " could be read" if findings else ""
        terminal.table(columns, rows, empty=f"No committed offsets{seen}: {names}.")

        for each in found:
            if each.pending:
                terminal.print_wrapped(_pending_line(each))

    if output is None:
        terminal.documents(config_map(each.name, _committed(each)) for each in found)
    else:
        terminal.emit("SinkOffsets", data, output, table)
    terminal.findings(findings)
    if findings:
        raise typer.Exit(1)


def _committed(found: GroupOffsets) -> Iterator[tuple[Any, Any]]:
    for topic_partition, committed in sorted(found.committed.items()):
        yield partition_json(topic_partition), offset_json(committed)


def _pending_line(found: GroupOffsets) -> str:
    topic_partitions = some_of(
        [str(topic_partition) for topic_partition in sorted(found.pending)], MOST_PENDING
    )
    return (
        f"{found.group.id}: the offsets of {topic_partitions} are pending (KIP-447), and wait for "
        f"{found.waits_for}. They are released when it ends; if its producer is gone: connectctl "
        "transactions abort ID"
    )


def _unseen(topic: str) -> Gap:
    return Gap(f"topic {topic}", Reason.NOT_AUTHORIZED, describe_topic(topic))


def as_json(found: GroupOffsets) -> dict[str, Any]:
    """Return a group as JSON: ``offsets`` as in ``GET /connectors/NAME/offsets``, with end and
    lag.
    """
    return {
        "name": found.name,
        "connector": found.connector,
        "group": found.group.id,
        "state": found.group.state,
        "members": list(found.members),
        "offsets": [
            {
                "partition": partition_json(topic_partition),
                "offset": offset_json(found.committed[topic_partition]),
                "end": known.end if (known := found.range_of(topic_partition)) else None,
                "lag": found.lag(topic_partition),
                "pending": topic_partition in found.pending,
            }
            for topic_partition in sorted(found.committed)
        ],
        "uncommitted": [partition_json(topic_partition) for topic_partition in found.uncommitted],
        "pending": [partition_json(topic_partition) for topic_partition in sorted(found.pending)],
        "waitsFor": found.waits_for,
    }


def _rows(found: GroupOffsets) -> Iterator[list[str]]:
    for topic_partition in sorted({*found.committed, *found.uncommitted}):
        known = found.range_of(topic_partition)
        end = UNKNOWN if known is None else str(known.end)
        if topic_partition not in found.committed:
            yield [
                found.name,
                connect_json(partition_json(topic_partition)),
                f"-{_mark(found, topic_partition)}",
                end,
                "-",
            ]
            continue
        lag = found.lag(topic_partition)
        offset = connect_json(offset_json(found.committed[topic_partition]) or {}) + _mark(
            found, topic_partition
        )
        yield [
            found.name,
            connect_json(partition_json(topic_partition)),
            offset,
            end,
            UNKNOWN if lag is None else str(lag),
        ]


def _mark(found: GroupOffsets, topic_partition: TopicPartition) -> str:
    return " (pending)" if topic_partition in found.pending else ""

"""Tables of the statuses of connectors and tasks, from workers and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connectctl.cli.output import terminal
from connectctl.cli.views.run import MEASURED, measured, sizes
from connectctl.ops.core.finding import some_of

STALE = 90.0
"""Seconds after which a run without a new status may have been killed: it writes one every 30."""


def latency_lines(connector: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each running task that missed its promised latency before its last
    status.
    """
    for task in connector["tasks"]:
        metrics = task["metrics"] or {}
        p99, promise = (
            metrics.get("poll-to-visible-last-p99-time-ms"),
            metrics.get("latency-promise-ms"),
        )
        if task["state"] == "RUNNING" and p99 is not None and promise is not None and p99 > promise:
            yield (
                f"{connector['name']}: latency promise missed: p99 {p99:,.0f} ms of task "
                f"{task['task']} in the last half minute, {promise:,.0f} ms promised"
            )


def pending_lines(name: str, pending: Mapping[str, Any], *, wide: bool) -> Iterator[str]:
    """Yield a line about offsets that wait for a transaction, and ``wide`` about those that could
    not be seen.
    """
    partitions = [f"{each['topic']}-{each['partition']}" for each in pending["partitions"]]
    if partitions:
        ids = [each["transactionalId"] for each in pending["transactions"]]
        end = (
            f"connectctl transactions abort {ids[0]}"
            if ids
            else "connectctl transactions list --open"
        )
        yield (
            f"{name}: the offsets of the consumer group {pending['group']} on "
            f"{some_of(partitions, 3)} are pending (KIP-447), and wait for {pending['waitsFor']}. "
            f"They are released when it ends; if its producer is gone: {end}"
        )
    elif pending["unknown"] and wide:
        yield (
            f"{name}: whether offsets of the consumer group are pending is unknown: "
            f"{pending['unknown']}"
        )


def show_statuses(found: Mapping[str, Any], wide: bool) -> None:
    """Print statuses as a table, marking RUNNING ones older than ``STALE``: that run may have been
    killed.
    """
    rows = []
    for each in found["connectors"]:
        for part in ({"task": "", **each["connector"]}, *each["tasks"]):
            ago = part["secondsAgo"]
            silent = part["state"] == "RUNNING" and ago is not None and ago > STALE
            trace = str(part["trace"] or "").strip().split("\n")
            row = [
                each["name"],
                str(part["task"]),
                str(part["state"] or "-"),
                str(part["workerId"] or "-"),
            ]
            row.append(terminal.duration(ago) + " ago" + (" !" if silent else ""))
            if wide:
                metrics = part.get("metrics") or {}
                partitions = metrics.get(
                    "copy-partition-count", metrics.get("partition-count", "-")
                )
                row += [
                    str(partitions),
                    str(metrics.get("source-record-write-total", "-")),
                    sizes(metrics),
                    *measured(metrics),
                ]
            rows.append([*row, trace[-1] if wide else trace[-1][:60]])
    more = ["PARTITIONS", "WRITTEN", "SIZE MIN/AVG/MAX", *MEASURED] if wide else []
    columns = ["CONNECTOR", "TASK", "STATE", "BY", "SAID", *more, "WHY"]
    spare = () if wide else ("BY",)
    terminal.table(
        columns, rows, spare=spare, empty=f"No connector status in {found['statusTopic']}."
    )
    for each in found["connectors"]:
        for line in latency_lines(each):
            terminal.print_wrapped(line)
        if pending := each["pendingOffsets"]:
            for line in pending_lines(each["name"], pending, wide=wide):
                terminal.print_wrapped(line)
        left = each["leftMembers"] or {}
        if left.get("instanceIds"):
            terminal.print_wrapped(
                f"{each['name']}: a killed run left the members {', '.join(left['instanceIds'])} "
                f"in the consumer group {left['group']}; they keep their partitions until their "
                "session times out. The next run removes them, or: connectctl run status "
                f"{each['name']} --remove-members"
            )
        elif left.get("unknown") and wide:
            terminal.print_wrapped(
                f"{each['name']}: whether a killed run left members is unknown: {left['unknown']}"
            )

"""``connectctl run status``: what the status topic says, for people and for scripts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectctl.cli import render
from connectctl.cli.runview import MEASURED, measured, sizes
from connectctl.ops.model.masking import masked

if TYPE_CHECKING:
    from connectctl.ops.runtime.starting import Scene

OLD = 90.0
"""Seconds after which a run that says nothing any more may be dead: it speaks after each lease."""


def statuses(scene: Scene, group: str, names: tuple[str, ...]) -> dict[str, Any]:
    """What the status topic says of ``names``, of all for none. Raises ``BadInput`` for topics and names that are not."""
    from connectctl.ops.connectors import PATIENCE
    from connectctl.ops.discovery import check_named, find_internal_topics
    from connectctl.ops.errors import BadInput
    from connectctl.ops.model.connector import statuses_from_topic
    from connectctl.ops.runtime.internaltopics import default_topics
    from connectctl.ops.runtime.statuses import said

    topics = default_topics(group, scene.named)
    if scene.group.members:
        topics["status"] = str(find_internal_topics(scene.kafka, scene.group, scene.named, needed=("status",)).status)
    check_named(scene.kafka, {"status": topics["status"]})
    records = scene.kafka.image([topics["status"]], patience=PATIENCE)[topics["status"]].latest
    there = sorted({name for name, _ in statuses_from_topic(records)})
    if unknown := [name for name in names if name not in there]:
        raise BadInput(f"{topics['status']} says nothing of {unknown[0]}", code="unknown-connector")
    now = time.time()
    found = []
    for name in names or there:
        parts = said(records, name)
        found.append(
            {
                "name": name,
                "connector": _part(parts.get(None), now),
                "tasks": [_task(n, parts[n], now) for n in sorted(p for p in parts if p is not None)],
            }
        )
    return {"groupId": group, "statusTopic": topics["status"], "connectors": found}


def _part(status: Any, now: float) -> dict[str, Any]:
    if status is None:
        return {"state": None, "workerId": None, "trace": None, "secondsAgo": None}
    ago = None if status.at is None else round(max(0.0, now - status.at), 1)
    return {
        "state": status.state,
        "workerId": status.worker,
        "trace": status.trace and masked(status.trace),
        "secondsAgo": ago,
    }


def _task(number: int, status: Any, now: float) -> dict[str, Any]:
    """A task's status; its metrics are there where a run said it, and no worker."""
    return {"task": number, **_part(status, now), "metrics": status.metrics}


def show_statuses(found: Mapping[str, Any], wide: bool) -> None:
    """Statuses for people. A run speaks after each lease: one that says RUNNING and has long been silent may be dead."""
    rows = []
    for each in found["connectors"]:
        for part in ({"task": "", **each["connector"]}, *each["tasks"]):
            ago = part["secondsAgo"]
            silent = part["state"] == "RUNNING" and ago is not None and ago > OLD
            trace = str(part["trace"] or "").strip().split("\n")
            row = [each["name"], str(part["task"]), str(part["state"] or "-"), str(part["workerId"] or "-")]
            row.append(render.duration(ago) + " ago" + (" !" if silent else ""))
            if wide:
                metrics = part.get("metrics") or {}
                row += [str(metrics.get("source-record-write-total", "-")), sizes(metrics), *measured(metrics)]
            rows.append([*row, trace[-1] if wide else trace[-1][:60]])
    more = ["WRITTEN", "SIZE MIN/AVG/MAX", *MEASURED] if wide else []
    columns = ["CONNECTOR", "TASK", "STATE", "BY", "SAID", *more, "WHY"]
    render.table(columns, rows, empty=f"{found['statusTopic']} says nothing of any connector.")

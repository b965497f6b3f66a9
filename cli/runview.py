"""How ``connectctl run`` looks: progress, results and statuses, for people and for scripts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from connectctl.cli import render

if TYPE_CHECKING:
    from connectctl.ops.runtime.launch import Result
    from connectctl.ops.runtime.line import Switchboard
    from connectctl.ops.runtime.rounds import Run
    from connectctl.ops.runtime.starting import Ready, Scene

OFTEN, SELDOM = 1.0, 10.0
"""Seconds between two words of progress: on a terminal, where the line is drawn again, and elsewhere."""
OLD = 90.0
"""Seconds after which a run that says nothing any more may be dead: it speaks after each lease."""
Tell = Callable[["Run", "Switchboard"], None]


@contextmanager
def progress(ready: Ready) -> Iterator[Tell]:
    """Yields what is called while a run goes on; a line on standard error that is drawn again, or one now and then."""
    redrawn = not render.plain(sys.stderr)
    every = OFTEN if redrawn else SELDOM
    began = last = time.monotonic()
    records = 0

    def tell(run: Run, board: Switchboard) -> None:
        nonlocal last, records
        now = time.monotonic()
        if now - last < every:
            return
        line, total = progress_line(ready.name, run, board.heard, now - last, records)
        last, records = now, total
        if redrawn:
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()
        else:
            render.note(f"{line}, {render.duration(now - began)}")

    try:
        yield tell
    finally:
        if redrawn:
            sys.stderr.write("\r\x1b[2K")


def progress_line(
    name: str, run: Run, heard: Mapping[int, Mapping[str, Any]], seconds: float, before: int
) -> tuple[str, int]:
    """Where a run stands, and its records so far: those of rounds that are over and those of the one under way."""
    now = {n: dict(said) for n, said in list(heard.items())}
    records = run.records + sum(int(said["records"]) for said in now.values())
    done = sum(t.transactions for t in run.totals.values()) + sum(int(s["transactions"]) for s in now.values())
    rate = max(0.0, (records - before) / seconds)
    parts = [f"{records:,} records", f"{rate:,.0f}/s", f"{done:,} transactions", f"{len(run.totals)} tasks"]
    lags = [int(said["lag"]) for said in now.values() if said.get("lag") is not None]
    parts += [f"lag {sum(lags):,}"] if lags else []
    parts += [f"{run.lost} lost rounds"] if run.lost else []
    return f"{name}: {', '.join(parts)}", records


def as_json(ready: Ready, result: Result) -> dict[str, Any]:
    """A run as scripts get it."""
    return {
        "connector": ready.name,
        "groupId": ready.group,
        "outcome": result.outcome.value,
        "why": result.run.why,
        "connectorFailure": result.connector_failure,
        "seconds": round(result.seconds, 3),
        "records": result.run.records,
        "lostRounds": result.run.lost,
        "topics": {**ready.topics, "ownOffsets": ready.own},
        "tasks": [
            {
                "task": number,
                "state": total.end,
                "failure": total.failure,
                "records": total.records,
                "transactions": total.transactions,
                "aborted": total.aborted,
                "transactionSize": {"min": total.smallest, "avg": average(total), "max": total.largest or None},
                "producers": total.instances,
                "fenced": total.fenced,
                "doubts": total.doubts,
            }
            for number, total in result.run.totals.items()
        ],
    }


def average(total: Any) -> float | None:
    """Records per transaction, None where there was none."""
    return round(total.records / total.transactions, 1) if total.transactions else None


def show(ready: Ready, result: Result, wide: bool) -> None:
    """A run for people."""
    columns = ["TASK", "STATE", "RECORDS", "TRANSACTIONS", "SIZE MIN/AVG/MAX"]
    columns += ["PRODUCERS", "FENCED", "DOUBTS"] if wide else []
    rows = []
    for number, t in result.run.totals.items():
        sizes = f"{t.smallest}/{average(t):g}/{t.largest}" if t.smallest is not None else "-"
        row = [str(number), t.end, f"{t.records:,}", f"{t.transactions:,}"]
        row.append(sizes)
        rows.append([*row, *map(str, (t.instances, t.fenced, t.doubts))] if wide else row)
    rate = f", {result.run.records / result.seconds:,.0f}/s" if result.run.records else ""
    time_ = render.duration(result.seconds)
    render.say(f"{ready.name}: {result.outcome.value} with {result.run.records:,} records in {time_}{rate}")
    render.table(columns, rows, empty=f"{ready.name} has no tasks.")


def failures(ready: Ready, result: Result) -> Iterator[str]:
    """One line for each thing that failed."""
    if result.connector_failure:
        yield f"error: The connector {ready.name} is FAILED: {result.connector_failure}"
    if result.outcome == "taken":
        yield f"error: {ready.name} is run by another now: {result.run.why}"
    for number, total in result.run.totals.items():
        if total.failure:
            yield f"error: Task {number} of {ready.name} is FAILED: {' '.join(total.failure.split())}"


def exit_code(result: Result) -> int:
    """0 for a run that ended or was stopped, else 1."""
    return 0 if result.outcome in ("ended", "stopped") else 1


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
                "tasks": [{"task": n, **_part(parts[n], now)} for n in sorted(p for p in parts if p is not None)],
            }
        )
    return {"groupId": group, "statusTopic": topics["status"], "connectors": found}


def _part(status: Any, now: float) -> dict[str, Any]:
    if status is None:
        return {"state": None, "workerId": None, "trace": None, "secondsAgo": None}
    ago = None if status.at is None else round(max(0.0, now - status.at), 1)
    return {"state": status.state, "workerId": status.worker, "trace": status.trace, "secondsAgo": ago}


def show_statuses(found: Mapping[str, Any], wide: bool) -> None:
    """Statuses for people. A run speaks after each lease: one that says RUNNING and has long been silent may be dead."""
    rows = []
    for each in found["connectors"]:
        for part in ({"task": "", **each["connector"]}, *each["tasks"]):
            ago = part["secondsAgo"]
            silent = part["state"] == "RUNNING" and ago is not None and ago > OLD
            trace = str(part["trace"] or "").strip().split("\n")
            row = [each["name"], str(part["task"]), str(part["state"] or "-"), str(part["workerId"] or "-")]
            rows.append(
                [*row, render.duration(ago) + " ago" + (" !" if silent else ""), trace[-1] if wide else trace[-1][:60]]
            )
    columns = ["CONNECTOR", "TASK", "STATE", "BY", "SAID", "WHY"]
    render.table(columns, rows, empty=f"{found['statusTopic']} says nothing of any connector.")

"""What has changed lately: configurations, target states, numbers of tasks and workers, in the order
of time. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from connectctl.ops.checks.history.records import ConfigRecord, History
from connectctl.ops.connect.config_topic import COMMIT, CONNECTOR, TARGET, target_state
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.group_rounds import GroupRound
from connectctl.ops.connect.health import has_failed, is_running
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.times import iso_utc

NAMED = 4
"""The number of properties that a line names before it counts the rest."""


class Kind(StrEnum):
    """What changed."""

    CONFIG = "config"
    TARGET = "target"
    TASKS = "tasks"
    WORKER = "worker"
    FAILED = "failed"
    JOINED = "joined"
    LEFT = "left"
    LEADER = "leader"


@dataclass(frozen=True, order=True)
class Change:
    """A change at ``at``, in seconds since the epoch, of a connector or of a worker; the other one
    is empty. ``task`` is None for the whole connector.
    """

    at: float
    connector: str
    kind: Kind
    text: str
    task: int | None = None
    worker: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the change; ``task`` only if it concerns one."""
        return {
            "at": iso_utc(self.at * 1000),
            **({"connector": self.connector} if self.connector else {"worker": self.worker}),
            "kind": self.kind.value,
            "change": self.text,
            **({} if self.task is None else {"task": self.task}),
        }


def timeline(
    history: History, connectors: Collection[str], versions: Mapping[str, str] | None = None
) -> tuple[Change, ...]:
    """Return the retained changes of ``connectors`` and of all workers, oldest first. ``versions``
    are those of present workers that are known, by address.

    Values of properties are not part of it, since they may be secrets.
    """
    found = [*_of_workers(history.rounds, versions or {})]
    for name in connectors:
        found += _configured(name, history.by_connector.get(name, ()))
    found += _ran(history, frozenset(connectors))
    return tuple(sorted(found, key=lambda change: change.at))


def of_connector(changes: Iterable[Change], name: str, most: int) -> tuple[Change, ...]:
    """Return the newest ``most`` changes of one connector, oldest first; those of workers for an
    empty name.
    """
    return tuple(change for change in changes if change.connector == name)[-most:]


def _of_workers(rounds: Sequence[GroupRound], versions: Mapping[str, str]) -> Iterator[Change]:
    """Yield which workers joined and left, and where the leader moved."""
    for before, after in pairwise(rounds):
        for id in sorted(after.ids.keys() - before.ids.keys()):
            worker = after.ids[id]
            again = "started again" if worker in before.members else "joined"
            newest = id in rounds[-1].ids and worker in versions
            text = f"{again}, Kafka Connect {versions[worker]}" if newest else again
            yield Change(after.at, "", Kind.JOINED, text, worker=worker)
        for worker in sorted(before.members.keys() - after.members.keys()):
            yield Change(after.at, "", Kind.LEFT, "left", worker=worker)
        if after.leader and after.leader != before.leader:
            text = "leads the group" + (f", {before.leader} before" if before.leader else "")
            yield Change(after.at, "", Kind.LEADER, text, worker=after.leader)


def _configured(name: str, records: Iterable[ConfigRecord]) -> Iterator[Change]:
    config: dict[str, str] | None = None
    known, tasks = False, None
    for record in records:
        value = record.value
        if value is None and record.raw is not None:
            continue  # workers ignore it
        if record.kind == CONNECTOR:
            new = None if value is None else dict(value["properties"])
            text = _config_change(config, new, first=not known)
            known, config = True, new
        elif record.kind == TARGET and value is not None:
            text = f"target state {target_state(value)}"
        elif record.kind == COMMIT and value is not None and value["tasks"] != tasks:
            before = "" if tasks is None else f", {tasks} before"
            tasks = value["tasks"]
            text = f"tasks: {tasks}{before}"
        else:
            continue
        kind = {CONNECTOR: Kind.CONFIG, TARGET: Kind.TARGET, COMMIT: Kind.TASKS}[record.kind]
        if text and record.at is not None:
            yield Change(record.at, name, kind, text)


def _config_change(
    before: dict[str, str] | None, after: dict[str, str] | None, *, first: bool
) -> str:
    """Return the change of a configuration, empty if it is the same. ``first``: what was before is
    not retained.
    """
    if after is None:
        return "deleted"
    if before is None:
        return "configured" if first else "created again"
    changed = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    return f"configuration changed: {some_of(changed, NAMED)}" if changed else ""


def _ran(history: History, connectors: frozenset[str]) -> Iterator[Change]:
    """Yield where parts moved to another worker, and where they failed."""
    for (name, task), statuses in history.statuses.items():
        if name not in connectors:
            continue
        worker: str | None = None
        number = None if task == CONNECTOR_INSTANCE else task
        for record in statuses:
            if record.at is None:
                continue
            if is_running(record.status) and record.worker != worker:
                moved = f"runs on {record.worker}" + (f", {worker} before" if worker else "")
                yield Change(record.at, name, Kind.WORKER, moved, number)
                worker = record.worker
            elif has_failed(record.status):
                yield Change(record.at, name, Kind.FAILED, f"FAILED on {record.worker}", number)

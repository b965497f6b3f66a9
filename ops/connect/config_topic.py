"""What the config topic says: connectors, their wished-for states, their tasks and the last round of fencing.

Source: ``KafkaConfigBackingStore``. Keys are plain strings, values JSON objects; a tombstone deletes. A connector is there
if its ``connector-<name>`` record is; what other records are left of a deleted connector stays visible, because a
re-created one inherits it (the task count record above all).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.masking import remember
from connectctl.ops.connect.connector_class import kind_of
from connectctl.ops.connect.group_mark import GroupMark, mark_in
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord, TopicImage

UNREADABLE_RECORD = Rule("RECORD001", Severity.WARNING)
CONNECTOR = "connector-"
TASK = "task-"
COMMIT = "commit-"
TARGET = "target-state-"
FENCING = "tasks-fencing-"
_PREFIXES = (FENCING, TARGET, CONNECTOR, COMMIT, TASK)
STATE = "state"
_QUIET = {"session-key": "algorithm", "restart-connector-": "include-tasks", "logger-cluster-": "level"}
MEMBERS = {
    CONNECTOR: "properties",
    TASK: "properties",
    COMMIT: "tasks",
    TARGET: "state",
    FENCING: "task-count",
} | _QUIET
"""Every kind of record, by the beginning of its key, with a member that its value always has."""


@dataclass(frozen=True)
class ConfiguredConnector:
    """A connector as the config topic has it. ``target_state`` is STARTED, PAUSED or STOPPED.

    ``task_records`` are its tasks' configurations as they stand there: what a cluster has most of, and few look at.
    """

    name: str
    config: dict[str, str]
    target_state: str = "STARTED"
    task_count: int = 0
    task_count_record: int | None = None
    task_records: dict[int, bytes] = field(default_factory=dict)
    fencing_pending: bool = False

    @property
    def task_configs(self) -> dict[int, dict[str, str]]:
        return {n: read_json(record).get("properties", {}) for n, record in self.task_records.items()}

    @property
    def looks_like(self) -> str | None:
        """``source`` or ``sink`` by its class name and properties, None where they do not tell."""
        return kind_of(self.config)


@dataclass(frozen=True)
class ConfigState:
    """All connectors by name, and the names of deleted connectors of which other records remain.

    ``mark`` is the newest mark of a group, None where only workers have written.
    """

    connectors: dict[str, ConfiguredConnector]
    deleted: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    limits: Mapping[str, Mapping[int, tuple[int, str | None]]] = field(default_factory=dict)
    """Of each connector's task configurations, also those in force no more, the offset and ``tasks.max``, by task."""
    mark: GroupMark | None = None


def state_of(image: TopicImage) -> ConfigState:
    """As ``parse`` of a whole topic, once for every image."""
    if STATE not in image.made:
        image.made[STATE] = parse(image.latest, image.topic)
    state: ConfigState = image.made[STATE]
    return state


def parse(records: Iterable[ConsumerRecord], topic: str) -> ConfigState:
    """The state that the newest records of the config topic add up to. What cannot be read becomes a finding."""
    newest: dict[str, tuple[int, Any]] = {}
    own: dict[str, list[Mapping[str, str]]] = {}
    limits: dict[str, dict[int, tuple[int, str | None]]] = {}
    findings: list[Finding] = []
    for record in sorted(records, key=lambda r: r.offset):
        try:
            key, value = decode(record)
        except ValueError:
            findings.append(_unreadable(topic, record, "it is not a Connect record"))
            continue
        if key.startswith(_PREFIXES) and (value is None or isinstance(value, dict)):
            if key.startswith(TASK) and value is not None:
                _note(own, newest, key, value)
                _limit(limits, key, record.offset, value)
                value = record.value
            elif key.startswith(CONNECTOR) and value is not None and isinstance(value.get("properties"), dict):
                # Thousands of connectors have the same names of properties.
                value["properties"] = {intern(name): text for name, text in value["properties"].items()}
            newest[key] = (record.offset, value)
        elif not key.startswith(tuple(_QUIET)):
            findings.append(_unreadable(topic, record, f"unknown record key {key!r}"))
    return replace(_assemble(newest, own, findings), limits=limits, mark=_newest_mark(newest))


def decode(record: ConsumerRecord) -> tuple[str, Any]:
    """The key and the JSON value of a record of the config or status topic, None for a tombstone. Raises ``ValueError``."""
    return (record.key or b"").decode(), None if record.value is None else read_json(record.value)


def newest(records: Iterable[ConsumerRecord], wanted: Callable[[str], bool]) -> dict[str, tuple[int, dict[str, Any]]]:
    """Offset and value of the newest record of each key that is ``wanted``, empty for a tombstone.

    What is not a Connect record changes nothing, as with workers.
    """
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for record in sorted(records, key=lambda r: r.offset):
        if wanted((record.key or b"").decode(errors="replace")):
            with suppress(ValueError):
                key, value = decode(record)
                if value is None or isinstance(value, dict):
                    found[key] = record.offset, value or {}
    return found


def _newest_mark(newest: Mapping[str, tuple[int, Any]]) -> GroupMark | None:
    commits = [(at, value) for key, (at, value) in newest.items() if key.startswith(COMMIT) and value]
    marks = [mark for _, value in sorted(commits, key=itemgetter(0)) if (mark := mark_in(value))]
    return marks[-1] if marks else None


def _limit(
    limits: dict[str, dict[int, tuple[int, str | None]]], key: str, offset: int, value: Mapping[str, Any]
) -> None:
    name, _, number = key.removeprefix(TASK).rpartition("-")
    config = value.get("properties")
    if number.isdecimal() and isinstance(config, dict):
        limits.setdefault(name, {})[int(number)] = (offset, config.get("tasks.max"))


def _note(
    own: dict[str, list[Mapping[str, str]]], newest: Mapping[str, tuple[int, Any]], key: str, value: Mapping[str, Any]
) -> None:
    """What a task's configuration has that its connector's has not, which it mostly repeats: secrets may be in either."""
    name, _, _ = key.removeprefix(TASK).rpartition("-")
    config = value.get("properties", {})
    _, known = newest.get(CONNECTOR + name, (-1, None))
    base = (known or {}).get("properties", {})
    own.setdefault(name, [base]).append({n: v for n, v in config.items() if base.get(n) != v})


def _unreadable(topic: str, record: ConsumerRecord, why: str) -> Finding:
    subject = f"{topic}-{record.partition}@{record.offset}"
    return UNREADABLE_RECORD.found(subject, f"A record of the config topic is ignored: {why}.")


def _assemble(
    newest: dict[str, tuple[int, Any]], own: Mapping[str, list[Mapping[str, str]]], findings: list[Finding]
) -> ConfigState:
    live = {k.removeprefix(CONNECTOR): v for k, (_, v) in newest.items() if k.startswith(CONNECTOR) and v is not None}
    tasks: dict[str, dict[int, bytes]] = {}
    for key, (_, value) in newest.items():
        name, _, number = key.removeprefix(TASK).rpartition("-")
        if key.startswith(TASK) and name and number.isdigit() and value is not None:
            tasks.setdefault(name, {})[int(number)] = value
    connectors = {}
    for name, value in live.items():
        committed, count = newest.get(COMMIT + name, (-1, None))
        fenced, record = newest.get(FENCING + name, (-1, None))
        _, target = newest.get(TARGET + name, (-1, None))
        number = (count or {}).get("tasks", 0)
        config = value.get("properties", {})
        for each in (config, *(noted for noted in own.get(name, ()) if noted is not config)):
            remember(each)
        connectors[name] = ConfiguredConnector(
            name=name,
            config=config,
            # Workers before 3.5 know only "state", in which a stopped connector looks paused.
            target_state=(target or {}).get("state.v2") or (target or {}).get("state", "STARTED"),
            task_count=number,
            task_count_record=(record or {}).get("task-count"),
            task_records={n: c for n, c in sorted(tasks.get(name, {}).items()) if n < number},
            fencing_pending=committed > fenced,
        )
    gone = {k.removeprefix(p) for k in newest for p in (FENCING, COMMIT) if k.startswith(p)} - live.keys()
    return ConfigState(dict(sorted(connectors.items())), frozenset(gone), tuple(findings))

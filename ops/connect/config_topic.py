"""What the config topic says: connectors, their wished-for states, their tasks and the last round of fencing.

Source: ``KafkaConfigBackingStore``. Keys are plain strings, values JSON objects; a tombstone deletes. A connector is there
if its ``connector-<name>`` record is; what other records are left of a deleted connector stays visible, because a
re-created one inherits it (the task count record above all).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING, Any

from connectctl.ops.config import json_shape
from connectctl.ops.config.json_shape import Malformed, an_object
from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.masking import remember
from connectctl.ops.connect.connector_class import kind_of
from connectctl.ops.connect.group_mark import GroupMark, mark_in
from connectctl.ops.connect.ignored_records import ignored

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.kafka.records import ConsumerRecord, TopicImage

CONNECTOR = "connector-"
TASK = "task-"
COMMIT = "commit-"
TARGET = "target-state-"
FENCING = "tasks-fencing-"
_SESSION_KEY, _RESTART, _LOGGER = "session-key", "restart-connector-", "logger-cluster-"
_NAMELESS = (_SESSION_KEY, _RESTART, _LOGGER)
"""Records that say nothing of the state of a connector."""
_PREFIXES = (FENCING, TARGET, CONNECTOR, COMMIT, TASK, *_NAMELESS)
STATE = "state"
_QUIET = {_SESSION_KEY: "algorithm", _RESTART: "include-tasks", _LOGGER: "level"}
MEMBERS = {
    CONNECTOR: "properties",
    TASK: "properties",
    COMMIT: "tasks",
    TARGET: "state",
    FENCING: "task-count",
} | _QUIET
"""Every kind of record, by the beginning of its key, with a member that its value always has."""
MOST_TASKS = 100_000
"""Most tasks of a connector that a record is believed to have: no Connect cluster runs so many."""


def _target_state(value: Any) -> None:
    """Allow what workers take a target state from: ``state.v2``, and only where that is missing ``state``."""
    an_object({})(value)
    name = "state" if value.get("state.v2") is None else "state.v2"
    an_object({name: json_shape.one_of("STARTED", "PAUSED", "STOPPED")})(value)


_COUNT = json_shape.between(0, MOST_TASKS)
_SHAPES = {
    CONNECTOR: an_object({"properties": json_shape.texts}),
    TASK: an_object({"properties": json_shape.texts}),
    COMMIT: an_object({"tasks": _COUNT}),
    TARGET: _target_state,
    FENCING: an_object({"task-count": _COUNT}),
    _SESSION_KEY: an_object({"key": json_shape.text, "algorithm": json_shape.text}),
    _RESTART: an_object({}),
    _LOGGER: an_object({"level": json_shape.text}),
}
"""The values that workers take of each kind of record; they ignore others (``KafkaConfigBackingStore``)."""


@dataclass(frozen=True)
class ConfiguredConnector:
    """A connector as the config topic has it. ``target_state`` is STARTED, PAUSED or STOPPED.

    ``task_records`` are its tasks' configurations as they stand there: what a cluster has most of, and few look at.
    ``unread`` are the kinds of its records, by prefix, of which the only one is ignored: their values here are defaults.
    """

    name: str
    config: dict[str, str]
    target_state: str = "STARTED"
    task_count: int = 0
    task_count_record: int | None = None
    task_records: dict[int, bytes] = field(default_factory=dict)
    fencing_pending: bool = False
    unread: frozenset[str] = frozenset()

    @property
    def task_configs(self) -> dict[int, dict[str, str]]:
        return {n: _values(_json(record)["properties"]) for n, record in self.task_records.items()}

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
    ignored: frozenset[bytes] = frozenset()
    """The keys whose newest record is ignored."""
    limits: Mapping[str, Mapping[int, tuple[int, str | None]]] = field(default_factory=dict)
    """Of each connector's task configurations, also those in force no more, the offset and ``tasks.max``, by task."""
    mark: GroupMark | None = None


def state_of(image: TopicImage) -> ConfigState:
    """As ``parse`` of a whole topic, once for every image."""
    state: ConfigState | None = image.made.get(STATE)
    if state is None or (state.ignored and image.superseded):
        state = image.made[STATE] = parse(image.latest, image.topic, image.superseded)
    return state


def parse(records: Iterable[ConsumerRecord], topic: str, superseded: Iterable[ConsumerRecord] = ()) -> ConfigState:
    """The state that the newest records of the config topic add up to. What cannot be read becomes a finding.

    Where the newest record of a key is ignored, the one before it counts, as with workers, if it is among ``superseded``.
    """
    newest = sorted(records, key=lambda r: r.offset)
    state = _parsed(newest, topic)
    if state.ignored and (former := [r for r in superseded if r.key in state.ignored]):
        state = _parsed(sorted([*newest, *former], key=lambda r: r.offset), topic)
    return state


def _parsed(records: Iterable[ConsumerRecord], topic: str) -> ConfigState:
    newest: dict[str, tuple[int, Any]] = {}
    own: dict[str, list[Mapping[str, str]]] = {}
    limits: dict[str, dict[int, tuple[int, str | None]]] = {}
    findings: list[Finding] = []
    unread: dict[str, bytes] = {}
    for record in records:
        key = (record.key or b"").decode(errors="replace")
        try:
            key, value = read(record)
        except ValueError as e:
            findings.append(ignored(topic, record, str(e)))
            if record.key is not None:
                unread[key] = record.key
            continue
        unread.pop(key, None)
        if key.startswith(_NAMELESS):
            continue
        if key.startswith(TASK) and value is not None:
            _note(own, newest, key, value)
            _limit(limits, key, record.offset, value)
        kept = record.value if key.startswith(TASK) else value
        newest[key] = (record.offset, kept)
    state = _assemble(newest, own, findings, unread.keys() - newest.keys())
    return replace(state, limits=limits, ignored=frozenset(unread.values()), mark=_newest_mark(newest))


def decode(record: ConsumerRecord) -> tuple[str, Any]:
    """The key and the JSON value of a record of the config or status topic, None for a tombstone. Raises ``ValueError``."""
    try:
        key = (record.key or b"").decode()
    except UnicodeDecodeError as e:
        raise Malformed("is not UTF-8", "its key") from e
    if record.value is None:
        return key, None
    return key, _json(record.value)


def _json(raw: bytes) -> Any:
    try:
        value = read_json(raw)
    except ValueError as e:
        raise Malformed("is not JSON", "its value") from e
    return json_shape.encodable(value) if json_shape.has_escaped_surrogate(raw) else value


def read(record: ConsumerRecord) -> tuple[str, dict[str, Any] | None]:
    """The key and the value of a record that says something of a connector, None for a tombstone.

    Raises ``ValueError`` with the reason why workers ignore it, or cannot do anything with it.
    """
    key, value = decode(record)
    prefix = next((each for each in _PREFIXES if key.startswith(each)), None)
    if prefix is None:
        raise Malformed("is none of Connect", "its key")
    if prefix not in _NAMELESS and not (task_of(key) if prefix == TASK else key.removeprefix(prefix)):
        raise Malformed(f"names no {'task' if prefix == TASK else 'connector'}", "its key")
    if value is not None:
        try:
            _SHAPES[prefix](value)
        except Malformed as e:
            raise Malformed(e.problem, e.path or "its value") from e
        if prefix == CONNECTOR or (prefix == TASK and None in value["properties"].values()):
            value["properties"] = _values(value["properties"])
    return key, value


def _values(properties: Mapping[str, str | None]) -> dict[str, str]:
    """The properties that have a value. Thousands of connectors have the same names of properties."""
    return {intern(name): text for name, text in properties.items() if text is not None}


def task_of(key: str) -> tuple[str, int] | None:
    """The connector and the number of the task in a key ``task-NAME-N``; None where it is none that workers take."""
    name, _, number = key.removeprefix(TASK).rpartition("-")
    return (name, int(number)) if name and key.startswith(TASK) and is_task_number(number) else None


def is_task_number(text: str) -> bool:
    """Whether ``text`` is the number of a task, as ``Integer.parseInt`` takes it."""
    return text.isdecimal() and len(text) <= 10 and int(text) < 1 << 31


def newest(records: Iterable[ConsumerRecord], wanted: Callable[[str], bool]) -> dict[str, tuple[int, dict[str, Any]]]:
    """Offset and value of the newest record of each key that is ``wanted``, empty for a tombstone.

    What is not a Connect record changes nothing, as with workers.
    """
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for record in sorted(records, key=lambda r: r.offset):
        if wanted((record.key or b"").decode(errors="replace")):
            with suppress(ValueError):
                key, value = read(record)
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
    limits.setdefault(name, {})[int(number)] = (offset, value["properties"].get("tasks.max"))


def _note(
    own: dict[str, list[Mapping[str, str]]], newest: Mapping[str, tuple[int, Any]], key: str, value: Mapping[str, Any]
) -> None:
    """What a task's configuration has that its connector's has not, which it mostly repeats: secrets may be in either."""
    name, _, _ = key.removeprefix(TASK).rpartition("-")
    config = value.get("properties", {})
    _, known = newest.get(CONNECTOR + name, (-1, None))
    base = (known or {}).get("properties", {})
    own.setdefault(name, [base]).append({n: v for n, v in config.items() if base.get(n) != v})


def _assemble(
    newest: dict[str, tuple[int, Any]],
    own: Mapping[str, list[Mapping[str, str]]],
    findings: list[Finding],
    unread: Collection[str],
) -> ConfigState:
    live = {k.removeprefix(CONNECTOR): v for k, (_, v) in newest.items() if k.startswith(CONNECTOR) and v is not None}
    tasks: dict[str, dict[int, bytes]] = {}
    for key, (_, value) in newest.items():
        if value is not None and key.startswith(TASK):
            name, _, number = key.removeprefix(TASK).rpartition("-")
            tasks.setdefault(name, {})[int(number)] = value
    connectors = {}
    for name, value in live.items():
        committed, count = newest.get(COMMIT + name, (-1, None))
        fenced, record = newest.get(FENCING + name, (-1, None))
        _, target = newest.get(TARGET + name, (-1, None))
        number = (count or {}).get("tasks", 0)
        config = value["properties"]
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
            unread=frozenset(prefix for prefix in (COMMIT, TARGET, FENCING) if prefix + name in unread),
        )
    gone = {k.removeprefix(p) for k in newest for p in (FENCING, COMMIT) if k.startswith(p)} - live.keys()
    return ConfigState(dict(sorted(connectors.items())), frozenset(gone), tuple(findings))

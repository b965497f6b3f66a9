"""The contents of the config topic: connectors, target states, tasks and the last round of zombie
fencing.

Source: ``KafkaConfigBackingStore``. Keys are plain strings, values JSON objects; a tombstone
deletes. A connector exists if its ``connector-<name>`` record exists. Other records of a deleted
connector stay visible, because a connector that is created again with this name inherits them,
above all the task count record.
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
"""Prefixes of records that concern no connector."""
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
"""Every kind of record: its key prefix, with a member that its value always has."""
MOST_TASKS = 100_000
"""The highest plausible number of tasks of a connector: no Connect cluster runs so many."""


STARTED = "STARTED"
"""The target state without a record."""


def target_state(value: Mapping[str, Any]) -> str:
    """Return the target state that workers read in the value of a record: ``state.v2``, else
    ``state``, which alone workers before 3.5 know, and in which a stopped connector looks paused.
    """
    return str(value[_member_with_state(value)])


def _member_with_state(value: Mapping[str, Any]) -> str:
    return "state" if value.get("state.v2") is None else "state.v2"


def _target_state(value: Any) -> None:
    """Accept a value with a target state."""
    an_object({})(value)
    known = json_shape.one_of(STARTED, "PAUSED", "STOPPED")
    an_object({_member_with_state(value): known})(value)


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
"""The shapes that workers accept for each kind of record; they ignore other values
(``KafkaConfigBackingStore``).
"""


@dataclass(frozen=True)
class ConfiguredConnector:
    """A connector as the config topic defines it. ``target_state`` is STARTED, PAUSED or STOPPED.

    ``task_records`` are its task configurations as undecoded values: they are most of a topic, and
    few readers need them. ``unread`` are the kinds of its records, by prefix, whose only record is
    ignored: their fields here have defaults.
    """

    name: str
    config: dict[str, str]
    target_state: str = STARTED
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
        """Return ``source`` or ``sink`` by the class name and properties, None if they do not
        determine it.
        """
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
    """The offset and ``tasks.max`` of each task configuration, by connector and task, superseded
    tasks included.
    """
    mark: GroupMark | None = None


def is_configured(state: ConfigState | None, name: str) -> bool:
    """Return whether the connector exists by the config topic; True if the topic was not read."""
    return state is None or name in state.connectors


def state_of(image: TopicImage) -> ConfigState:
    """Return the state of the topic in ``image``; it is parsed once for every image."""
    state: ConfigState | None = image.made.get(STATE)
    if state is None or (state.ignored and image.superseded):
        state = image.made[STATE] = parse(image.latest, image.topic, image.superseded)
    return state


def parse(
    records: Iterable[ConsumerRecord], topic: str, superseded: Iterable[ConsumerRecord] = ()
) -> ConfigState:
    """Return the state that the newest records of the config topic define. An unreadable record
    becomes a finding.

    If the newest record of a key is ignored, the record before it counts, as for workers, provided
    that it is in ``superseded``.
    """
    newest = sorted(records, key=lambda r: r.offset)
    state = _parsed(newest, topic)
    if state.ignored and (former := [r for r in superseded if r.key in state.ignored]):
        state = _parsed(sorted([*newest, *former], key=lambda r: r.offset), topic)
    return state


def _parsed(records: Iterable[ConsumerRecord], topic: str) -> ConfigState:
    newest: dict[str, tuple[int, Any]] = {}
    task_overrides: dict[str, list[Mapping[str, str]]] = {}
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
            _note(task_overrides, newest, key, value)
            _limit(limits, key, record.offset, value)
        kept = record.value if key.startswith(TASK) else value
        newest[key] = (record.offset, kept)
    state = _assemble(newest, task_overrides, findings, unread.keys() - newest.keys())
    return replace(
        state, limits=limits, ignored=frozenset(unread.values()), mark=_newest_mark(newest)
    )


def decode(record: ConsumerRecord) -> tuple[str, Any]:
    """Return the key and JSON value of a record of the config or status topic; the value of a
    tombstone is None.

    Raises ``ValueError``.
    """
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
    """Return the key and value of a Connect record; the value of a tombstone is None.

    Raises ``ValueError`` with the reason why workers ignore the record or cannot use it.
    """
    key, value = decode(record)
    prefix = next((known for known in _PREFIXES if key.startswith(known)), None)
    if prefix is None:
        raise Malformed("is none of Connect", "its key")
    if prefix not in _NAMELESS and not (
        task_of(key) if prefix == TASK else key.removeprefix(prefix)
    ):
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
    """Return the properties that have a value, with interned names: thousands of connectors have
    the same names.
    """
    return {intern(name): text for name, text in properties.items() if text is not None}


def task_of(key: str) -> tuple[str, int] | None:
    """Return the connector and the task number of a key ``task-NAME-N``; None for a key that
    workers do not accept.
    """
    name, _, number = key.removeprefix(TASK).rpartition("-")
    return (name, int(number)) if name and key.startswith(TASK) and is_task_number(number) else None


def subject_of(key: str) -> tuple[str, str, int | None] | None:
    """Return the prefix, the connector and the task number of a key; None if it concerns no
    connector. The task is None for keys that have none.
    """
    kind = next((known for known in _PREFIXES if key.startswith(known)), None)
    if kind is None or kind in _NAMELESS:
        return None
    if kind == TASK:
        task = task_of(key)
        return (kind, *task) if task else None
    return kind, key.removeprefix(kind), None


def is_task_number(text: str) -> bool:
    """Return whether ``text`` is a task number that ``Integer.parseInt`` accepts."""
    return text.isdecimal() and len(text) <= 10 and int(text) < 1 << 31


def newest(
    records: Iterable[ConsumerRecord], is_wanted: Callable[[str], bool]
) -> dict[str, tuple[int, dict[str, Any]]]:
    """Return the offset and value of the newest record of each ``wanted`` key; the value of a
    tombstone is empty.

    Records that are not Connect's change nothing, as for workers.
    """
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for record in sorted(records, key=lambda r: r.offset):
        if is_wanted((record.key or b"").decode(errors="replace")):
            with suppress(ValueError):
                key, value = read(record)
                found[key] = record.offset, value or {}
    return found


def _newest_mark(newest: Mapping[str, tuple[int, Any]]) -> GroupMark | None:
    commits = [
        (offset, value)
        for key, (offset, value) in newest.items()
        if key.startswith(COMMIT) and value
    ]
    marks = [mark for _, value in sorted(commits, key=itemgetter(0)) if (mark := mark_in(value))]
    return marks[-1] if marks else None


def _limit(
    limits: dict[str, dict[int, tuple[int, str | None]]],
    key: str,
    offset: int,
    value: Mapping[str, Any],
) -> None:
    name, _, number = key.removeprefix(TASK).rpartition("-")
    limits.setdefault(name, {})[int(number)] = (offset, value["properties"].get("tasks.max"))


def _note(
    overrides: dict[str, list[Mapping[str, str]]],
    known: Mapping[str, tuple[int, Any]],
    key: str,
    value: Mapping[str, Any],
) -> None:
    """Remember the properties of a task that its connector does not have: either may hold
    secrets.
    """
    name, _, _ = key.removeprefix(TASK).rpartition("-")
    config = value.get("properties", {})
    _, configured = known.get(CONNECTOR + name, (-1, None))
    base = (configured or {}).get("properties", {})
    overrides.setdefault(name, [base]).append({n: v for n, v in config.items() if base.get(n) != v})


def _assemble(
    newest: dict[str, tuple[int, Any]],
    task_overrides: Mapping[str, list[Mapping[str, str]]],
    findings: list[Finding],
    unread: Collection[str],
) -> ConfigState:
    live = {
        k.removeprefix(CONNECTOR): v
        for k, (_, v) in newest.items()
        if k.startswith(CONNECTOR) and v is not None
    }
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
        for properties in (
            config,
            *(more for more in task_overrides.get(name, ()) if more is not config),
        ):
            remember(properties)
        connectors[name] = ConfiguredConnector(
            name=name,
            config=config,
            target_state=target_state(target) if target else STARTED,
            task_count=number,
            task_count_record=(record or {}).get("task-count"),
            task_records={n: c for n, c in sorted(tasks.get(name, {}).items()) if n < number},
            fencing_pending=committed > fenced,
            unread=frozenset(
                prefix for prefix in (COMMIT, TARGET, FENCING) if prefix + name in unread
            ),
        )
    deleted = {
        k.removeprefix(p) for k in newest for p in (FENCING, COMMIT) if k.startswith(p)
    } - live.keys()
    return ConfigState(dict(sorted(connectors.items())), frozenset(deleted), tuple(findings))

"""The status topic: the states of connectors and tasks in Connect's format. Source:
``KafkaStatusBackingStore``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_shape import Malformed, an_object, one_of, text, whole
from connectctl.ops.connect.config_topic import decode, is_task_number
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.ignored_records import ignored

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord

CONNECTOR, TASK, TOPIC = "status-connector-", "status-task-", "status-topic-"
MEMBERS = {CONNECTOR: "worker_id", TASK: "worker_id", TOPIC: "topic"}
"""Every kind of record: its key prefix, with a member that its value always has."""

_STATES = ("UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "DESTROYED", "RESTARTING", "STOPPED")
_STATUS = an_object(
    {"state": one_of(*_STATES)}, {"worker_id": text, "trace": text, "generation": whole}
)
_TOPIC = an_object({"topic": an_object({"name": text, "connector": text})})
"""The shapes of the values that workers accept (``KafkaStatusBackingStore``)."""


def newest(
    records: Iterable[ConsumerRecord], prefix: str = "", topic: str | None = None
) -> dict[tuple[str, int], tuple[ConsumerRecord, dict[str, Any]]]:
    """Return the newest status of each connector and task, ``CONNECTOR_INSTANCE`` for the connector
    itself.

    ``prefix`` precedes every key. A tombstone deletes a status. Records that are not Connect's
    change nothing, and are reported for ``topic``, if that is given.
    """
    found: dict[tuple[str, int], tuple[ConsumerRecord, dict[str, Any]]] = {}
    for record in sorted(records, key=lambda r: r.offset):
        try:
            part, value = _read(record, prefix)
        except ValueError as e:
            if topic is not None:
                ignored(topic, record, str(e))
            continue
        if part is not None and value is None:
            found.pop(part, None)
        elif part is not None and value is not None:
            found[part] = record, value
    return found


def retained(
    records: Iterable[ConsumerRecord],
) -> Iterator[tuple[tuple[str, int], ConsumerRecord, dict[str, Any] | None]]:
    """Yield every status of a connector or task in the order of the log, a tombstone with None.
    ``newest`` reports ignored records.
    """
    for record in sorted(records, key=lambda r: r.offset):
        with suppress(ValueError):
            part, value = _read(record, "")
            if part is not None:
                yield part, record, value


def topics(records: Iterable[ConsumerRecord]) -> dict[str, frozenset[str]]:
    """Return the active topics of each connector (KIP-558). ``newest`` reports ignored records."""
    found: dict[str, set[str]] = {}
    for record in sorted(records, key=lambda r: r.offset):
        if (record.key or b"").startswith(TOPIC.encode()):
            try:
                _, value = decode(record)
                _TOPIC(value)
            except ValueError:
                continue
            found.setdefault(value["topic"]["connector"], set()).add(value["topic"]["name"])
    return {name: frozenset(names) for name, names in found.items()}


def _read(
    record: ConsumerRecord, prefix: str
) -> tuple[tuple[str, int] | None, dict[str, Any] | None]:
    """Return the connector or task and its status; None for a record of an active topic. Raises
    ``ValueError``.
    """
    key, value = decode(record)
    if not key.startswith(prefix):
        raise Malformed("is none of Connect", "its key")
    key = key.removeprefix(prefix)
    if key.startswith(TOPIC):
        if value is not None:
            _TOPIC(value)
        return None, None
    part = _part(key)
    if part is None:
        raise Malformed("is none of Connect", "its key")
    if value is not None:
        _STATUS(value)
    return part, value


def _part(key: str) -> tuple[str, int] | None:
    if key.startswith(CONNECTOR):
        return (key.removeprefix(CONNECTOR), CONNECTOR_INSTANCE) if key != CONNECTOR else None
    name, _, number = key.removeprefix(TASK).rpartition("-")
    return (name, int(number)) if key.startswith(TASK) and name and is_task_number(number) else None

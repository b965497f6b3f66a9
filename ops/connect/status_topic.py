"""The status topic: whose state is there, in Connect's format. Source: ``KafkaStatusBackingStore``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.config_topic import decode
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord

CONNECTOR, TASK, TOPIC = "status-connector-", "status-task-", "status-topic-"
MEMBERS = {CONNECTOR: "worker_id", TASK: "worker_id", TOPIC: "topic"}
"""Every kind of record, by the beginning of its key, with a member that its value always has."""


def newest(
    records: Iterable[ConsumerRecord], prefix: str = ""
) -> dict[tuple[str, int], tuple[ConsumerRecord, dict[str, Any]]]:
    """The newest status of each connector and task that has one, ``CONNECTOR_INSTANCE`` for the connector itself.

    ``prefix`` stands before every key. A tombstone takes a status back; what is not a Connect record changes nothing.
    """
    found: dict[tuple[str, int], tuple[ConsumerRecord, dict[str, Any]]] = {}
    for record in sorted(records, key=lambda r: r.offset):
        part = _part((record.key or b"").decode(errors="replace"), prefix)
        if part is None:
            continue
        with suppress(ValueError):
            _, value = decode(record)
            if value is None:
                found.pop(part, None)
            elif isinstance(value, dict) and value.get("state"):
                found[part] = record, value
    return found


def _part(key: str, prefix: str) -> tuple[str, int] | None:
    if key.startswith(prefix + CONNECTOR):
        return key.removeprefix(prefix + CONNECTOR), CONNECTOR_INSTANCE
    name, _, number = key.removeprefix(prefix + TASK).rpartition("-")
    return (name, int(number)) if key.startswith(prefix + TASK) and name and number.isdecimal() else None

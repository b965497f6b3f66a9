"""The committed offsets of a connector as its tasks read them, with the stored spelling of their
keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.offset_rules import stored_form
from connectctl.ops.connect.source_keys import SourceKey, connect_json, decode_json, parse_key

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.connector import Partition
    from connectctl.ops.task_runtime.spi.transaction_batch import StoredOffsets

MOST_KEYS = 100_000
"""The number of source partitions whose keys are cached."""


class TaskOffsets:
    """The offsets of one connector for a task, with the stored spelling of their keys."""

    def __init__(self, connector: str, stored: StoredOffsets):
        self._connector = connector
        self._stored = stored
        self._read: dict[bytes, bytes | None] = {}
        self._listed = False
        self._spelled: dict[str, bytes] = {}
        self._keys: dict[str, bytes] = {}
        for raw in stored.known():
            key = parse_key(raw)
            if isinstance(key, SourceKey):
                self._spelled[key.meaning] = raw

    def key(self, partition: Partition) -> bytes:
        """Return the raw key of ``partition``: the stored one, else as Connect would write it."""
        # Tasks name the same few partitions in record after record. Unlike ==, repr distinguishes
        # 1, True and 1.0.
        name = repr(dict(partition))
        key = self._keys.get(name)
        if key is None:
            if len(self._keys) >= MOST_KEYS:
                self._keys.clear()
            stored = stored_form(partition)
            text = connect_json([self._connector, stored])
            key = self._spelled.get(
                json.dumps([self._connector, stored], sort_keys=True), text.encode()
            )
            self._keys[name] = key
        return key

    def offset(self, partition: Partition) -> dict[str, Any] | None:
        """Return the offset of ``partition``, None without one."""
        key = self.key(partition)
        value = self._read[key] = self._stored.value(key)
        return None if value is None else _object(value)

    def committed(self, key: bytes) -> bytes | None:
        """Return the raw offset of ``key`` committed when the task began, None without one or for a
        tombstone.
        """
        return self._stored.value(key)

    def offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return every source partition that has an offset."""
        self._listed = True
        self._read |= {raw: self._stored.value(raw) for raw in self._spelled.values()}
        keys = ((parse_key(raw), self._stored.value(raw)) for raw in self._spelled.values())
        return [
            (k.partition, _object(v))
            for k, v in keys
            if isinstance(k, SourceKey) and k.partition is not None and v
        ]

    def unchanged(self, stored: StoredOffsets, settled: Mapping[bytes, bytes | None]) -> bool:
        """Return whether ``stored`` has what the task read and then committed (``settled``), and no
        commits of other tasks.
        """
        expected = self._read | dict(settled)
        same = all(stored.value(key) == value for key, value in expected.items())
        return same and (not self._listed or stored.known() <= expected.keys())


def _object(value: bytes) -> dict[str, Any]:
    offset, _ = decode_json(value.decode())
    return dict(offset)

"""Rows that were written, by their hashes, for as long as a window: what late rows are held against.

The hashes lie in the offsets topic as a ring of records, so that they are committed with the rows. Each task fills a ring of
its own, and looks into those of all.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from connectctl.ops.connect.source_keys import SourceKey, connect_json, parse_key
from connectctl.ops.connect.stream_source_partitions import ROWS, STREAM

SLOT = 2048
"""Hashes in a record: what a transaction of one row writes again of those before it."""


class LateRows:
    """The rows that tasks of a connector remember, ``window`` of them for each task."""

    def __init__(self, task: int, window: int):
        import numpy as np

        self._task, self._slots = task, -(-window // SLOT) + 1
        self._turn, self._open = 0, np.zeros(0, np.int64)
        self._known = np.zeros(0, np.int64)
        self._next: tuple[int, Any, Any] | None = None

    def load(self, stored: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take what is committed: raw keys and values, of which some are ours."""
        import numpy as np

        found = []
        self._turn, self._open, self._next = 0, np.zeros(0, np.int64), None
        for raw, value in stored:
            key = parse_key(raw)
            if not isinstance(key, SourceKey) or (key.partition or {}).get(STREAM) != ROWS or value is None:
                continue
            data = json.loads(value)
            some = np.frombuffer(base64.b64decode(data["hashes"]), "<i8").astype(np.int64)
            found.append(some)
            if (key.partition or {}).get("task") == self._task and data["turn"] >= self._turn:
                self._turn, self._open = data["turn"], some
        self._known = np.concatenate(found) if found else np.zeros(0, np.int64)

    def unknown(self, hashes: Any) -> Any:
        """For each of ``hashes`` whether it is not remembered, nor another one before it is the same."""
        import numpy as np

        first = np.zeros(len(hashes), bool)
        first[np.unique(hashes, return_index=True)[1]] = True
        return first & ~np.isin(hashes, self._known)

    def records(self, hashes: Any, key: Callable[[Mapping[str, Any]], bytes]) -> dict[bytes, bytes | None]:
        """What is to be committed so that ``hashes`` are remembered, too; see ``committed``."""
        import numpy as np

        whole = np.concatenate([self._open, hashes])
        slots = [(self._turn + n, whole[at : at + SLOT]) for n, at in enumerate(range(0, len(whole), SLOT))]
        found: dict[bytes, bytes | None] = {}
        for turn, some in slots[-self._slots :]:
            data = {"turn": turn, "hashes": base64.b64encode(some.astype("<i8").tobytes()).decode()}
            place = {STREAM: ROWS, "task": self._task, "slot": turn % self._slots}
            found[key(place)] = connect_json(data).encode()
        self._next = (*slots[-1], hashes) if slots else None
        return found

    def committed(self) -> None:
        """What ``records`` gave last is committed."""
        import numpy as np

        if self._next is not None:
            self._turn, self._open, new = self._next
            self._known, self._next = np.concatenate([self._known, new]), None

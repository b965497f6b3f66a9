"""Rows of a stream that come after those that they belong before: they would be taken for delivered, and are not.

Within one query Spark gives each row once. So a row that is not behind what the query's former micro-batches committed, but
behind what had been committed when it began, was never delivered, and never will be: its source partition is not ordered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectctl.ops.model.sourcekey import SourceKey, decode_json, parse_key
from connectctl.ops.model.streamkey import is_of_a_stream
from connectctl.ops.runtime.patience import NONE, Patience

if TYPE_CHECKING:
    from connectctl.ops.runtime.pieces import Columns
    from connectctl.ops.runtime.step import Readable

Passed = Mapping[tuple[Any, ...], tuple[Any, Any]]
"""By source partition: the offset at which a query found it, None where it was new, and the one at which it is now."""


class Progress:
    """What a query has committed since ``begin``, read from the offsets topic. ``patience`` is in seconds, for a
    reading; ``outage`` says for how long it is repeated.
    """

    def __init__(self, store: Readable, columns: Columns, patience: float, outage: Patience = NONE):
        self._store, self._columns, self._patience, self._outage = store, columns, patience, outage
        self._base: dict[tuple[Any, ...], Any] | None = None

    @property
    def begun(self) -> bool:
        """Whether ``begin`` was called."""
        return self._base is not None

    def begin(self) -> None:
        """From here on. Nobody but this run's tasks may commit any more, or what they do is taken for its own."""
        self._base = self._now()

    def forget(self) -> None:
        """Nothing is known any more, because Spark begins again somewhere."""
        self._base = None

    def passed(self) -> Passed:
        """What has moved since; nothing where that is not known."""
        if self._base is None:
            return {}
        base = self._base
        return {place: (base.get(place), now) for place, now in self._now().items() if base.get(place) != now}

    def _now(self) -> dict[tuple[Any, ...], Any]:
        self._outage("read the committed offsets", lambda: self._store.refresh(self._patience))
        found = {}
        for raw in self._store.known():
            key, value = parse_key(raw), self._store.value(raw)
            if isinstance(key, SourceKey) and key.partition is not None and value is not None:
                if is_of_a_stream(key.partition):
                    continue
                offset, _ = decode_json(value.decode())
                place = tuple(key.partition.get(name) for name in self._columns.partition)
                found[place] = offset.get(self._columns.offset)
        return found

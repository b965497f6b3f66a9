"""Records as the audit’s Spark job reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from connectctl.ops.jobs import audit


class Message:
    """As librdkafka's."""

    def __init__(
        self, offset: int, value: Any, key: Any = None, partition: int = 0, headers: Any = None
    ) -> None:
        self._told = (offset, value, key, partition, headers)

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return int(self._told[3])

    def offset(self) -> int:
        return int(self._told[0])

    def value(self) -> Any:
        return self._told[1]

    def key(self) -> Any:
        return self._told[2]

    def headers(self) -> Any:
        return self._told[4]

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000


def values(*some: Any, **more: Any) -> list[Message]:
    raw = [
        value if isinstance(value, bytes | None) else json.dumps(value).encode() for value in some
    ]
    return [Message(n, value, b"k", **more) for n, value in enumerate(raw)]


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


def as_rows(told: Iterator[Any]) -> list[tuple[Any, ...]]:
    return sorted(map(audit.result_of, told), key=str)

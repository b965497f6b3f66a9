"""Kafka's types, read one after the other from bytes."""

from __future__ import annotations


class FieldReader:
    """Big-endian fields of a buffer. Raises ``ValueError`` where the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise ValueError(f"it ends where {size} more bytes are due")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        """Return a signed number of ``size`` bytes."""
        return int.from_bytes(self.take(size), "big", signed=True)

    def string(self) -> str:
        """Return a string; empty if it is null."""
        return self.take(max(0, self.number(2))).decode()

    def block(self) -> bytes:
        """Return bytes; empty if they are null."""
        return self.take(max(0, self.number(4)))

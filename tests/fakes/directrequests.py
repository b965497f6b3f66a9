"""Requests of one producer to named brokers, without connections of their own."""

from __future__ import annotations

from typing import Any


class SharedWire:
    """Takes the place of ``DirectRequests``: every request goes the way of all others."""

    def __init__(self, wire: Any):
        self._wire = wire

    def ask(self, doing: str, request: Any, broker: int, patience: float | None = None) -> Any:
        return self._wire.run(doing, lambda: self._wire.ask(request, broker, patience=patience))

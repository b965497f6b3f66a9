"""Whether a run keeps the latency that it promised: said once when it does not, and once when it does again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ENOUGH = 20
"""Transactions of a lease from which on its p99 is judged: the first ones wait for topics and connections."""


class LatencyReport:
    """Of the connector ``name``; ``note`` gets the lines."""

    def __init__(self, name: str, note: Callable[[str], None]):
        self._name, self._note = name, note
        self._late: set[int] = set()

    def update(self, messages: Mapping[int, Mapping[str, Any]]) -> None:
        for number, said in messages.items():
            found = said.get("latency")
            if not found or found["p99"] is None or int(said["transactions"]) < ENOUGH:
                continue
            late = found["p99"] > found["promise"]
            if late == (number in self._late):
                continue
            p99, promise = milliseconds(found["p99"]), milliseconds(found["promise"])
            text = f"p99 {p99} of task {number} of {self._name}, {promise} promised"
            if late:
                self._late.add(number)
                self._note(
                    f"latency promise missed: {text}. Its transactions cannot be shorter because of the commits: see "
                    "offset-commit-avg-time-ms and poll-batch-max-time-ms, or raise transaction.boundary.latency.ms."
                )
            else:
                self._late.discard(number)
                self._note(f"latency promise met again: {text}")


def worst(messages: Mapping[int, Mapping[str, Any]]) -> str | None:
    """What a progress line says of the slowest task: its p99 in this lease, and whether that is too much."""
    found = [
        said["latency"] for said in messages.values() if said.get("latency") and said["latency"]["p99"] is not None
    ]
    if not found:
        return None
    slowest = max(found, key=lambda each: float(each["p99"] / each["promise"]))
    p99 = f"p99 {milliseconds(slowest['p99'])}"
    return f"latency promise missed: {p99}" if slowest["p99"] > slowest["promise"] else f"latency {p99}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"

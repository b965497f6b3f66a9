"""Reports once that all tasks of a run wait, with the reason, and once that the wait has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

TaskMessages = Mapping[int, Mapping[str, Any]]


@dataclass(eq=False)
class StallReport:
    """The report for the connector ``name``. Tasks retry for ``patience`` seconds. ``silent``
    returns the brokers that accept no connection, as text.
    """

    name: str
    patience: float
    silent: Callable[[], str | None]
    note: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    clock: Callable[[], datetime] = datetime.now
    _since: float | None = None
    _answered: bool = False

    def update(self, messages: TaskMessages, running: Collection[int]) -> None:
        received = [messages[n] for n in running if n in messages]
        waiting = [message["waiting"] for message in received if message.get("waiting")]
        if running and len(waiting) == len(running):
            self._begin(max(waiting, key=lambda each: float(each["seconds"])))
        elif self._since is not None and len(waiting) < len(received):
            over = (
                "what it waited for has ended"
                if self._answered
                else f"Kafka responds to {self.name} again"
            )
            self.note(f"continuing after {self.now() - self._since:.0f} s: {over}")
            self._since = None

    def _begin(self, longest: Mapping[str, Any]) -> None:
        if self._since is not None:
            return
        waited = float(longest["seconds"])
        self._since = self.now() - waited
        began = self.clock() - timedelta(seconds=waited)
        until = f"{began + timedelta(seconds=self.patience):%H:%M:%S} (--patience)"
        if longest.get("endless"):
            until = "it ends (--patience SECONDS limits it)"
        self._answered = bool(longest.get("answered"))
        cause = str(longest["why"]) if self._answered else self._silence(longest)
        self.note(
            f"waiting: no task of {self.name} could {longest['what']} since {began:%H:%M:%S}; all "
            f"tasks retry until {until}: {cause}"
        )

    def _silence(self, longest: Mapping[str, Any]) -> str:
        who = self.silent() or "brokers accept connections but do not respond"
        return f"{who}; {longest['why']}" if longest["why"] else who


def waiting(messages: TaskMessages) -> list[str]:
    """Return the reasons why tasks wait, each with the number of tasks: no response of Kafka, or
    its response.
    """
    waits = [
        message["waiting"] for message in messages.values() if message.get("waiting") is not None
    ]
    reasons = [str(each["why"]) for each in waits if each.get("answered")]
    silent = len(waits) - len(reasons)
    found = [f"{silent} waiting for Kafka"] if silent else []
    return [*found, f"{len(reasons)} waiting: {reasons[0]}"] if reasons else found

"""Measures the time between two polls of a group member, and the calls in between. The consumer
leaves the group after ``max.poll.interval.ms``.

A static member that has left in this way has no member id. So the broker refuses its commits with
FENCED_INSTANCE_ID, as if another attempt used its ``group.instance.id``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from connectctl.ops.task_runtime.task.transactional_producer import PollIntervalExceeded

PROPERTY = "max.poll.interval.ms"


@dataclass(eq=False)
class PollInterval:
    """The time since the last poll of one member. ``seconds`` is ``max.poll.interval.ms``."""

    seconds: float
    now: Callable[[], float] = time.monotonic
    _since: float | None = None
    """The time at which the last poll returned; None during a poll and before the first one."""
    _calls: Counter[str] = field(default_factory=Counter)
    """The seconds of each call since the last poll."""

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Stop the clock during a poll, which includes rebalances and their callbacks."""
        self._since = None
        try:
            yield
        finally:
            self._since = self.now()
            self._calls.clear()

    def took(self, call: str, seconds: float) -> None:
        """Record that ``call`` of the task took ``seconds``."""
        self._calls[call] += seconds  # type: ignore[assignment]

    @property
    def passed(self) -> float:
        """Seconds since the last poll."""
        return 0.0 if self._since is None else self.now() - self._since

    def check(self) -> None:
        """Raise ``PollIntervalExceeded``, with the slow call, if the group may have revoked the
        partitions.
        """
        if (passed := self.passed) <= self.seconds:
            return
        call, seconds = max(self._calls.items(), key=lambda item: item[1], default=("", 0.0))
        slow = (
            f"{call} took {seconds:.1f} s"
            if seconds > passed / 2
            else f"{passed:.1f} s passed between two polls"
        )
        raise PollIntervalExceeded(
            f"{slow}, more than {PROPERTY} of {self.seconds:g} s: the group takes the partitions "
            "from a member that does not poll, and their records are read again. Increase "
            f"consumer.override.{PROPERTY}, or reduce consumer.override.max.poll.records."
        )

"""The time between two polls of a group member, after which its consumer leaves the group, and what
it was spent on.

A static member that has left this way has no member id, so the broker refuses its commits with
FENCED_INSTANCE_ID, as if another attempt had its ``group.instance.id``.
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
    """``seconds`` is ``max.poll.interval.ms``."""

    seconds: float
    now: Callable[[], float] = time.monotonic
    _since: float | None = None
    """When the last poll returned; None during a poll, and before the first one."""
    _calls: Counter[str] = field(default_factory=Counter)
    """The seconds of each call since then."""

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Within a poll no time counts, rebalances and their callbacks included."""
        self._since = None
        try:
            yield
        finally:
            self._since = self.now()
            self._calls.clear()

    def took(self, call: str, seconds: float) -> None:
        """Note that ``call`` of the task took so long."""
        self._calls[call] += seconds  # type: ignore[assignment]

    @property
    def passed(self) -> float:
        """Seconds since the last poll."""
        return 0.0 if self._since is None else self.now() - self._since

    def check(self) -> None:
        """Raises ``PollIntervalExceeded`` where the group may have taken the partitions, with the
        call that was slow.
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

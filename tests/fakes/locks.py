"""A cluster's lock in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Refused


@dataclass
class FakeLock:
    """Keeps ``ClusterLock``. ``other`` holds it; it is lost at confirmation ``lost_at``; ``seen``
    by this principal. The other leaves it when its holder is asked for the ``free_at``th time.

    ``taken`` are the runs that held it, ``holds`` the one that does now.
    """

    other: LockHolder | None = None
    lost_at: int = 0
    asked: int = 0
    free_at: int = 0
    seen: bool = True
    taken: list[str] = field(default_factory=list)
    holds: str | None = None
    confirmed: int = 0

    def holder(self) -> LockHolder | None:
        if not self.seen:
            raise NotAuthorized("Kafka refuses the group", why="GROUP_AUTHORIZATION_FAILED")
        self.asked += 1
        if self.asked == self.free_at:
            self.other = None
        return self.other

    @contextmanager
    def held(
        self, run: str, ours: Callable[[str], bool] = lambda run: False
    ) -> Iterator[Callable[[], None]]:
        if self.other is not None and not ours(self.other.run):
            raise Refused(
                "Another connectctl is changing it", why=f"held by {self.other}", code="locked"
            )
        assert self.holds is None
        self.taken.append(run)
        self.holds = run
        try:
            yield self._confirm
        finally:
            self.holds = None

    def _confirm(self) -> None:
        self.confirmed += 1
        if self.confirmed == self.lost_at:
            raise ConnectctlError(
                "The cluster's lock was lost, so nothing more is changed", code="lock-lost"
            )

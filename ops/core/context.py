"""The context that the executor passes to the steps of a run; each operation adds its clients and
state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Self, TypeVar

from connectctl.ops.core.wait import wait_until

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Run
    from connectctl.ops.kafka.acls import Right

T = TypeVar("T")


@dataclass(kw_only=True)
class RunContext:
    """The base of the contexts of steps. ``run`` is the run in execution, ``step`` the number of
    its step, from 0.

    ``resumed``: an earlier attempt began the run, and other clients may have changed the cluster
    since. ``continues``: a run that failed is resumed at the step that failed; otherwise its error
    is reported unchanged. ``lost``: others have taken over what the run changed, and it ends
    nothing of that. ``lock_patience`` are the seconds for which a step that ends something waits
    for the lock. ``now`` and ``sleep`` are the clock of its waits.
    """

    run: Run | None = field(default=None)
    step: int = 0
    resumed: bool = False
    continues: bool = True
    lost: bool = False
    lock_patience: float = 60.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def opened(self) -> AbstractContextManager[None]:
        """Open what the steps use, during their execution."""
        return nullcontext()

    def until(self, probe: Callable[[], T | None], seconds: float, poll: float) -> T | None:
        """Return the first result of ``probe`` that is not None; None after ``seconds``."""
        return wait_until(probe, seconds, poll, now=self.now, sleep=self.sleep)

    def denied(self, rights: Iterable[Right]) -> Right | None:
        """Return the first of ``rights`` that brokers report as missing; None if brokers are not
        asked.
        """
        return None

    def within(self, other: RunContext) -> Self:
        """Set the run, step and clock of ``other``, for a step within one of its steps; returns
        this context.
        """
        vars(self).update({each.name: getattr(other, each.name) for each in fields(RunContext)})
        return self

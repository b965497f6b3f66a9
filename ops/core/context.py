"""What the executor tells the steps of a run; each operation adds what its steps work with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Self, TypeVar

from connectctl.ops.core.wait import wait_until

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Run

T = TypeVar("T")


@dataclass(kw_only=True)
class RunContext:
    """The base of what steps work with. ``run`` is carried out, ``step`` is the number of its step, from 0.

    ``resumed``: an earlier attempt began the run, and the cluster may have been changed by others since. ``now`` and
    ``sleep`` are the clock of its waits.
    """

    run: Run | None = field(default=None)
    step: int = 0
    resumed: bool = False
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def until(self, probe: Callable[[], T | None], seconds: float, poll: float) -> T | None:
        """The first answer of ``probe`` that is not None; None where there is none after ``seconds``."""
        return wait_until(probe, seconds, poll, now=self.now, sleep=self.sleep)

    def within(self, other: RunContext) -> Self:
        """This context for a step that is a part of what ``other`` is at: with its run, its step and its clock."""
        vars(self).update({each.name: getattr(other, each.name) for each in fields(RunContext)})
        return self

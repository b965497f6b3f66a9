"""What the executor tells the steps of a run; each operation adds what its steps work with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Run


@dataclass(kw_only=True)
class RunContext:
    """The base of what steps work with. ``run`` is carried out, ``step`` is the number of its step, from 0.

    ``resumed``: an earlier attempt began the run, and the cluster may have been changed by others since.
    """

    run: Run | None = field(default=None)
    step: int = 0
    resumed: bool = False

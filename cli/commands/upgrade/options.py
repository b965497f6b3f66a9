"""Options shared by the commands of a roll."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli.options import ApplyOptions

if TYPE_CHECKING:
    from connectctl.migrations.operation import Upgrade

PauseOption = Annotated[
    int | None, typer.Option(help="Stop cleanly after this step of the plan.", metavar="STEP")
]
FailuresOption = Annotated[
    int | None,
    typer.Option(
        help="Tasks and connectors that may fail in the upgrade.  [default: 0]", min=0, metavar="N"
    ),
]
LooksOption = Annotated[
    int | None,
    typer.Option(
        "--gate-checks",
        help="Consecutive healthy observations that open a gate.  [default: 3]",
        min=1,
        metavar="N",
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--gate-timeout",
        help="Time limit of a gate, in addition to a pending rebalance delay.  [default: 300]",
        min=1,
        metavar="SECONDS",
    ),
]
ByHandOption = Annotated[
    float | None,
    typer.Option(
        "--by-hand-timeout",
        help="Time limit to restart a worker by hand; required without a terminal.  [default: "
        "3600]",
        min=1,
        metavar="SECONDS",
    ),
]


@dataclass(frozen=True)
class GateOptions(ApplyOptions):
    """The options of ``upgrade abort``. Gate settings are None if not given."""

    max_failures: FailuresOption = None
    looks: LooksOption = None
    timeout: TimeoutOption = None
    by_hand: ByHandOption = None
    pause_after: int | None = None

    def operation(self) -> Upgrade:
        """Return the operation with the gate settings from the command line."""
        from connectctl.migrations.operation import Upgrade

        given = {
            name: getattr(self, name) for name in ("looks", "timeout", "max_failures", "by_hand")
        }
        return Upgrade(
            {name: value for name, value in given.items() if value is not None}, self.pause_after
        )


@dataclass(frozen=True)
class RollOptions(GateOptions):
    """The options of ``upgrade apply`` and ``upgrade resume``."""

    pause_after: PauseOption = None

"""Options that commands for connectors share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from connectctl.cli.options import WaitOptions

AllOption = Annotated[bool, typer.Option("--all", help="Every connector of the cluster.")]
CarryOption = Annotated[
    bool,
    typer.Option(
        "--carry-offsets",
        help="Carry source offsets over to the new source partitions, or from a former connector "
        "name (KIP-875).",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also with what validate calls an error, and offsets that the connector would refuse.",
    ),
]


@dataclass(frozen=True)
class StateOptions(WaitOptions):
    """Options of commands that stop, pause, resume or restart."""

    every: AllOption = False


@dataclass(frozen=True)
class ConfigOptions(WaitOptions):
    """Options of commands that change configurations. ``carry``: source offsets are carried over;
    ``force``: errors that workers accept do not refuse the change.
    """

    carry: CarryOption = False
    force: ForceOption = False

    @property
    def of_request(self) -> dict[str, bool]:
        """Return the options as members of a request."""
        return {"wait": self.wait, "carry": self.carry, "force": self.force}

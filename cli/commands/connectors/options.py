"""The options that commands on connectors share."""

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
        help="Carry source offsets over to the new source partitions, or from a former connector name (KIP-875).",
    ),
]


@dataclass(frozen=True)
class StateOptions(WaitOptions):
    """What commands take that stop, pause, resume or restart."""

    every: AllOption = False


@dataclass(frozen=True)
class ConfigOptions(WaitOptions):
    """What commands take that change configurations. ``carry``: source offsets go with the change."""

    carry: CarryOption = False

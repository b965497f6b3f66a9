"""The options of ``connectctl runs undo``."""

from __future__ import annotations

from dataclasses import dataclass

from connectctl.cli.options import StopOption, WaitOptions


@dataclass(frozen=True)
class UndoOptions(WaitOptions):
    """``stop`` is for changes of offsets."""

    stop: StopOption = False

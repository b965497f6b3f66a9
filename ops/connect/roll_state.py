"""How far a rolling change of the workers is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RollState:
    """The run of a rolling change that has not ended, if any, and the modes of the workers that are known, by address."""

    unfinished: str | None = None
    purpose: str = ""
    modes: Mapping[str, str] = field(default_factory=dict)

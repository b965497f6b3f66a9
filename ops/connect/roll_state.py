"""The progress of a rolling change of the workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RollState:
    """The unfinished run of a rolling change, if any, and the known modes of the workers, by
    address.
    """

    unfinished: str | None = None
    purpose: str = ""
    modes: Mapping[str, str] = field(default_factory=dict)

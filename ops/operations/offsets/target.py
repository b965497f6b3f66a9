"""The target of a change of source offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.changes import OffsetRequest
    from connectctl.ops.operations.offsets.engine import Purpose
    from connectctl.ops.operations.offsets.planning import ConnectorState


@dataclass(frozen=True)
class OffsetTarget:
    """A connector, the requested change, and its new dedicated topic.

    ``new``: the connector need not exist. ``via`` is the interface: ``kafka`` or ``rest``.
    ``purpose`` determines the keys that an engine reads, all of them for None.
    """

    name: str
    request: Callable[[ConnectorState], OffsetRequest] | None
    topic: str | None = None
    new: bool = False
    via: str = "kafka"
    purpose: Purpose | None = None

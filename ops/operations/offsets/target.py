"""A connector whose offsets are to be changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.changes import OffsetRequest
    from connectctl.ops.operations.offsets.planning import ConnectorState
    from connectctl.ops.operations.offsets.purpose import Purpose


@dataclass(frozen=True)
class OffsetTarget:
    """A connector, the change requested for it, and the dedicated topic that it is to get.

    ``new``: it may not exist yet. ``via`` is how to write: ``kafka`` or ``rest``. ``purpose`` tells an engine what it may
    leave out; everything is looked at for none.
    """

    name: str
    request: Callable[[ConnectorState], OffsetRequest] | None
    topic: str | None = None
    new: bool = False
    via: str = "kafka"
    purpose: Purpose | None = None

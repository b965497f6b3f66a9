"""The presentation of each operation."""

from __future__ import annotations

from connectctl.cli.views.view import View


def view_of(operation: str) -> View:
    """Return the presentation of an operation."""
    if operation == "fence":
        from connectctl.cli.views.fence import FenceView

        return FenceView()
    if operation == "run sweep":
        from connectctl.cli.views.sweep import SweepView

        return SweepView()
    if operation.startswith("offsets "):
        from connectctl.cli.views.offset_changes import OffsetsView

        return OffsetsView()
    return View()

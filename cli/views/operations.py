"""The presentation of each operation that is shown otherwise than as a list of steps."""

from __future__ import annotations

from importlib import import_module

from connectctl.cli.views.view import View

VIEWS = {
    "fence": "fence.FenceView",
    "offsets": "offset_changes.OffsetsView",
    "run sweep": "sweep.SweepView",
    "upgrade": "upgrade.UpgradeView",
}
"""Views by operation, or by the first word of operations."""


def view_of(operation: str) -> View:
    """Return the presentation of an operation."""
    name = VIEWS.get(operation) or VIEWS.get(operation.partition(" ")[0])
    if name is None:
        return View()
    module, _, kind = name.partition(".")
    view: View = getattr(import_module(f"connectctl.cli.views.{module}"), kind)()
    return view

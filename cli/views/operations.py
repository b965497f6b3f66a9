"""The presentation of each operation."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from connectctl.cli.views.view import View
from connectctl.ops.operations.operation import Operation


def view_of(operation: Operation[Any, Any]) -> View:
    """Return the presentation of an operation: its own, or a list of steps."""
    if operation.view is None:
        return View()
    module, _, kind = operation.view.partition(".")
    view: View = getattr(import_module(f"connectctl.cli.views.{module}"), kind)()
    return view

"""What a wish means for a check: whether it leads to exactly-once, and how bad it is if that is only the step after."""

from __future__ import annotations

from connectctl.ops.checks.types import Wish
from connectctl.ops.core.finding import Severity


def leads_to_enabled(enabled: bool | None, wish: Wish) -> bool:
    """Whether tasks have transactions when the wish has come true; not where it is today's state and nobody tells that.

    ``preparing`` is the way to ``enabled`` for workers that are not there yet, and the way back for those that are.
    """
    if wish is Wish.NOW:
        return bool(enabled)
    return wish is Wish.ENABLED or (wish is Wish.PREPARING and not enabled)


def softened(severity: Severity, wish: Wish) -> Severity:
    """The severity of what ``preparing`` does not bring about yet, and the step after it does."""
    return Severity.WARNING if wish is Wish.PREPARING and severity is Severity.ERROR else severity

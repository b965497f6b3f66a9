"""What could not be looked at, as a finding of its own: a check that did not happen must not look like one that passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

if TYPE_CHECKING:
    from connectctl.ops.checks.types import Unseen
    from connectctl.ops.core.finding import Finding

NOT_SEEN = Rule(
    "UNSEEN001",
    Severity.WARNING,
    "Something could not be looked at, so that its checks did not happen",
    "Unknown whether it is correct",
    "connectctl",
    """
    A check needs something to look at: an answer of a worker, a permission on a broker, a topic that can be read. Where
    that was not to be had, all other checks are made, and this finding says which one is missing and why.

    It is a warning, so that --fail-on warning makes a pipeline stop for what nobody has checked. Give the principal the
    permission, bring the worker back, or leave the finding out with --ignore UNSEEN001 where that is how it has to be.
    """,
)
RULES: tuple[Rule, ...] = (NOT_SEEN,)


def finding_of(unseen: Unseen) -> Finding:
    """The finding that says what was not seen."""
    return NOT_SEEN.found(unseen.what, f"It could not be looked at: {unseen.why}.", unseen.next_step)

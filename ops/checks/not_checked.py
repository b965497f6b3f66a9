"""What could not be looked at, as a finding of its own: a check that did not happen must not look like one that passed."""

from __future__ import annotations

from connectctl.ops.checks.types import Unseen
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule

NOT_SEEN = Rule("UNSEEN001", Severity.WARNING)


def finding_of(unseen: Unseen) -> Finding:
    """The finding that says what was not seen."""
    return NOT_SEEN.found(unseen.what, f"Could not be read: {unseen.why}.", unseen.next_step)

"""What can be found, apart from where it was found: a stable id, how bad it is, where it is written, and the long story."""

from __future__ import annotations

from dataclasses import dataclass

from connectctl.ops.core.finding import Finding, Severity


@dataclass(frozen=True)
class Rule:
    """One thing that preflight looks for. Rules are constants beside the function that checks them.

    ``title`` is the rule in one line, ``why`` what happens if nothing is done, ``source`` the section of the proposal or
    the class of Kafka that says so (``KIP-618, Configuration``). ``story`` is what ``preflight --explain ID`` prints:
    paragraphs apart by an empty line, what it is, how it comes about, what to do, and what happens then.
    """

    id: str
    severity: Severity
    title: str
    why: str
    source: str
    story: str

    def found(
        self, subject: str, message: str, next_step: str | None = None, *, severity: Severity | None = None
    ) -> Finding:
        """This rule, met by ``subject``. ``message`` is what was seen; ``severity`` where it differs from the rule's."""
        return Finding(self.id, severity or self.severity, subject, message, next_step, f"{self.why} ({self.source})")

"""The definition of a finding: a stable id and a severity; ``docs/findings`` has the rest."""

from __future__ import annotations

from dataclasses import dataclass

from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule_docs import rule_doc


@dataclass(frozen=True)
class Rule:
    """One condition that a check tests. Rules are constants next to the function that checks them.

    Title, consequence, source and explanation are the section of ``id`` in ``docs/findings``.
    """

    id: str
    severity: Severity

    def found(
        self, subject: str, message: str, next_step: str | None = None, *, severity: Severity | None = None
    ) -> Finding:
        """Return a finding about ``subject``. ``message`` is what was observed; ``severity`` if it differs from the rule's.

        ``why`` is set if the section has a specification as its source.
        """
        doc = rule_doc(self.id)
        why = doc.cause if doc.source else None
        return Finding(self.id, severity or self.severity, subject, message, next_step, why)

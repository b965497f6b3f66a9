"""The rule by which a cluster is healthy, for the exit codes of probes and cron jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connectctl.ops.connect.health import is_healthy
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.operations.connectors.observe import ConnectorHealth

UNSEEN = ("SIGHT001", "SIGHT002", "SIGHT004")
"""Findings of incomplete observations, which do not prove health."""


def health_problems(
    connectors: Sequence[ConnectorHealth], findings: Sequence[Finding]
) -> Iterator[str]:
    """Yield the reasons why a cluster is not healthy, as short texts."""
    for connector in connectors:
        if not is_healthy(connector.verdict.state):
            yield f"{connector.name} is {connector.verdict.state}"
    for finding in findings:
        if finding.severity is Severity.ERROR or finding.id in UNSEEN:
            yield f"{finding.id} {finding.subject}"

"""How findings of ``doctor`` are shown: by patient, with since when, evidence and next command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import findings as output_findings
from connectctl.cli.output import terminal
from connectctl.cli.output.printed_commands import with_cluster
from connectctl.ops.checks.patients import Patient, patients
from connectctl.ops.core.finding import counted

if TYPE_CHECKING:
    from connectctl.ops.checks.runner import CheckRun
    from connectctl.ops.core.finding import Finding


def data(run: CheckRun, found: Sequence[Finding]) -> dict[str, Any]:
    """Return the JSON of a run without its findings."""
    return {
        "clusterId": run.context.view.cluster_id,
        "groupId": run.context.group.id,
        "connectors": list(run.context.names),
        "patients": [
            {
                "kind": patient.kind.value,
                "name": patient.name,
                "severity": patient.severity.value,
                "findings": list(dict.fromkeys(finding.id for finding in patient.findings)),
            }
            for patient in _patients(run, found)
        ],
    }


def show(run: CheckRun, found: Sequence[Finding], wide: bool) -> None:
    """Print the findings, and what was checked."""
    every = _patients(run, found)
    if not found:
        terminal.note("Nothing found.", style="green")
    elif sys.stdout.isatty():
        for patient in every:
            terminal.styled(f"{patient.kind} {patient.name}", "bold")
            for finding in patient.findings:
                _tell(finding, patient, run.now, wide=wide)
    else:
        _table(run, every, wide)
    if found:
        terminal.note(output_findings.counted(found, "doctor"))
    context = run.context
    what = (
        f"{counted(len(context.view.workers), 'worker')}, "
        f"{counted(len(context.names), 'connector')} with "
        f"{counted(sum(len(c.tasks) for c in context.checked), 'task')}"
    )
    terminal.note(f"Checked: {what}, their topics and transactions.", style="dim")


def _tell(finding: Finding, patient: Patient, now: float, *, wide: bool) -> None:
    """Print a finding in one line, then its evidence and the next command."""
    subject = "" if finding.subject == patient.name else f"{finding.subject}: "
    began = "" if finding.since is None else f"for {since(finding, now)}: "
    head = f"{finding.severity.value:<8}{finding.id}  {began}{subject}{finding.message}"
    terminal.styled(head, terminal.COLOURS[finding.severity.value], 2)
    terminal.styled("\n".join(finding.evidence), "dim", 10)
    terminal.styled((finding.why or "") if wide else "", "dim", 10)
    terminal.styled(with_cluster(finding.next_step or ""), "cyan", 10)


def _table(run: CheckRun, every: Sequence[Patient], wide: bool) -> None:
    columns = ["PATIENT", "SEVERITY", "ID", "SINCE", "SUBJECT", "SEEN", "DO"]
    columns += ["EVIDENCE", "WHY"] if wide else []
    rows = [
        [
            f"{patient.kind} {patient.name}",
            finding.severity.value,
            finding.id,
            since(finding, run.now),
            finding.subject,
            with_cluster(finding.message),
            with_cluster(finding.next_step or "-"),
            "; ".join(finding.evidence) or "-",
            finding.why or "-",
        ]
        for patient in every
        for finding in patient.findings
    ]
    terminal.table(columns, [row[: len(columns)] for row in rows])


def since(finding: Finding, now: float) -> str:
    """Return for how long the condition has lasted, a dash if that is unknown."""
    return terminal.duration(None if finding.since is None else max(0.0, now - finding.since))


def _patients(run: CheckRun, found: Sequence[Finding]) -> tuple[Patient, ...]:
    context = run.context
    return patients(
        found,
        context.group.id,
        (worker.address for worker in context.view.workers),
        (connector.name for connector in context.all_connectors),
    )

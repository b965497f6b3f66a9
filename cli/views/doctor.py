"""How findings of ``doctor`` are shown: by patient, with since when, evidence and next command."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import findings as output_findings
from connectctl.cli.output import terminal
from connectctl.cli.output.printed_commands import with_cluster
from connectctl.cli.output.prometheus import labels_of
from connectctl.ops.checks.history import timeline
from connectctl.ops.checks.patients import Patient, patients
from connectctl.ops.core.finding import Severity, counted
from connectctl.ops.core.times import utc

if TYPE_CHECKING:
    from connectctl.ops.checks.runner import CheckRun
    from connectctl.ops.core.finding import Finding

MOST_CHANGES = 6
"""The number of changes that are printed of a connector; the JSON has more."""
MOST_IN_JSON = 10_000


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
        "timeline": [change.as_json() for change in _timeline(run)[-MOST_IN_JSON:]],
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
            _changes(run, patient.connector)
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


def _changes(run: CheckRun, connector: str) -> None:
    """Print what has changed lately about the connector of a patient."""
    changes = timeline.of_connector(_timeline(run), connector, MOST_CHANGES)
    lines = [
        f"{utc(each.at * 1000)}  " + ("" if each.task is None else f"task {each.task} ") + each.text
        for each in changes
    ]
    terminal.styled("\n".join(["Changed lately (UTC):", *lines]) if lines else "", "dim", 10)


def _timeline(run: CheckRun) -> tuple[timeline.Change, ...]:
    return timeline.timeline(run.context.history, run.context.names)


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


def metrics(run: CheckRun, found: Sequence[Finding]) -> Iterator[str]:
    """Yield the lines of the exposition format: the findings, and when they were looked for."""
    group = {"group_id": run.context.group.id}
    yield "# HELP connectctl_doctor_finding A finding of connectctl doctor, 1 while it is there.\n"
    yield "# TYPE connectctl_doctor_finding gauge\n"
    began = []
    for patient in _patients(run, found):
        for finding in patient.findings:
            labels = labels_of(
                {
                    **group,
                    "id": finding.id,
                    "severity": finding.severity.value,
                    "kind": patient.kind.value,
                    "name": patient.name,
                    "connector": patient.connector,
                    "subject": finding.subject,
                }
            )
            yield f"connectctl_doctor_finding{{{labels}}} 1\n"
            if finding.since is not None:
                began.append(
                    f"connectctl_doctor_finding_since_seconds{{{labels}}} {finding.since}\n"
                )
    if began:
        yield "# TYPE connectctl_doctor_finding_since_seconds gauge\n"
        yield from began
    yield "# TYPE connectctl_doctor_findings gauge\n"
    for severity in Severity:
        labels = labels_of({**group, "severity": severity.value})
        count = sum(finding.severity is severity for finding in found)
        yield f"connectctl_doctor_findings{{{labels}}} {count}\n"
    yield "# TYPE connectctl_doctor_timestamp_seconds gauge\n"
    yield f"connectctl_doctor_timestamp_seconds{{{labels_of(group)}}} {run.now:.3f}\n"

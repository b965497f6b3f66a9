"""How findings of ``doctor`` are shown: by patient, with since when, evidence and next command."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import findings as output_findings
from connectctl.cli.output import terminal
from connectctl.cli.output.printed_commands import with_cluster
from connectctl.cli.output.prometheus import labels_of
from connectctl.ops.checks.history import timeline
from connectctl.ops.checks.patients import Patient, patients
from connectctl.ops.core.finding import Finding, Severity, counted
from connectctl.ops.core.times import utc

if TYPE_CHECKING:
    from connectctl.ops.checks.runner import CheckRun

MOST_CHANGES = 6
"""The number of changes that are printed of a connector; the JSON has more."""
MOST_IN_JSON = 10_000


def data(run: CheckRun, found: Sequence[Finding]) -> dict[str, Any]:
    """Return the JSON of a run without its findings."""
    changes = _timeline(run, run.context.names)
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
        "timeline": [change.as_json() for change in changes[-MOST_IN_JSON:]],
    }


def show(run: CheckRun, found: Sequence[Finding], wide: bool) -> None:
    """Print the findings, and what was checked."""
    every = _patients(run, found)
    if not found:
        terminal.note("Nothing found.", style="green")
    elif sys.stdout.isatty():
        _tell_all(run, every, wide=wide)
    else:
        _table(run, every, wide)
        _table_of_changes(_changes(run, every))
    if found:
        terminal.note(output_findings.counted(found, "doctor"))
    context = run.context
    what = (
        f"{counted(len(context.view.workers), 'worker')}, "
        f"{counted(len(context.names), 'connector')} with "
        f"{counted(sum(len(c.tasks) for c in context.checked), 'task')}"
    )
    terminal.note(f"Checked: {what}, their topics and transactions.", style="dim")


def _tell_all(run: CheckRun, every: Sequence[Patient], *, wide: bool) -> None:
    """Print each patient with its findings; the changes of a connector after its last patient."""
    changes = _changes(run, every)
    last = {patient.connector: patient for patient in every}
    for patient in every:
        terminal.styled(f"{patient.kind} {patient.name}", "bold")
        for finding in patient.findings:
            _print_finding(finding, patient, run.now, wide=wide)
        of_it = timeline.of_connector(changes, patient.connector, MOST_CHANGES)
        if of_it and last[patient.connector] is patient:
            lines = [
                f"{utc(each.at * 1000)}  {f'{each.worker} ' if each.worker else ''}{_change(each)}"
                for each in of_it
            ]
            terminal.styled("\n".join(["Changed lately (UTC):", *lines]), "dim", 10)


def _print_finding(finding: Finding, patient: Patient, now: float, *, wide: bool) -> None:
    """Print a finding in one line, then its evidence and the next command."""
    subject = "" if finding.subject == patient.name else f"{finding.subject}: "
    began = "" if finding.since is None else f"for {since(finding, now)}: "
    head = f"{finding.severity.value:<8}{finding.id}  {began}{subject}{finding.message}"
    terminal.styled(head, terminal.COLOURS[finding.severity.value], 2)
    terminal.styled("\n".join(finding.evidence), "dim", 10)
    terminal.styled((finding.why or "") if wide else "", "dim", 10)
    terminal.styled(with_cluster(finding.next_step or ""), "cyan", 10)


def _changes(run: CheckRun, every: Sequence[Patient]) -> tuple[timeline.Change, ...]:
    """Return the changes of workers and of the connectors of patients, oldest first."""
    return _timeline(run, dict.fromkeys(patient.connector for patient in every))


def _timeline(run: CheckRun, names: Collection[str]) -> tuple[timeline.Change, ...]:
    versions = {each.address: each.version for each in run.context.view.workers if each.version}
    return timeline.timeline(run.context.history, names, versions)


def _change(change: timeline.Change) -> str:
    return ("" if change.task is None else f"task {change.task} ") + change.text


def _subject(change: timeline.Change) -> str:
    return change.connector or change.worker


def _table_of_changes(changes: Sequence[timeline.Change]) -> None:
    names = dict.fromkeys(change.connector for change in changes)
    rows = [
        [_subject(change), utc(change.at * 1000), _change(change)]
        for name in names
        for change in timeline.of_connector(changes, name, MOST_CHANGES)
    ]
    if rows:
        terminal.print_line("")
        terminal.table(["SUBJECT", "AT", "CHANGED"], rows)


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
    began: dict[str, float] = {}
    seen: dict[str, None] = {}
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
            seen[labels] = None
            if finding.since is not None:
                began[labels] = min(finding.since, began.get(labels, finding.since))
    yield from (f"connectctl_doctor_finding{{{labels}}} 1\n" for labels in seen)
    if began:
        yield "# TYPE connectctl_doctor_finding_since_seconds gauge\n"
    for labels, at in began.items():
        yield f"connectctl_doctor_finding_since_seconds{{{labels}}} {at:.3f}\n"
    yield "# TYPE connectctl_doctor_findings gauge\n"
    for severity in Severity:
        labels = labels_of({**group, "severity": severity.value})
        count = sum(finding.severity is severity for finding in found)
        yield f"connectctl_doctor_findings{{{labels}}} {count}\n"
    yield "# TYPE connectctl_doctor_timestamp_seconds gauge\n"
    yield f"connectctl_doctor_timestamp_seconds{{{labels_of(group)}}} {run.now:.3f}\n"

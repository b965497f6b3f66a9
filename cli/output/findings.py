"""Prints findings as a table, as data, and in three forms that CI systems read.

SARIF 2.1.0 (OASIS) is for code scanning, JUnit's XML is shown as tests by nearly every CI server,
and ``github`` are the workflow commands that a job prints to annotate a change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.cli.options import FailOn, ReportOptions, ReportOutput
from connectctl.cli.output import terminal
from connectctl.cli.output.json_lines import json_text
from connectctl.cli.output.printed_commands import with_cluster
from connectctl.cli.output.sanitize import in_xml
from connectctl.ops.core.finding import RANK, Finding, Severity
from connectctl.ops.core.finding import counted as number_of

if TYPE_CHECKING:
    from connectctl.ops.operations.tasks_max.observe import Release

_SARIF_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_GITHUB_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def release(text: str | None) -> Release | None:
    """Parse ``--for-version``, None if not given. Raises ``BadInput`` if it is not a release."""
    from connectctl.ops.operations.tasks_max.observe import Release

    return None if text is None else Release.parse(text)


def kept(findings: Sequence[Finding], ignored: Sequence[str] | None) -> tuple[Finding, ...]:
    """Return the findings without the ignored ids, the worst first. Raises ``BadInput`` for an id
    that no rule has.
    """
    from connectctl.ops.core.rule_docs import rule_doc

    unwanted = {rule_doc(id_).id for id_ in ignored or ()}
    left = [each for each in findings if each.id not in unwanted]
    if len(left) < len(findings):
        gone = sorted({each.id for each in findings} & unwanted)
        count = number_of(len(findings) - len(left), "finding")
        terminal.note(f"Left out by --ignore: {count} ({', '.join(gone)}).", style="dim")
    return tuple(sorted(left, key=lambda f: (RANK[f.severity], f.id, f.subject)))


def exit_code(findings: Sequence[Finding], fail_on: FailOn) -> int:
    """Return 1 if a finding has the severity ``fail_on`` or a worse one, else 0."""
    return int(any(fails(finding, fail_on) for finding in findings))


def fails(finding: Finding, fail_on: FailOn) -> bool:
    """Whether the finding has the severity ``fail_on`` or a worse one."""
    return RANK[finding.severity] <= RANK[Severity(fail_on)]


def emit_report(
    kind: str,
    data: Mapping[str, Any],
    findings: Sequence[Finding],
    options: ReportOptions,
    table: Callable[[bool], None],
    where: Callable[[Finding], str | None] = lambda finding: None,
) -> None:
    """Print the report. ``data`` is the envelope without the findings; ``where`` returns the file
    of a finding.
    """
    output = options.output
    if output is ReportOutput.SARIF:
        terminal.standard_output().write(json_text(sarif(findings, where), indent=2) + "\n")
    elif output is ReportOutput.JUNIT:
        terminal.standard_output().write(in_xml(junit(kind, findings, options.fail_on)))
    elif output is ReportOutput.GITHUB:
        for finding in findings:
            terminal.print_line(github(finding, where(finding)))
    else:
        whole = {**data, "findings": [finding.as_json() for finding in findings]}
        terminal.emit(kind, whole, terminal.Output(output.value), table)


def table_of(findings: Sequence[Finding], *, wide: bool) -> None:
    """Print the findings with their next steps; ``wide`` adds why they matter."""
    if not findings:
        terminal.note("Nothing found.", style="green")
        return
    if not sys.stdout.isatty():
        columns = ["SEVERITY", "ID", "SUBJECT", "SEEN", "DO", *(["WHY"] if wide else [])]
        rows = [
            [
                f.severity,
                f.id,
                f.subject,
                with_cluster(f.message),
                with_cluster(f.next_step or "-"),
                f.why or "-",
            ]
            for f in findings
        ]
        terminal.table(columns, [row[: len(columns)] for row in rows])
    else:
        terminal.print_findings(findings, wide=wide)
    terminal.note(counted(findings))


def counted(findings: Sequence[Finding], command: str = "preflight") -> str:
    """Return ``2 errors, 1 warning``, and the command for details."""
    counts = [
        (severity.value, sum(f.severity is severity for f in findings)) for severity in Severity
    ]
    totals = ", ".join(
        f"{n} {word}{'s' if n > 1 and word != 'info' else ''}" for word, n in counts if n
    )
    return f"{totals}. Details: connectctl {command} --explain {findings[0].id}"


# ------------------------------------------------------------------------------------------- for CI


def sarif(findings: Sequence[Finding], where: Callable[[Finding], str | None]) -> dict[str, Any]:
    """Return the findings as one SARIF run, with their rules."""
    from importlib.metadata import version

    rules = {finding.id: _sarif_rule(finding) for finding in findings}
    driver = {"name": "connectctl", "version": version("connectctl"), "rules": list(rules.values())}
    return {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [
            {"tool": {"driver": driver}, "results": [_sarif_result(f, where(f)) for f in findings]}
        ],
    }


def _sarif_rule(finding: Finding) -> dict[str, Any]:
    from connectctl.ops.core.rule_docs import rule_doc

    doc = rule_doc(finding.id)
    return {
        "id": doc.id,
        "shortDescription": {"text": doc.title},
        "fullDescription": {"text": doc.text},
    }


def _sarif_result(finding: Finding, file: str | None) -> dict[str, Any]:
    text = with_cluster(" ".join(filter(None, [finding.message, finding.next_step])))
    location: dict[str, Any] = {"logicalLocations": [{"name": finding.subject}]}
    if file is not None:
        location["physicalLocation"] = {"artifactLocation": {"uri": file}}
    level = _SARIF_LEVEL[finding.severity]
    return {
        "ruleId": finding.id,
        "level": level,
        "message": {"text": text},
        "locations": [location],
    }


def junit(kind: str, findings: Sequence[Finding], fail_on: FailOn = "error") -> str:
    """Return a test case for each finding; those from ``fail_on`` on fail. Without findings, one
    test case passes.
    """
    from xml.etree import ElementTree as Xml

    failures = sum(fails(f, fail_on) for f in findings)
    suite = Xml.Element(
        "testsuite",
        name=f"connectctl {kind}",
        tests=str(len(findings) or 1),
        failures=str(failures),
    )
    for finding in findings:
        case = Xml.SubElement(suite, "testcase", classname=finding.id, name=_legal(finding.subject))
        text = _legal(
            with_cluster("\n".join(filter(None, [finding.message, finding.why, finding.next_step])))
        )
        if fails(finding, fail_on):
            Xml.SubElement(
                case, "failure", type=finding.id, message=_legal(finding.message)
            ).text = text
        else:
            Xml.SubElement(case, "system-out").text = f"{finding.severity.value}: {text}"
    if not findings:
        Xml.SubElement(suite, "testcase", classname=kind, name="nothing found")
    Xml.indent(suite)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suite, encoding="unicode") + "\n"
    )


def _legal(text: str) -> str:
    """Replace characters that XML 1.0 cannot contain, not even escaped."""
    return "".join(c if c in "\t\n" or ord(c) >= 32 else "\N{REPLACEMENT CHARACTER}" for c in text)


def github(finding: Finding, file: str | None) -> str:
    """Return one workflow command, escaped for GitHub's runner."""
    text = " ".join(filter(None, [finding.message, finding.next_step]))
    message = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    annotation = {"file": file, "title": f"{finding.id} {finding.subject}"}
    properties = ",".join(
        f"{name}={_property(value)}" for name, value in annotation.items() if value
    )
    return f"::{_GITHUB_LEVEL[finding.severity]} {properties}::{message}"


def _property(value: str) -> str:
    escapes = {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"}
    return "".join(escapes.get(c, c) for c in value)

"""Findings in the forms that CI systems read."""

from __future__ import annotations

import json
from xml.etree import ElementTree as Xml

import pytest
from connectctl.cli.options import FailOn, ReportOptions, ReportOutput
from connectctl.cli.output.findings import emit_report, exit_code, github, junit, kept, sarif
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import Finding, Severity

BAD = Finding(
    "EOS001",
    Severity.ERROR,
    "orders",
    "It is required, and\nnot there: 50%.",
    "Do it.",
    "It fails (KIP-618)",
)
ODD = Finding("TASK007", Severity.INFO, "a,b:c", "Fewer tasks \x00.")
WARN = Finding("TOPIC005", Severity.WARNING, "t", "Behind.")


def test_github_reads_back_what_was_said_and_where() -> None:
    assert github(BAD, "conf/orders.json") == (
        "::error file=conf/orders.json,title=EOS001 orders::It is required, and%0Anot there: "
        "50%25. Do it."
    )
    assert github(ODD, None).startswith("::notice title=TASK007 a%2Cb%3Ac::")


def test_junit_fails_for_errors_only_and_is_xml_whatever_the_text() -> None:
    suite = Xml.fromstring(junit("Preflight", [BAD, ODD, WARN]))
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [case.get("classname") for case in suite if case.find("failure") is not None] == [
        "EOS001"
    ]
    assert "KIP-618" in str(suite[0].findtext("failure"))


def test_junit_fails_for_what_the_exit_code_fails_for() -> None:
    each: tuple[tuple[FailOn, list[str]], ...] = (
        ("error", ["EOS001"]),
        ("warning", ["EOS001", "TOPIC005"]),
    )
    for fail_on, failing in each:
        suite = Xml.fromstring(junit("Preflight", [BAD, WARN, ODD], fail_on))
        assert [
            case.get("classname") for case in suite if case.find("failure") is not None
        ] == failing
        assert suite.get("failures") == str(len(failing))


def test_junit_of_nothing_is_one_test_that_passes() -> None:
    suite = Xml.fromstring(junit("Preflight", []))
    assert (suite.get("tests"), suite.get("failures"), len(suite)) == ("1", "0", 1)


def test_sarif_has_each_rule_once_with_its_story_and_each_result_with_its_level() -> None:
    run = sarif([BAD, BAD, WARN], lambda finding: "a.json" if finding is BAD else None)["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["EOS001", "TOPIC005"]
    assert all(rule["fullDescription"]["text"] for rule in run["tool"]["driver"]["rules"])
    assert [result["level"] for result in run["results"]] == ["error", "error", "warning"]
    places = [result["locations"][0] for result in run["results"]]
    assert places[0]["physicalLocation"]["artifactLocation"]["uri"] == "a.json"
    assert places[2] == {"logicalLocations": [{"name": "t"}]}


def test_the_worst_comes_first_and_what_is_ignored_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [f.id for f in kept([ODD, WARN, BAD], ["topic005"])] == ["EOS001", "TASK007"]
    assert "Left out by --ignore: 1 finding (TOPIC005)." in capsys.readouterr().err
    with pytest.raises(BadInput, match="Unknown finding: EOS999"):
        kept([], ["EOS999"])


@pytest.mark.parametrize(
    ("findings", "fail_on", "code"),
    [
        ([], "warning", 0),
        ([ODD], "warning", 0),
        ([WARN], "error", 0),
        ([WARN], "warning", 1),
        ([ODD, BAD], "error", 1),
    ],
)
def test_the_exit_code_follows_fail_on(findings: list[Finding], fail_on: FailOn, code: int) -> None:
    assert exit_code(findings, fail_on) == code


@pytest.mark.parametrize("output", ReportOutput)
def test_every_output_says_every_finding(
    output: ReportOutput, capsys: pytest.CaptureFixture[str]
) -> None:
    from connectctl.cli.output.findings import table_of

    emit_report(
        "Preflight",
        {},
        [BAD, WARN],
        ReportOptions(output=output),
        lambda wide: table_of([BAD, WARN], wide=wide),
    )
    out = capsys.readouterr().out
    assert "EOS001" in out
    assert "TOPIC005" in out
    if output is ReportOutput.JSON:
        assert [f["id"] for f in json.loads(out)["findings"]] == ["EOS001", "TOPIC005"]

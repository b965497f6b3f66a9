"""What comes from outside steers no terminal: it shows as an escape, in every form of output."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
import yaml
from connectctl.cli.options import ReportOptions, ReportOutput
from connectctl.cli.output import findings
from connectctl.cli.output import terminal as output_terminal
from connectctl.cli.output.sanitize import in_json, in_xml, on_one_line, visible
from connectctl.cli.output.tables import whole
from connectctl.ops.core.finding import Finding, Severity
from hypothesis import given
from hypothesis import strategies as st

NASTY = (
    "a\x1b[2Jb\x1b]0;title\x07\rc\x7f\x9b31m\u202egpj.exe\u2066\u200b\u2028\ufeff\U000e0041\ud800z"
)
HARMLESS = "häuser 東京 naïve\u00a0x 👍 ×"
FINDING = Finding(
    "RECORD001",
    Severity.WARNING,
    NASTY,
    f"message {NASTY}\nsecond line",
    next_step=NASTY,
    why=NASTY,
)


def steers(text: str) -> set[str]:
    """The characters of ``text`` that a terminal obeys or hides."""
    return {
        c
        for c in text
        if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and c not in "\n\t"
    }


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("a\rb", r"a\x0db"),
        ("\x9b2J", r"\x9b2J"),
        ("x\u202ey", r"x\u202ey"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("\U000e0041", r"\U000e0041"),
        ("lone \ud83d surrogate", r"lone \ud83d surrogate"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        (HARMLESS, HARMLESS),
    ],
)
def test_what_steers_a_terminal_shows_as_an_escape_and_all_else_stays(raw: str, shown: str) -> None:
    assert visible(raw) == shown


def test_a_cell_is_one_line() -> None:
    assert on_one_line("a\nb\tc\x1bd") == r"a b c\x1bd"


@given(st.text(st.characters()))
def test_nothing_that_steers_is_left_in_text_json_or_xml(text: str) -> None:
    assert not steers(visible(text))
    encoded = in_json(json.dumps(text, ensure_ascii=False))
    assert not steers(encoded)
    assert json.loads(encoded) == text or any("\ud800" <= c <= "\udfff" for c in text)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")))
def test_an_xml_document_says_the_same_with_references(text: str) -> None:
    element = ElementTree.Element("a", name=text)
    document = in_xml(ElementTree.tostring(element, encoding="unicode"))
    assert not steers(document)
    assert ElementTree.fromstring(document).get("name") == text


def _table() -> None:
    output_terminal.table(["NAME", "STATE"], [[NASTY, "x"], ["short", NASTY]])


PRINTED: dict[str, Callable[[], None]] = {
    "a table": _table,
    "a line": lambda: output_terminal.print_line(NASTY),
    "a note": lambda: output_terminal.note(NASTY),
    "findings": lambda: output_terminal.findings([FINDING]),
    "findings as an answer": lambda: output_terminal.print_findings([FINDING], wide=True),
    "blocks": lambda: output_terminal.blocks(
        [output_terminal.Block(["A"], [[NASTY]]), output_terminal.Block(["B"], [], NASTY)]
    ),
    "json": lambda: output_terminal.emit(
        "X", {"a": NASTY, "items": [{"b": [NASTY, NASTY]}]}, output_terminal.Output.JSON, print
    ),
    "yaml": lambda: output_terminal.emit(
        "X", {NASTY: NASTY, "items": [{"b": [NASTY]}]}, output_terminal.Output.YAML, print
    ),
    "sarif": lambda: findings.emit_report(
        "X", {}, [FINDING], ReportOptions(output=ReportOutput.SARIF), print
    ),
    "junit": lambda: findings.emit_report(
        "X", {}, [FINDING], ReportOptions(output=ReportOutput.JUNIT), print
    ),
    "github": lambda: findings.emit_report(
        "X", {}, [FINDING], ReportOptions(output=ReportOutput.GITHUB), print
    ),
    "an error as json": lambda: output_terminal.note(
        output_terminal.error_json(NASTY, NASTY, NASTY, "x", 1)
    ),
}


@pytest.mark.parametrize("how", PRINTED)
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "piped"])
def test_whatever_is_printed_holds_nothing_that_steers(
    how: str, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    out = Stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    PRINTED[how]()
    printed = out.getvalue()
    if terminal:
        # The program's own bold and dim remain; what a foreign text began does not.
        printed = re.sub(r"\x1b\[[0-9;]*m", "", printed)
    assert printed
    assert not steers(printed)


def test_json_and_yaml_keep_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    well_formed = NASTY.replace("\ud800", "")
    for output, read in (
        (output_terminal.Output.JSON, json.loads),
        (output_terminal.Output.YAML, yaml.safe_load),
    ):
        output_terminal.emit(
            "X", {"a": well_formed, "plain": HARMLESS, "lines": "a\nb"}, output, print
        )
        found = read(capsys.readouterr().out)
        assert (found["a"], found["plain"], found["lines"]) == (well_formed, HARMLESS, "a\nb")


def test_a_word_of_an_enumeration_is_text_in_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    output_terminal.emit(
        "X", {"a": Severity.WARNING, Severity.INFO: 1}, output_terminal.Output.YAML, print
    )
    assert yaml.safe_load(capsys.readouterr().out) == {
        "apiVersion": output_terminal.API_VERSION,
        "kind": "X",
        "a": "warning",
        "info": 1,
    }


def test_columns_line_up_behind_an_escape() -> None:
    first, second, _ = whole(["NAME", "STATE"], [["a\x1bb", "one"], ["x", "two"]])
    assert first.index("STATE") == second.index("one")

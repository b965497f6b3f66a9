"""Values that nobody reads in a table are cut there, do not widen other lines, and are whole in
JSON.
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from connectctl.cli import main
from connectctl.cli.output import tables, terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.core.finding import Finding, Severity

KEY = '["orders",{"k":"' + "x" * 800_000 + '"}]'
NAME = "n" * 249


def test_a_key_of_a_megabyte_is_cut_in_a_table() -> None:
    for rows in (
        tables.whole(["A", "KEY"], [["1", KEY], ["2", "short"]]),
        map(str, tables.fit(["KEY"], [[KEY]], 80)[0]),
    ):
        assert sum(map(len, rows)) < 2_000
    (heading, long, short) = tables.whole(["KEY", "B"], [[KEY, "b"], ["short", "b"]])
    assert long.startswith('["orders",{"k":"xxx')
    assert "more characters)" in long
    assert max(map(len, (heading, short))) < tables.ALIGNED + tables.GAP + 2


def test_a_long_name_is_whole_and_pads_no_other_line() -> None:
    heading, long, short = tables.whole(["NAME", "STATE"], [[NAME, "RUNNING"], ["a", "RUNNING"]])
    assert long.split() == [NAME, "RUNNING"]
    assert short == "a      RUNNING"
    assert heading == "NAME   STATE"


def test_a_list_of_two_names_is_wrapped_between_them() -> None:
    row = ["20260101-120000-ab12", "connectors restart", "done", "127.0.0.1:19079, 127.0.0.1:19080"]
    lines, _ = tables.fit(["RUN", "OPERATION", "STATE", "SUBJECTS"], [row], 80, open_end=True)
    drawn = ["".join(part for part, _ in line).rstrip() for line in lines]
    assert [len(line) <= 80 for line in drawn] == [True] * 3
    assert [line.split()[-1] for line in drawn[1:]] == ["127.0.0.1:19079,", "127.0.0.1:19080"]


def test_what_a_finding_quotes_is_cut_in_its_line_and_whole_in_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finding = Finding("RECORD001", Severity.WARNING, KEY, f"The key is {KEY}.")
    assert len(terminal.line_of(finding)) < 2 * tables.LONGEST_SENTENCE
    told = io.StringIO()
    monkeypatch.setattr(sys, "stdout", told)
    data: dict[str, Any] = {"findings": [finding.as_json()]}
    terminal.emit("Cluster", data, Output.JSON, lambda wide: None)
    assert json.loads(told.getvalue())["findings"][0]["subject"] == KEY


def test_an_error_about_a_value_of_a_megabyte_is_short_and_ends_with_what_to_do() -> None:
    line = main._line([], f"{KEY} has no connector.class", KEY, "Add it.", "usage", 2)
    assert len(line) < 5_000
    assert line.endswith("more characters). Add it.")

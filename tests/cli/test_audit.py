"""The audit's page and tables, and input that is refused before anything is opened."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.cli.main import app
from connectctl.cli.views import audit
from connectctl.cli.views.audit_html import page
from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.input_partitions import InputPartition
from connectctl.ops.audit.plan import AuditRequest
from connectctl.ops.audit.scan import PartTotals
from connectctl.ops.audit.sequences import SourceTotals
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.verdict import Audit, findings_of
from connectctl.ops.audit.violations import KINDS, Violation
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.pages import ORIGIN
from typer.testing import CliRunner

if TYPE_CHECKING:
    pass


def audited(*, bad: bool = True) -> Audit:
    summary = Summary()
    summary.reads = {}
    summary.add(PartTotals("<t>", 0, 0, 10, 10))
    for n in range(20):
        summary.totals.sizes.add(1 << n, n + 1)
        summary.totals.timeline.add(
            1_700_000_000_000 + n * 60_000, "aborted" if bad else "committed", n
        )
    if bad:
        for n, kind in enumerate(KINDS):
            summary.add(
                Violation(
                    kind,
                    "<s>",
                    "<t>",
                    0,
                    n,
                    0,
                    1,
                    2,
                    2,
                    1_700_000_000_000 + n * 99_000,
                    5,
                    0,
                    "<d>",
                )
            )
        summary.add(SourceTotals("<t>", "<s>", 10, 1, 2, 3, 4, 5, 0, 9))
    found = Audit(
        "<c>",
        AuditRequest(("<t>",), field_extractor.sequence_spec("$.seq")),
        summary,
        1_700_000_000.0,
    )
    return replace(found, findings=findings_of(found))


def test_the_table_begins_with_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    for wide in (False, True):
        audit.show(audited(), wide)
        out = capsys.readouterr().out
        assert out.startswith("<t>: torn (1 duplicate, 7 gaps)\n")
        assert "3 !" in out
        assert ("BATCHES" in out) is wide


def test_a_timestamp_that_no_calendar_has_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = audited()
    for n, timestamp in enumerate((1_700_000_000_000_000, (1 << 63) - 1)):
        found.summary.add(Violation("gap", "<s>", "<t>", 0, n, 0, 1, 2, 2, timestamp, 5, 0, "<d>"))
    audit.show(found, True)
    assert "1700000000000000 ms after 1970" in capsys.readouterr().out
    assert "1700000000000000 ms after 1970" in page(found, ORIGIN)


def test_the_table_has_the_inputs_and_whether_their_offsets_are_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from fakes.auditedinputs import SPAN
    from fakes.auditedinputs import audited as compared

    unknown = InputPartition(SPAN._replace(partition=1), 0, 20, unknown="why")
    none = InputPartition(SPAN._replace(partition=2), 0, 0)
    found = compared()
    found = replace(found, inputs=(*(found.inputs or ()), unknown, none))
    audit.show(found, False)
    out = capsys.readouterr().out
    assert out.startswith("out: exactly-once (0 duplicates, 0 gaps)\n")
    assert "NOT IN OUTPUT" in out
    audit.show(found, True)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("in-")]
    assert [row[:2] for row in rows] == [["in-0", "10"], ["in-1", "unknown"], ["in-2", "none"]]
    assert "in-1" in page(found, ORIGIN)
    assert "exactly-once" in page(found, ORIGIN)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--sequence", "$.a["], "is not a JSON path"),
        (["--by", "header:"], "missing header name"),
        (["--offset-field", "x"], "Give --connector"),
        (["--headers-only", "--first", "0"], "--headers-only reads no records"),
        (["--evidence", "full"], "is not empty"),
        (["--evidence", "full/x"], "is not a directory"),
        (["--html", "no/where.html"], "the directory does not exist"),
        (["--html", "full"], "it is a directory"),
        (["--until", "offset:-1"], "is not a valid time or offset"),
        (["--since", "2026-02-02", "--until", "2026-02-01"], "--since is not before --until"),
        (["--since", "offset:9", "--until", "offset:9"], "--since is not before --until"),
        (["--from", "in"], "--from requires --group"),
        (["--group", "g"], "Give --from TOPIC"),
        (["--subset"], "Give --from TOPIC"),
        (["--from", "in,t", "--group", "g"], "t is an input and an output"),
        (
            ["--from", "in", "--group", "g", "--headers-only"],
            "--headers-only cannot be combined with --from",
        ),
        (
            ["--from", "in", "--group", "g", "--first", "0"],
            "--first cannot be combined with --from",
        ),
        (
            ["--from", "in", "--group", "g", "--since", "offset:9"],
            "--since cannot be combined with --from",
        ),
    ],
)
def test_input_is_refused_in_one_line(
    args: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full/x").write_text("")
    ran = CliRunner().invoke(app, ["--bootstrap-servers", "nowhere:1", "audit", "t", *args])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_the_records_are_read_without_pyarrow_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from connectctl.ops.jobs.audit_sequences import Runs, Wanted
    from fakes.auditrows import values

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    runs = Runs(Wanted(field_extractor.sequence_spec("$.seq")))
    list(runs.take(TopicPartition("t", 0), values(*({"seq": n} for n in range(9)))))
    assert [(run.first, run.last) for run in runs.rest()] == [(0, 8), (9, 0)]

"""FLOW001 and FLOW002 on clusters made for tests."""

from __future__ import annotations

import time
from typing import Any

import pytest
from connectctl.ops.checks.history.records import History, StatusRecord
from connectctl.ops.checks.progress import rules
from connectctl.ops.checks.progress.observe import observe
from connectctl.ops.connect.connector import Connector, Status
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.rhythm import Rhythm
from fakes.check_context import check_context
from fakes.kafkareads import FakeKafka

NOW = time.time()
DAY, HOUR = 86_400.0, 3600.0
REGULAR = Rhythm(NOW - 8 * DAY, NOW - HOUR, 61.0, 4000)


def found(
    *records: float,
    state: str = "RUNNING",
    rhythm: Rhythm | None = REGULAR,
    running_since: float = NOW - 4 * DAY,
    forbidden: bool = False,
) -> tuple[dict[str, Finding], list[str]]:
    """The findings about a source whose topic has records of these times, and what was not seen."""
    kafka: Any = FakeKafka(
        records={
            "t": [ConsumerRecord(None, b"", 0, n, int(at * 1000)) for n, at in enumerate(records)]
        }
    )
    if forbidden:
        kafka.forbidden = {"t"}
    source = Connector("orders", Status("RUNNING", "w:1"), {0: Status(state, "w:1")}, {})
    status = StatusRecord(("orders", 0), state, "w:1", at=running_since)
    history = History({("orders", 0): (status,)}, rhythms={"orders": (rhythm,)} if rhythm else {})
    context = check_context(
        source, kafka=kafka, history=history, recorded={"orders": frozenset({"t"})}
    )
    facts = observe(context, NOW)
    findings = {each.id: each for each in check(rules, facts, Goal.NOW)}
    return findings, [gap.what for gap in facts.unseen]


def test_a_source_that_was_regular_and_is_silent_stands_still_since_its_last_offset() -> None:
    findings, unseen = found(NOW - HOUR - 1)
    assert list(findings) == ["FLOW001"]
    assert findings["FLOW001"].since == NOW - HOUR
    assert "RUNNING and stands still" in findings["FLOW001"].message
    assert "1 h ago" in findings["FLOW001"].message
    assert not unseen


def test_a_source_that_may_rest_is_no_error_and_its_line_says_so() -> None:
    findings, _ = found(rhythm=Rhythm(NOW - 3 * DAY, NOW - HOUR, 61.0, 4000))
    assert findings["FLOW001"].severity in (Severity.WARNING, Severity.INFO)
    assert "stands still" in findings["FLOW001"].message
    assert "It may rest, as at a weekend" in findings["FLOW001"].message
    assert found()[0]["FLOW001"].severity is Severity.ERROR


def test_new_records_without_offsets_are_another_finding() -> None:
    assert list(found(NOW - HOUR, NOW - 5)[0]) == ["FLOW002"]


def test_topics_that_may_not_be_read_are_named_and_the_silence_counts() -> None:
    findings, unseen = found(NOW, forbidden=True)
    assert list(findings) == ["FLOW001"]
    assert any("unknown" in line for line in findings["FLOW001"].evidence)
    assert unseen


@pytest.mark.parametrize(
    "more",
    [
        {"state": "PAUSED"},
        {"state": "FAILED"},
        {"rhythm": None},
        {"rhythm": Rhythm(NOW - 3 * DAY, NOW - 60, 61.0, 4000)},
        {"rhythm": Rhythm(NOW - 3 * DAY, NOW - HOUR, 6 * HOUR, 4000)},
        {"running_since": NOW - 60},
    ],
)
def test_others_are_not_judged(more: dict[str, Any]) -> None:
    assert found(NOW - 2 * DAY, **more)[0] == {}

"""How a roll waits, and how it keeps its notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest
from connectctl.ops.core.journal import Journal
from connectctl.ops.operations.rolling.notes import RunNotes
from connectctl.ops.operations.rolling.waiting import POLL, GateResult, Missing, wait_for
from connectctl.ops.operations.streams_upgrade import context as of_instances
from connectctl.ops.operations.upgrade import run_state as of_workers


@dataclass
class FakeClock:
    """A clock that moves when somebody sleeps; ``lines`` are what was reported."""

    time: float = 0.0
    lines: list[str] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float, /) -> None:
        self.time += seconds

    def progress(self, line: str, /) -> None:
        self.lines.append(line)


def test_the_first_answer_with_nothing_missing_ends_the_wait() -> None:
    clock, answers = FakeClock(), iter([Missing("a"), Missing("a"), "there", "never asked"])
    assert wait_for(clock, lambda: next(answers)) == "there"
    assert clock.time == 2 * POLL


def test_a_falsy_answer_is_an_answer() -> None:
    assert wait_for(FakeClock(), lambda: False) is False


def test_each_new_reason_is_reported_at_once_and_none_again_within_thirty_seconds() -> None:
    looks = iter(
        [
            Missing("a", "a and b"),
            Missing("a", "a and c"),
            Missing(""),
            Missing("b"),
            Missing("a"),
            True,
        ]
    )
    clock = FakeClock()
    assert wait_for(clock, lambda: next(looks)) is True
    assert clock.lines == ["waiting: a and b", "waiting: b"]


def test_a_long_wait_reports_every_thirty_seconds_what_still_is_missing() -> None:
    clock = FakeClock()
    wait_for(clock, lambda: Missing("a"), 70)
    assert clock.lines == [
        "waiting: a",
        "still waiting after 30 s: a",
        "still waiting after 61 s: a",
    ]
    clock = FakeClock()
    wait_for(clock, lambda: Missing(""), 40)
    assert clock.lines == ["still waiting after 30 s"]


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_what_is_missing_at_last_is_given_when_the_time_is_over_and_looked_at_once_more_then(
    seconds: float,
) -> None:
    clock = FakeClock()
    missing = wait_for(clock, lambda: Missing(f"since {clock.time:.1f}"), seconds)
    assert isinstance(missing, Missing)
    assert missing.reason == f"since {clock.time:.1f}"
    assert seconds <= clock.time < seconds + POLL + 0.01


def test_an_error_of_a_look_ends_the_wait() -> None:
    def look() -> Missing:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        wait_for(FakeClock(), look)


def test_a_gate_that_is_healthy_but_not_for_long_enough_has_no_reason_to_report() -> None:
    assert GateResult(None).missing == Missing("")
    assert GateResult(None, ("a", "b", "c", "d")).missing == Missing("a", "a; b; c")


@dataclass
class Lines(RunNotes):
    """Notes of a kind of their own."""

    FILE: ClassVar[str] = "lines.json"
    lines: list[str] = field(default_factory=list)


def test_notes_are_empty_before_they_are_saved_and_what_was_saved_afterwards(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path)
    (tmp_path / "runs" / "r1").mkdir(parents=True)
    notes = Lines.load(journal, "r1")
    assert notes == Lines()
    notes.lines.append("changed")
    notes.save(journal, "r1")
    assert Lines.load(journal, "r1") == Lines(["changed"])


SAVED = [
    (
        of_workers.UpgradeNotes,
        "notes.json",
        '{"turns": {"1.0": ["w1:8083"]}, "workers": {"w1:8083": {"value": "preparing", "state": '
        '"joined", "before": "m1", "member": "m2", "leads": true, "at": 1.5}}, "recovered": '
        '["1.0:orders/0"], "leader": ["m2", [7, 1]]}',
    ),
    (
        of_instances.ApplicationNotes,
        "application.json",
        '{"entries": {"1:app-1:7001": {"state": "restarted", "before": ["m1"]}}, "was": '
        '{"app-1:7001": null}}',
    ),
]


@pytest.mark.parametrize(("kind", "name", "text"), SAVED)
def test_notes_that_were_saved_are_read_and_written_as_they_were(
    tmp_path: Path, kind: type[RunNotes], name: str, text: str
) -> None:
    journal = Journal(tmp_path)
    journal.path("r1", name).parent.mkdir(parents=True, exist_ok=True)
    journal.path("r1", name).write_text(text)
    notes = kind.load(journal, "r1")
    notes.save(journal, "r1")
    assert journal.path("r1", name).read_text() == text

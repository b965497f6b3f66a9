"""Source offsets that a change of configuration carries over: as they are when the connector has been stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.config_offsets import SetConnectorOffsets, file_of, taken_back
from connectctl.ops.operations.connectors.config_outlook import text_of
from connectctl.ops.operations.connectors.context import StepContext
from fakes.workers import FakeConnector, FakeWorkers

A, B = '{"filename":"a"}', '{"filename":"b"}'
SPACED = json.dumps(json.loads(A))
"""The same as the workers in memory spell it."""
STEP = SetConnectorOffsets("lines", ((B, '{"position":10}'), (A, "null")), carried=((A, B),))


@pytest.fixture
def context(tmp_path: Path) -> StepContext:
    """``lines`` is stopped; its offset was 10 when the plan was made, and is 60."""
    workers = FakeWorkers({"lines": FakeConnector(own="STOPPED", tasks=[])})
    workers.offsets["lines"] = {SPACED: {"position": 60}}
    journal = Journal(tmp_path)
    run = journal.begin_plan(Plan("connectors patch", "id", (STEP,), group_id="connect"))
    return StepContext(workers, 5, journal=journal, run=run)


def offsets(context: StepContext) -> dict[str, int]:
    found = context.calls.get("/connectors/lines/offsets")["offsets"]
    return {text_of(each["partition"]): each["offset"]["position"] for each in found}


def kept(context: StepContext) -> dict[str, int]:
    journal, run = context.journal_and_run()
    found = json.loads(journal.path(run.id, file_of(0)).read_bytes())
    return {text_of(each["partition"]): each["offset"]["position"] for each in found}


def carry(context: StepContext) -> None:
    if STEP.is_done(context) is None:
        STEP.apply(context)


def test_what_was_committed_between_plan_and_stop_is_carried_over(context: StepContext) -> None:
    carry(context)
    assert offsets(context) == {B: 60}
    assert kept(context) == {A: 60}


def test_a_second_attempt_finds_it_done(context: StepContext) -> None:
    carry(context)
    assert STEP.is_done(context) == "already set"
    assert offsets(context) == {B: 60}


def test_what_was_committed_between_an_interruption_and_the_resume_is_carried_over_and_kept(
    context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(context.calls, "send", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            carry(context)
    assert kept(context) == {A: 60}
    assert isinstance(context.calls, FakeWorkers)
    context.calls.offsets["lines"] = {SPACED: {"position": 110}}
    carry(context)
    assert offsets(context) == {B: 110}
    assert kept(context) == {A: 110}


def test_what_a_task_that_did_not_hear_of_the_stop_commits_until_it_is_fenced_is_carried_over(
    context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, late = context.calls.send, [{"position": 110}]

    def send(method: str, path: str, body: Any = None) -> Any:
        if late:
            context.calls.offsets["lines"][SPACED] = late.pop()  # type: ignore[attr-defined]
        return real(method, path, body)

    monkeypatch.setattr(context.calls, "send", send)
    carry(context)
    assert offsets(context) == {B: 110}


def test_an_undo_carries_back_what_was_committed_since(context: StepContext) -> None:
    carry(context)
    journal, run = context.journal_and_run()
    assert isinstance(context.calls, FakeWorkers)
    context.calls.offsets["lines"] = {json.dumps(json.loads(B)): {"position": 110}}
    back = taken_back(STEP, journal, run.id, 0, None)
    undo = replace(context, run=journal.begin_plan(Plan("connectors undo", "id", (back,), group_id="connect")))
    assert back.is_done(undo) is None
    back.apply(undo)
    assert offsets(undo) == {A: 110}

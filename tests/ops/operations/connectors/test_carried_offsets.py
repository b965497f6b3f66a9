"""Source offsets that a change of configuration carries over: as they are when the connector has
been stopped.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.carried_offsets import (
    CarryOffsets,
    DeleteCarried,
    reversed_pairs,
)
from connectctl.ops.operations.connectors.config.outlook import of_change, text_of
from connectctl.ops.operations.connectors.config.values import digest, store_configs
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.observe import read_one
from fakes.workers import FakeConnector, FakeWorkers

A, B = '{"filename":"a"}', '{"filename":"b"}'
BEFORE, AFTER = (
    {"name": "lines", "connector.class": "FileStreamSource", "file": name} for name in "ab"
)
CARRY = CarryOffsets("lines", ((A, B),), digest(BEFORE), digest(AFTER))
DELETE = DeleteCarried("lines", ((A, B),), digest(AFTER))


@pytest.fixture
def context(tmp_path: Path) -> StepContext:
    """``lines`` is stopped; its offset was 10 when the plan was made, and is 60."""
    workers = FakeWorkers({"lines": FakeConnector(own="STOPPED", tasks=[], config=dict(BEFORE))})
    journal = Journal(tmp_path)
    store_configs((BEFORE, AFTER), journal)
    run = journal.begin_plan(Plan("connectors patch", "id", (CARRY, DELETE), group_id="connect"))
    found = StepContext(workers, 5, journal=journal, run=run)
    commit(found, A, 60)
    return found


def workers(context: StepContext) -> FakeWorkers:
    assert isinstance(context.calls, FakeWorkers)
    return context.calls


def commit(context: StepContext, partition: str, position: int) -> None:
    workers(context).offsets.setdefault("lines", {})[json.dumps(json.loads(partition))] = {
        "position": position
    }


def configure(context: StepContext, config: dict[str, str]) -> None:
    workers(context).connectors["lines"].config = dict(config)


def offsets(context: StepContext) -> dict[str, int]:
    found = context.calls.get("/connectors/lines/offsets")["offsets"]
    return {text_of(each["partition"]): each["offset"]["position"] for each in found}


def test_what_was_committed_between_plan_and_stop_is_carried_over_and_the_former_offset_stays_until_it_is_unread(
    context: StepContext,
) -> None:
    CARRY.apply(context)
    assert offsets(context) == {A: 60, B: 60}
    with pytest.raises(Refused, match="changed since the plan was made"):
        DELETE.apply(context)
    configure(context, AFTER)
    DELETE.apply(context)
    assert offsets(context) == {B: 60}
    assert DELETE.is_done(context) == "none is there"


def test_an_attempt_after_the_change_of_configuration_leaves_what_was_committed_since(
    context: StepContext,
) -> None:
    CARRY.apply(context)
    configure(context, AFTER)
    commit(context, B, 110)
    assert CARRY.is_done(context) == "its configuration is changed already"
    DELETE.apply(context)
    assert offsets(context) == {B: 110}


def test_an_attempt_before_it_carries_over_what_was_committed_since(context: StepContext) -> None:
    CARRY.apply(context)
    commit(context, A, 110)
    assert CARRY.is_done(context) is None
    CARRY.apply(context)
    assert offsets(context) == {A: 110, B: 110}


def test_what_a_task_that_did_not_hear_of_the_stop_commits_until_it_is_fenced_is_carried_over(
    context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, late = context.calls.send, [110]

    def send(method: str, path: str, body: Any = None) -> Any:
        if late:
            commit(context, A, late.pop())
        return real(method, path, body)

    monkeypatch.setattr(context.calls, "send", send)
    CARRY.apply(context)
    assert offsets(context) == {A: 110, B: 110}


def test_what_it_commits_where_nothing_fences_it_is_carried_over_before_the_former_offset_is_deleted(
    context: StepContext,
) -> None:
    CARRY.apply(context)
    configure(context, AFTER)
    commit(context, A, 110)
    DELETE.apply(context)
    assert offsets(context) == {B: 110}


def test_what_both_have_committed_is_refused_with_the_number(context: StepContext) -> None:
    CARRY.apply(context)
    configure(context, AFTER)
    commit(context, A, 110)
    commit(context, B, 160)
    with pytest.raises(Refused, match="1 source partition of lines moved under both names"):
        DELETE.apply(context)
    assert offsets(context) == {A: 110, B: 160}


def test_an_offset_that_was_reset_since_an_interruption_is_not_carried_over(
    context: StepContext,
) -> None:
    CARRY.apply(context)
    workers(context).offsets["lines"] = {json.dumps(json.loads(B)): {"position": 60}}
    CARRY.apply(context)
    assert offsets(context) == {}


def test_another_configuration_carries_nothing_over_and_the_connector_goes_on(
    context: StepContext,
) -> None:
    configure(context, BEFORE | {"batch.size": "1"})
    with pytest.raises(Refused, match="lines was stopped, and is resumed again"):
        replace(CARRY, was="RUNNING").apply(context)
    assert offsets(context) == {A: 60}


def test_an_undo_of_an_interrupted_run_deletes_the_copy_alone(context: StepContext) -> None:
    CARRY.apply(context)
    commit(context, A, 110)
    journal, run = context.journal_and_run()
    back = DeleteCarried("lines", reversed_pairs(CARRY.pairs), digest(BEFORE), run.id)
    undo = replace(
        context, run=journal.begin_plan(Plan("connectors undo", "id", (back,), group_id="connect"))
    )
    back.apply(undo)
    assert offsets(undo) == {A: 110}


@pytest.mark.parametrize(
    "more", [{"offsets.storage.topic": "own"}, {"producer.override.bootstrap.servers": "x:1"}]
)
def test_offsets_are_not_carried_over_to_where_the_new_configuration_does_not_read_them(
    context: StepContext, more: dict[str, str]
) -> None:
    connector = read_one(context.calls, "lines")
    assert of_change(context.calls, connector, AFTER, carry=True).carried == ((A, B),)
    with pytest.raises(Refused, match=r"may fail to set the offsets|may move the offsets"):
        of_change(context.calls, connector, AFTER | more, carry=True)


def test_an_offset_is_not_carried_over_to_what_the_former_configuration_reads_as_well(
    context: StepContext,
) -> None:
    class_ = "io.debezium.connector.sqlserver.SqlServerConnector"
    former, new = (
        {"connector.class": class_, "topic.prefix": "p", "database.names": each}
        for each in ("x,y", "y")
    )
    configure(context, former)
    workers(context).offsets["lines"] = {'{"server": "p", "database": "x"}': {"position": 1}}
    with pytest.raises(Refused, match="Not every source offset"):
        of_change(context.calls, read_one(context.calls, "lines"), new, carry=True)

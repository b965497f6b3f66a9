"""Plans for changes of source offsets: their steps, every reason to refuse, and what an interrupted
one goes on with.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.connect.connector import State
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.journal import Run, RunState, StepEvent
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.offsets.changes import (
    CopyOffsets,
    MergeOffsets,
    OffsetRequest,
    ResetOffsets,
    RestoreBackup,
    SetOffsets,
)
from connectctl.ops.operations.offsets.planning import ConnectorState, first_to_do, plan_changes
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, changes_to
from connectctl.ops.operations.offsets.rest_api import obstacles
from connectctl.ops.operations.offsets.snapshot import WorkerFacts
from connectctl.ops.operations.offsets.steps import Change
from connectctl.ops.operations.offsets.task_producers import Producers
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState
from connectctl.ops.registry import KINDS
from fakes.offsettopics import NOW, UNREADABLE, histories, places, record
from fakes.plans import steps_from_data
from hypothesis import given
from hypothesis import strategies as st

A, B = ["c", {"t": "a"}], ["c", {"t": "b"}]
OLD, NEW = {"lsn": 1}, {"lsn": 2}
CONFIG = {"connector.class": "x.y.Source"}
PUT = SetOffsets("c", (('{"t": "a"}', '{"lsn": 5}'),))


def subject(
    global_: Any = (),
    dedicated: Any = None,
    state: State | None = State.STOPPED,
    name: str = "c",
    **more: Any,
) -> ConnectorState:
    config = CONFIG | ({} if dedicated is None else {"offsets.storage.topic": "own"})
    return ConnectorState(
        name, tuple(places(global_, dedicated, name)), state, True, config, **more
    )


def plan(of: ConnectorState, wish: OffsetRequest, *, stop: bool = False, **more: Any) -> list[str]:
    return [
        step.describe()
        for step in plan_changes("offsets x", "id", [(of, wish)], stop=stop, **more).plan.steps
    ]


def reasons(of: ConnectorState, wish: OffsetRequest, **more: Any) -> str:
    with pytest.raises(Refused) as refusal:
        plan(of, wish, **more)
    return str(refusal.value)


# -------------------------------------------------------------------------------------------- steps


def test_a_stopped_connector_is_backed_up_and_changed() -> None:
    assert plan(subject([record(A, OLD)]), PUT) == [
        "back up the offsets of c in global",
        "set offsets of c: write 1 record to global",
    ]


@pytest.mark.parametrize(
    ("state", "back"),
    [(State.RUNNING, "resume"), (State.PAUSED, "pause"), (State.FAILED, "resume")],
)
def test_a_running_connector_is_stopped_and_brought_back_to_what_it_was(
    state: State, back: str
) -> None:
    steps = plan(subject([record(A, OLD)], state=state), PUT, stop=True)
    assert steps[:2] == ["stop c", "wait until c is STOPPED"]
    assert steps[-2].startswith(back)


def test_a_connector_that_gets_its_own_topic_is_seeded_before_it_is_told() -> None:
    seeded = OffsetsTopicState("own", Side.DEDICATED, 5, partitions_exist=False)
    of = replace(subject([record(A, OLD)]), topic_states=(*places([record(A, OLD)]), seeded))
    assert plan(of, MergeOffsets("c", "dedicated", dedicated_topic="own")) == [
        "back up the offsets of c in global and own",
        "create topic own (compacted, same number of partitions as the global one)",
        "merge offsets of c (effective): write 1 record to own",
        "set offsets.storage.topic=own of c",
        "verify the offsets that workers will resume c from",
    ]


def test_a_connector_goes_back_to_the_global_topic_after_its_offsets_are_there() -> None:
    of = subject([record(A, OLD)], [record(A, NEW)])
    assert plan(of, MergeOffsets("c", "global", dedicated_topic="own"))[-2:] == [
        "merge offsets of c (effective): write 1 record to global",
        "remove offsets.storage.topic of c",
    ]


def test_what_is_so_already_is_no_plan() -> None:
    assert (
        plan(
            subject([record(A, NEW)], [record(A, NEW)], State.RUNNING),
            MergeOffsets("c", "global"),
            stop=True,
        )
        == []
    )
    assert plan(subject([record(A, None)]), ResetOffsets("c")) == []


def test_a_restore_sets_properties_back_that_the_run_had_set() -> None:
    of = subject([record(A, OLD)], [record(A, NEW)])
    wish = RestoreBackup("c", "backup-0.jsonl", "run", (("offsets.storage.topic", None),))
    assert plan(of, wish)[-1] == "remove offsets.storage.topic of c"


# ----------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED, State.FAILED, State.UNASSIGNED])
def test_a_connector_that_is_not_stopped_is_refused_without_stop(state: State) -> None:
    assert f"c is {state}" in reasons(subject([record(A, OLD)], state=state), PUT)


def test_with_connect_down_nothing_runs_whatever_the_last_status_said() -> None:
    assert plan(replace(subject([record(A, OLD)], state=State.RUNNING), workers_up=False), PUT)


STALE = ([record(A, NEW, at=NOW)], [record(A, OLD, at=NOW - 61_000)])


@pytest.mark.parametrize("into", ["global", "dedicated"])
def test_a_stale_dedicated_topic_is_refused_until_somebody_chooses(into: str) -> None:
    found = reasons(subject(*STALE), MergeOffsets("c", into))
    assert "The dedicated topic own looks stale" in found
    assert "61 s older" in found
    assert "--policy" in found
    assert plan(
        subject(*STALE),
        MergeOffsets("c", into, "newest" if into == "dedicated" else "effective", chosen=True),
    )


def committing_to(side: Side, of: ConnectorState) -> ConnectorState:
    """The connector, whose tasks commit to the topic of ``side``."""
    return replace(
        of, topic_states=tuple(replace(at, in_use=at.side is side) for at in of.topic_states)
    )


A_LITTLE = ([record(A, NEW, at=NOW)], [record(A, OLD, at=NOW - 1)])


def test_a_topic_in_use_that_is_a_little_older_is_stale_and_the_number_is_told() -> None:
    of = committing_to(Side.DEDICATED, subject(*A_LITTLE))
    found = reasons(of, MergeOffsets("c", "global"))
    assert "looks stale for 1 source partition: its offset of" in found
    assert "1 ms older" in found


def test_what_tasks_commit_to_the_global_topic_is_merged_into_an_older_dedicated_one() -> None:
    of = committing_to(Side.GLOBAL, replace(subject(*A_LITTLE), config=CONFIG))
    steps = plan(of, MergeOffsets("c", "dedicated", dedicated_topic="own"))
    assert "merge offsets of c (effective): write 1 record to own" in steps


def test_the_topic_of_tasks_that_run_decides_whatever_the_clocks_of_their_workers_say() -> None:
    of = subject([record(A, NEW, at=0)], [record(A, OLD, at=NOW)], State.RUNNING)
    into_own = MergeOffsets("c", "dedicated", dedicated_topic="own")
    there = plan(committing_to(Side.GLOBAL, replace(of, config=CONFIG)), into_own, stop=True)
    assert "merge offsets of c (effective): write 1 record to own" in there
    assert plan(
        committing_to(Side.DEDICATED, subject(*STALE, State.RUNNING)),
        MergeOffsets("c", "global"),
        stop=True,
    )


def test_a_move_without_a_record_to_write_fences_tasks_that_may_still_run() -> None:
    same = subject([record(A, NEW)], [record(A, NEW)], State.RUNNING, producers=Producers(("c-0",)))
    steps = plan(
        replace(same, config=CONFIG),
        MergeOffsets("c", "dedicated", dedicated_topic="own"),
        stop=True,
    )
    assert (
        steps[2]
        == "fence the transactional id c-0 of c, so that no task that still runs can commit offsets"
    )
    hidden = replace(same, config=CONFIG, producers=Producers(unseen="Describe is missing"))
    found = reasons(hidden, MergeOffsets("c", "dedicated", dedicated_topic="own"), stop=True)
    assert "Describe is missing" in found


def test_a_run_that_has_not_verified_its_change_begins_again_at_the_connectors_first_step() -> None:
    of = replace(subject([record(A, NEW)], [record(A, NEW)], State.RUNNING), config=CONFIG)
    steps = plan_changes(
        "x", "id", [(of, MergeOffsets("c", "dedicated", dedicated_topic="own"))], stop=True
    ).plan.steps
    kinds = [type(step).__name__ for step in steps]
    for kind in ("Change", "Configure", "Check"):
        assert first_to_do(run(steps, *range(kinds.index(kind))), steps) == 0
    assert (
        first_to_do(run(steps, *range(kinds.index("Check") + 1)), steps) == kinds.index("Check") + 1
    )


@pytest.mark.parametrize(
    ("global_", "dedicated"),
    [
        ([record(A, NEW, at=NOW)], [record(A, NEW, at=0)]),
        ([record(A, NEW, at=NOW)], [record(A, None, at=0)]),
        ([record(A, NEW, at=NOW)], [record(A, OLD, at=NOW)]),
        ([record(A, NEW, at=0)], [record(A, OLD, at=NOW)]),
        ([record(B, NEW, at=NOW)], [record(A, OLD, at=0)]),
    ],
)
def test_what_is_not_stale_is_merged(global_: Any, dedicated: Any) -> None:
    plan(subject(global_, dedicated), MergeOffsets("c", "global"))


@pytest.mark.parametrize("value", UNREADABLE)
def test_unreadable_values_refuse(value: bytes) -> None:
    assert '"t":"a"' in reasons(subject([record(A, value)], []), MergeOffsets("c", "dedicated"))


def test_what_cannot_be_seen_whole_is_refused() -> None:
    hidden = replace(
        places([record(A, OLD)])[0], problem="an open transaction blocks reading global-1"
    )
    assert "blocks reading global-1" in reasons(replace(subject(), topic_states=(hidden,)), PUT)


def test_a_second_topic_of_its_own_is_refused() -> None:
    of = subject([], [record(A, OLD)])
    assert "has its own offsets topic own" in reasons(
        of, MergeOffsets("c", "dedicated", dedicated_topic="another")
    )


def test_a_topic_property_cannot_be_changed_without_workers_or_without_the_connector() -> None:
    of = subject([record(A, OLD)], [record(A, NEW)])
    wish = MergeOffsets("c", "global", dedicated_topic="own")
    assert "no worker is running" in reasons(replace(of, workers_up=False), wish)
    assert "is not configured" in reasons(
        replace(of, config={}), MergeOffsets("c", "dedicated", dedicated_topic="own")
    )


def test_a_connector_that_writes_to_another_cluster_keeps_its_topic_there() -> None:
    of = subject([record(A, OLD)], [record(A, NEW)])
    there = replace(of.topic_states[1], bootstrap="other:9092")
    wish = MergeOffsets("c", "global", dedicated_topic="own")
    assert "other:9092" in reasons(replace(of, topic_states=(of.topic_states[0], there)), wish)


def test_all_reasons_are_told_at_once() -> None:
    found = reasons(
        subject([record(A, b"x", at=NOW)], [record(A, OLD, at=0)], State.RUNNING),
        MergeOffsets("c", "global", "global"),
    )
    assert "stop it first" in found
    assert "looks stale" in found
    assert "not JSON" in found


# --------------------------------------------------------------------------------------------- rest

UP: Any = {"workers": WorkerFacts("4.3.1", enabled=True)}


def test_what_workers_can_say_they_may_do() -> None:
    for wish in (
        PUT,
        ResetOffsets("c"),
        ResetOffsets("c", ('{"t": "a"}',)),
        CopyOffsets("c", "d", (('["d",{"t":"x"}]', '{"lsn":1}'),)),
    ):
        steps = plan_changes(
            "x", "id", [(subject([record(A, OLD)], **UP), wish)], stop=False, via="rest"
        ).plan.steps
        assert (isinstance(steps[-1], Change) and steps[-1].via) == "rest"
        assert "through the workers" in steps[-1].describe()


@pytest.mark.parametrize(
    ("of", "wish", "reason"),
    [
        (
            subject([record(A, OLD)], workers=WorkerFacts("3.5.2", True)),
            PUT,
            "changing offsets requires 3.6",
        ),
        (subject([record(A, OLD)]), PUT, "no worker answers"),
        (replace(subject([record(A, OLD)], **UP), config={}), PUT, "is not configured"),
        (subject([record(A, OLD, partition=p) for p in range(5)], **UP), PUT, "lie on partitions"),
        (
            subject([record(b'["c",{"z":1,"a":2}]', OLD)], **UP),
            ResetOffsets("c"),
            "are in a spelling that",
        ),
        (subject([record(["c", None], OLD)], **UP), ResetOffsets("c"), "are in a spelling that"),
        (
            subject([record(A, OLD)], [record(A, OLD)], **UP),
            ResetOffsets("c"),
            "fail to delete offsets",
        ),
        (
            subject([record(A, OLD)], [record(A, NEW), record(B, NEW)], **UP),
            MergeOffsets("c", "dedicated", "global", chosen=True),
            None,
        ),
        (
            subject([record(A, OLD), record(B, OLD)], [record(B, NEW)], **UP),
            MergeOffsets("c", "global"),
            None,
        ),
        (subject([record(A, OLD)], [record(B, NEW)], **UP), MergeOffsets("c", "dedicated"), None),
        (
            subject([], [record(B, b'{"lsn": 2}')], **UP),
            MergeOffsets("c", "global"),
            "are in a spelling that",
        ),
        (
            subject([record(A, OLD)], [record(A, NEW)], workers=WorkerFacts("4.3.1", False)),
            MergeOffsets("c", "global", "dedicated", chosen=True),
            None,
        ),
    ],
)
def test_workers_are_asked_only_for_what_ends_in_the_same_records(
    of: ConnectorState, wish: OffsetRequest, reason: str | None
) -> None:
    if reason is None:
        assert plan(of, wish, via="rest")
    else:
        assert reason in reasons(of, wish, via="rest")


def test_workers_are_not_asked_for_what_they_would_write_to_the_other_topic_too() -> None:
    found = places([record(A, OLD)], [record(A, NEW)])
    only_own = OffsetChanges(tuple(changes_to(found[1], {b'["c",{"t":"a"}]': b'{"lsn":5}'})))
    assert "another topic" in "; ".join(
        obstacles(only_own, found, WorkerFacts("4.3.1", enabled=True))
    )


def test_without_exactly_once_workers_delete_in_both_topics() -> None:
    of = subject([record(A, OLD)], [record(A, OLD)], workers=WorkerFacts("4.3.1", enabled=False))
    assert plan(of, ResetOffsets("c"), via="rest")


# -------------------------------------------------------------------------------------- round trips

wishes = st.sampled_from(
    [
        replace(PUT, force=True),
        ResetOffsets("c"),
        ResetOffsets("c", ('{"t": "a"}',)),
        CopyOffsets("c", "d", (('["d",{}]', "{}"),), force=True),
        MergeOffsets("c", "global", "newest", True, "own"),
    ]
)


@given(
    histories(), histories(), wishes, st.sampled_from([State.RUNNING, State.STOPPED, State.PAUSED])
)
def test_plans_round_trip_through_json(
    left: Any, right: Any, wish: OffsetRequest, state: State
) -> None:
    made = plan_changes("x", "id", [(subject(left, right, state), wish)], stop=True).plan
    assert Plan.from_json(json.loads(json.dumps(made.as_json())), KINDS) == made


def test_the_request_of_a_change_is_in_its_step_with_its_kind() -> None:
    made = plan_changes(
        "x", "id", [(subject([record(A, OLD)]), ResetOffsets("c"))], stop=False
    ).plan
    (data,) = [step for step in made.as_json()["steps"] if step["step"] == "Change"]
    assert data["request"]["kind"] == "reset"
    (change,) = steps_from_data([data])
    assert change.request == data["request"]


@given(histories(), wishes)
def test_the_same_snapshot_and_wish_give_the_same_plan(left: Any, wish: OffsetRequest) -> None:
    pairs = [(subject(left, []), wish)]
    assert plan_changes("x", "id", pairs, stop=True) == plan_changes("x", "id", pairs, stop=True)


@pytest.mark.parametrize(
    "data",
    [
        {"step": "Destroy", "subject": "c"},
        {"step": "Backup", "subject": "c"},
        {
            "step": "CreateTopic",
            "subject": "c",
            "topic": "t",
            "bootstrap": None,
            "now": "",
            "more": 1,
        },
        {"subject": "c"},
    ],
)
def test_steps_of_another_version_are_bad_input(data: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="does not know"):
        steps_from_data([data])


# ----------------------------------------------------------------------------------------- resuming


def run(steps: Any, *done: int) -> Run:
    marks = tuple(
        StepEvent(number, what, None, "") for number in done for what in ("begun", "done")
    )
    return Run("id", "x", "c", "g", ("c",), RunState.OPEN, "", None, marks)


def two_connectors() -> Any:
    pairs = [
        (
            subject([record([name, {"t": "a"}], OLD)], state=State.RUNNING, name=name),
            replace(PUT, connector=name),
        )
        for name in ("c", "d")
    ]
    return plan_changes("x", "id", pairs, stop=True).plan.steps


def test_each_connector_is_stopped_changed_and_resumed_before_the_next() -> None:
    kinds = [(step.subject, type(step).__name__) for step in two_connectors()]
    one = ["SetTargetState", "Await", "Backup", "Change", "SetTargetState", "Await"]
    assert kinds == [(name, kind) for name in ("c", "d") for kind in one]


@pytest.mark.parametrize(
    ("done", "first"),
    [(0, 0), (1, 0), (3, 0), (4, 4), (5, 5), (6, 6), (8, 6), (9, 6), (10, 10), (12, 12)],
)
def test_a_run_goes_on_where_the_connector_cannot_have_moved_on(done: int, first: int) -> None:
    steps = two_connectors()
    assert first_to_do(run(steps, *range(done)), steps) == first

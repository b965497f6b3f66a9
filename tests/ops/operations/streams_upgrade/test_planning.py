from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.kafka.consumer_group import ClientGroup, GroupMember, StreamsMember
from connectctl.ops.kafka.streams_eos import BETA, PER_PARTITION, V2, ProducerModel
from connectctl.ops.operations.streams_upgrade.planning import ApplicationRequest, plan
from connectctl.ops.operations.streams_upgrade.snapshot import (
    ApplicationSnapshot,
    Instance,
    TransactionalId,
)
from connectctl.ops.operations.streams_upgrade.steps import AwaitInstance, SetGuarantee
from hypothesis import given
from hypothesis import strategies as st

UP, DOWN = (
    ApplicationRequest(ProducerModel.GROUP_AWARE),
    ApplicationRequest(ProducerModel.PER_PARTITION),
)
PROCESSES = [f"00000000-0000-0000-0000-00000000000{n}" for n in range(9)]


def snapshot(
    *told: str | None, protocols: tuple[int, ...] | None = None, **more: Any
) -> ApplicationSnapshot:
    versions = protocols or (11,) * len(told)
    members = tuple(
        GroupMember(f"m{n}", "c", "h", StreamsMember(PROCESSES[n], p) if p else None, 1)
        for n, p in enumerate(versions)
    )
    instances = tuple(
        Instance(f"x:{n}", value, "file" if value else "") for n, value in enumerate(told)
    )
    values: dict[str, Any] = {
        "group": ClientGroup("app", "Stable", "consumer", members),
        "instances": instances,
    } | more
    return ApplicationSnapshot("app", **values)


def kinds(found: Any) -> list[str]:
    letters = {
        "RestartInstance": "r",
        "SetGuarantee": "s",
        "AwaitInstance": "a",
        "ApplicationGate": "g",
    }
    return ["".join(letters.get(type(step).__name__, "F") for step in found.steps)]


@pytest.mark.parametrize(
    ("seen", "wish", "expected"),
    [
        (snapshot(PER_PARTITION, PER_PARTITION), UP, "gsragsragF"),
        (snapshot(PER_PARTITION, PER_PARTITION, protocols=(6, 6)), UP, "gragragsragsragF"),
        (snapshot(PER_PARTITION, PER_PARTITION, protocols=(6, 11)), UP, "gragragsragsragF"),
        (snapshot(V2, PER_PARTITION), UP, "gsragF"),
        (snapshot(V2, V2), UP, ""),
        (snapshot(V2, V2, ids=(TransactionalId("app-0_1"),)), UP, ""),
        (snapshot(V2, V2, ids=(TransactionalId("app-0_1", open=True),)), UP, "gF"),
        (snapshot(None, None), UP, "gsragsragF"),
        (snapshot(V2, V2), DOWN, "gsragsragF"),
        (snapshot(PER_PARTITION), DOWN, ""),
        (snapshot(V2), ApplicationRequest(ProducerModel.PER_PARTITION, older=True), "gsragFrag"),
        (
            snapshot(PER_PARTITION),
            ApplicationRequest(ProducerModel.PER_PARTITION, older=True),
            "gFrag",
        ),
        (
            snapshot(PER_PARTITION, protocols=(6,)),
            ApplicationRequest(ProducerModel.PER_PARTITION, older=True),
            "",
        ),
    ],
)
def test_the_rolls_follow_from_what_is_proven(
    seen: ApplicationSnapshot, wish: ApplicationRequest, expected: str
) -> None:
    assert kinds(plan(seen, wish)) == [expected]


@pytest.mark.parametrize(
    ("protocols", "value", "needed"),
    [((11,), V2, 10), ((8,), BETA, 7), ((9,), BETA, 7), ((6,), V2, 10)],
)
def test_the_value_is_named_as_its_release_knows_it(
    protocols: tuple[int, ...], value: str, needed: int
) -> None:
    found = plan(snapshot(PER_PARTITION, protocols=protocols), UP)
    assert [step.value for step in found.steps if isinstance(step, SetGuarantee)] == [value]
    assert {step.protocol for step in found.steps if isinstance(step, AwaitInstance)} == {needed}


@pytest.mark.parametrize(
    ("seen", "wish", "reason"),
    [
        (snapshot("at_least_once"), UP, "is not exactly-once"),
        (
            snapshot(PER_PARTITION, group=ClientGroup("app", "Dead", "")),
            UP,
            "start the application first",
        ),
        (
            snapshot(PER_PARTITION, PER_PARTITION, protocols=(11,)),
            UP,
            "1 processes are in the group and 2 instances",
        ),
        (snapshot(PER_PARTITION, protocols=(0,)), UP, "is a Kafka Streams instance"),
        (
            snapshot(PER_PARTITION, old_brokers=("broker 1 has the API versions of 2.4",)),
            UP,
            "brokers must be 2.5 or newer",
        ),
        (snapshot(PER_PARTITION, unseen=("broker 2",)), UP, "could not read broker 2"),
        (snapshot(V2, PER_PARTITION, protocols=(11, 6)), UP, "is group-aware already while"),
    ],
)
def test_what_stands_against_it_is_said(
    seen: ApplicationSnapshot, wish: ApplicationRequest, reason: str
) -> None:
    with pytest.raises(Refused) as raised:
        plan(seen, wish)
    assert reason in str(raised.value.why)


def test_a_wish_that_makes_no_sense_is_never_taken_for_one_that_is_fulfilled() -> None:
    with pytest.raises(BadInput, match=r"exactly_once is not a group-aware processing\.guarantee"):
        plan(snapshot(PER_PARTITION), ApplicationRequest(ProducerModel.GROUP_AWARE, "exactly_once"))
    with pytest.raises(Refused, match="No instance of app is named"):
        plan(snapshot(), UP)


def test_a_property_that_was_changed_and_an_instance_that_was_not_restarted_are_told_apart() -> (
    None
):
    member = GroupMember("m", "c", "h", StreamsMember(PROCESSES[0], 11, "x:0"), 1)
    group = ClientGroup("app", "Stable", "consumer", (member,))
    used = TransactionalId(f"app-{PROCESSES[0]}-1")
    assert kinds(plan(snapshot(V2, group=group), UP)) == ["gsragF"]
    assert kinds(plan(snapshot(V2, group=group, ids=(used,)), UP)) == [""]


@given(
    st.lists(st.sampled_from([PER_PARTITION, V2, BETA]), min_size=1, max_size=5),
    st.lists(st.sampled_from([5, 6, 7, 9, 10, 11]), min_size=5, max_size=5),
)
def test_no_property_is_touched_before_every_instance_is_group_aware(
    told: list[str], versions: list[int]
) -> None:
    seen = snapshot(*told, protocols=tuple(versions[: len(told)]))
    try:
        found = plan(seen, UP)
    except Refused:
        return
    aware = {f"x:{n}" for n, version in enumerate(versions[: len(told)]) if version >= 7}
    for step in found.steps:
        if isinstance(step, SetGuarantee):
            assert aware == {instance.address for instance in seen.instances}
        if isinstance(step, AwaitInstance) and step.protocol >= 7:
            aware.add(step.subject)
    assert {s.subject for s in found.steps if isinstance(s, SetGuarantee)} >= {
        i.address for i in seen.instances if i.configured == PER_PARTITION
    }

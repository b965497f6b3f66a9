"""The way back of runs that changed connectors or a stream application, and no worker; which run is
resumed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import Journal, Run, RunState, StepEvent
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.streams_eos import ProducerModel
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.operations.streams_upgrade.steps import ApplicationGate, SetGuarantee
from connectctl.ops.operations.tasks_max.remedies import Reconfigure
from connectctl.ops.operations.upgrade import runs
from connectctl.ops.operations.upgrade.request import UpgradeRequest
from connectctl.ops.operations.upgrade.runs import LoadedRun
from connectctl.ops.operations.upgrade.steps import FirstGate, IncludedStep
from fakes.plans import loaded, upgrade_plan

HERE = ("cluster", "connect")


def _loaded(*steps: Step[Any], marks: tuple[StepEvent, ...] = ()) -> LoadedRun:
    run = Run("r", "upgrade", "cluster", "connect", ("a",), RunState.FAILED, "", None, marks)
    return loaded(run, *steps, migration="a")


def test_what_changed_no_worker_has_its_own_way_back() -> None:
    assert runs.has_own_rollback(
        _loaded(FirstGate(), IncludedStep(SetTargetState("a", "stop", now="RUNNING"), "why"))
    )
    assert not runs.has_own_rollback(_loaded(FirstGate()))


def test_only_what_was_begun_is_reconfigured_back() -> None:
    first = Reconfigure("a", {"tasks.max": "2"}, {"tasks.max": "1"}, True)
    second = Reconfigure("b", {"tasks.max": "3"}, {"tasks.max": "1"}, True)
    assert runs.reconfigure_rollback(_loaded(first, second)) == ()
    (back,) = runs.reconfigure_rollback(
        _loaded(first, second, marks=(StepEvent(0, "begun", None, ""),))
    )
    assert back.describe() == "set tasks.max=1 on a"


def test_instances_go_back_to_the_one_model_that_all_had_the_last_one_first() -> None:
    gate = ApplicationGate("app", 3)
    found = runs.application_rollback(_loaded(gate), {"x:1": "exactly_once", "x:2": "exactly_once"})
    assert (found.to, found.only, found.members) == (ProducerModel.PER_PARTITION, ("x:2", "x:1"), 3)


@pytest.mark.parametrize("was", [{"x:1": None}, {"x:1": "exactly_once", "x:2": "exactly_once_v2"}])
def test_instances_of_which_it_is_not_known_what_they_were_are_left(
    was: dict[str, str | None],
) -> None:
    step = SetGuarantee("x:1", 1, "why", value="exactly_once_v2")
    with pytest.raises(Refused, match="the former values of the instances are unknown"):
        runs.application_rollback(_loaded(step), was)


# ----------------------------------------------------------------------------- which run is resumed


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def _begun(journal: Journal, operation: str = "upgrade", undoes: str | None = None) -> str:
    plan = upgrade_plan(request=UpgradeRequest("enabled"), undoes=undoes)
    run = journal.begin_plan(replace(plan, operation=operation), ["to enabled"])
    journal.mark(run.id, 0, "begun")
    return run.id


def test_a_run_that_has_not_ended_is_in_the_way_and_is_the_one_to_resume(journal: Journal) -> None:
    runs.refuse_unfinished(journal, HERE)
    with pytest.raises(Refused, match="no unfinished upgrade"):
        runs.pick(journal, HERE, None)
    run = _begun(journal)
    with pytest.raises(Refused, match=f"The run {run} .* has not ended"):
        runs.refuse_unfinished(journal, HERE)
    runs.refuse_unfinished(journal, ("cluster", "other"))
    assert runs.pick(journal, HERE, None).id == run


def test_a_run_that_ended_is_not_resumed_nor_one_of_another_cluster(journal: Journal) -> None:
    ended = _begun(journal)
    with pytest.raises(Refused, match="of the group connect"):
        runs.pick(journal, ("elsewhere", "connect"), ended)
    journal.end(ended, RunState.DONE)
    with pytest.raises(Refused, match="no unfinished upgrade") as refused:
        runs.pick(journal, HERE, None)
    assert f"connectctl runs undo {ended}" in (refused.value.next_step or "")


def test_a_run_that_is_being_rolled_back_is_not_resumed(journal: Journal) -> None:
    run = _begun(journal)
    back = _begun(journal, undoes=run)
    with pytest.raises(Refused, match=f"is being rolled back by the run {back}"):
        runs.refuse_rolled_back(journal, journal.get(run))
    runs.refuse_rolled_back(journal, journal.get(back))
    assert [runs.rollback_run(journal, journal.get(id_)) for id_ in (run, back)] == [
        journal.get(back)
    ] * 2

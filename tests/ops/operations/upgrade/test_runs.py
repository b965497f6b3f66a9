"""The way back of runs that changed connectors or a stream application, and no worker."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import Run, RunState, StepEvent
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.streams_eos import ProducerModel
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.operations.streams_upgrade.steps import ApplicationGate, SetGuarantee
from connectctl.ops.operations.tasks_max.remedies import Reconfigure
from connectctl.ops.operations.upgrade import runs
from connectctl.ops.operations.upgrade.context import GateSettings
from connectctl.ops.operations.upgrade.planning import UpgradeRequest
from connectctl.ops.operations.upgrade.runs import LoadedRun
from connectctl.ops.operations.upgrade.snapshot import Baseline
from connectctl.ops.operations.upgrade.steps import FirstGate, IncludedStep


def _loaded(*steps: Step[Any], marks: tuple[StepEvent, ...] = ()) -> LoadedRun:
    run = Run("r", "upgrade", "cluster", "connect", ("a",), RunState.FAILED, "", None, marks)
    return LoadedRun(run, steps, Baseline(), UpgradeRequest(None, "a"), GateSettings())


def test_what_changed_no_worker_has_its_own_way_back() -> None:
    assert runs.has_own_way_back(_loaded(FirstGate(), IncludedStep(SetTargetState("a", "stop", "RUNNING"), "why")))
    assert not runs.has_own_way_back(_loaded(FirstGate()))


def test_only_what_was_begun_is_reconfigured_back() -> None:
    first = Reconfigure("a", {"tasks.max": "2"}, {"tasks.max": "1"}, True)
    second = Reconfigure("b", {"tasks.max": "3"}, {"tasks.max": "1"}, True)
    assert runs.tasks_back(_loaded(first, second)) == ()
    (back,) = runs.tasks_back(_loaded(first, second, marks=(StepEvent(0, "begun", None, ""),)))
    assert back.describe() == "set tasks.max=1 on a"


def test_instances_go_back_to_the_one_model_that_all_had_the_last_one_first() -> None:
    gate = ApplicationGate("app", 3)
    found = runs.application_back(_loaded(gate), {"x:1": "exactly_once", "x:2": "exactly_once"})
    assert (found.to, found.only, found.members) == (ProducerModel.PER_PARTITION, ("x:2", "x:1"), 3)


@pytest.mark.parametrize("was", [{"x:1": None}, {"x:1": "exactly_once", "x:2": "exactly_once_v2"}])
def test_instances_of_which_it_is_not_known_what_they_were_are_left(was: dict[str, str | None]) -> None:
    step = SetGuarantee("x:1", 1, "why", "", "exactly_once_v2")
    with pytest.raises(Refused, match="the former values of the instances are unknown"):
        runs.application_back(_loaded(step), was)

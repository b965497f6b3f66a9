"""Steps and runs that were written down."""

from __future__ import annotations

from typing import Any

from connectctl.ops.core.journal import Run
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import Step, step_from_data, to_data
from connectctl.ops.operations.upgrade.context import GateSettings
from connectctl.ops.operations.upgrade.request import Conditions, UpgradeRequest
from connectctl.ops.operations.upgrade.runs import LoadedRun
from connectctl.ops.operations.upgrade.snapshot import Baseline
from connectctl.ops.registry import KINDS


def steps_from_data(data: list[Any]) -> tuple[Any, ...]:
    """The steps that ``step_to_data`` wrote as ``data``."""
    return tuple(step_from_data(step, KINDS) for step in data)


def upgrade_plan(*steps: Step[Any], request: UpgradeRequest, undoes: str | None = None) -> Plan:
    """The plan of an upgrade of a cluster without workers."""
    conditions = to_data(Conditions(Baseline(), GateSettings()))
    where = "upgrade", "cluster", steps
    return Plan(
        *where, group_id="connect", undoes=undoes, request=to_data(request), conditions=conditions
    )


def loaded(run: Run, *steps: Step[Any], migration: str) -> LoadedRun:
    """A run of ``migration`` with these steps."""
    return LoadedRun(run, upgrade_plan(*steps, request=UpgradeRequest(migration=migration)))

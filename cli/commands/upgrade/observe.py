"""What a migration is given on the command line, and its way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from connectctl.migrations.registry import named
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.upgrade.planning import RollingPlan, UpgradeRequest

if TYPE_CHECKING:
    from connectctl.cli.commands.upgrade.scene import Scene
    from connectctl.ops.operations.streams_upgrade.observe import ApplicationReader
    from connectctl.ops.operations.upgrade.runs import LoadedRun


def given_of(pairs: Sequence[str]) -> dict[str, str]:
    """What was given with ``--set NAME=VALUE``. Raises ``BadInput``."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise BadInput(f"--set {pair} is not NAME=VALUE")
        if name in found:
            raise BadInput(f"--set {name} is given twice")
        found[name] = value
    return found


def reader_for(scene: Scene, given: Mapping[str, str]) -> tuple[ApplicationReader, list[str]]:
    """What an application is looked at and changed with, and its instances as the context has them."""
    return scene.application(given["application"].strip())


def rollback_request(scene: Scene, restored: LoadedRun) -> RollingPlan:
    """The plan that takes a run back which changed no worker, from where it stands."""
    name, given = restored.request.name or "", dict(restored.request.given)
    steps, remarks = named(name).roll_back(scene, restored)
    request = UpgradeRequest(None, name, aborts=restored.run.id, given=given)
    return RollingPlan(scene.snapshot, request, steps, remarks=remarks)

"""The request of ``upgrade plan`` and ``upgrade apply``, and the file of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.cli.output.json_lines import json_lines
from connectctl.migrations.registry import named
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.operation import Planned
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.request import UpgradeRequest


def requested(
    to: str | None,
    migration: str | None,
    pairs: Sequence[str] | None,
    without: Sequence[str] | None,
    plan: Path | None = None,
) -> UpgradeRequest:
    """Return the request of the options. Raises ``BadInput`` if it is given twice, or beside a
    ``plan``.
    """
    given = [
        name
        for name, value in (("a plan", plan), ("--to", to), ("--migration", migration))
        if value
    ]
    if len(given) > 1:
        raise BadInput(f"Give one of {' and '.join(given)}, not both")
    if without and plan is not None:
        raise BadInput(
            "--without cannot be combined with a plan",
            next_step="The plan already names the excluded workers.",
        )
    if pairs and migration is None:
        raise BadInput("--set requires --migration")
    name = named(migration).name if migration is not None else None
    mode = str(to or SourceSupport.ENABLED) if name is None else None
    return UpgradeRequest(mode, name, parse_parameters(pairs or ()), tuple(without or ()))


def parse_parameters(pairs: Sequence[str]) -> dict[str, str]:
    """Parse the parameters of ``--set NAME=VALUE``. Raises ``BadInput``."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise BadInput(f"--set {pair} is not NAME=VALUE")
        if name in found:
            raise BadInput(f"--set {name} is given twice")
        found[name] = value
    return found


def write_plan(planned: Planned, path: Path) -> None:
    """Write the plan to a file for ``upgrade apply``. Raises ``BadInput`` if it cannot be
    written.
    """
    data = {
        "apiVersion": terminal.API_VERSION,
        "kind": "Plan",
        **apply.plan_data(planned.plan, planned.findings),
    }
    try:
        path.write_text("".join(json_lines(data)))
    except OSError as e:
        raise BadInput(f"The plan cannot be written to {path}", why=e.strerror) from e

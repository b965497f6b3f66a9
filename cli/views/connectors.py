"""The views of connectors, in ``cluster show`` and ``connectors``: rows for users, JSON members for
scripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from connectctl.cli.output.terminal import Block
from connectctl.ops.config.masking import masked
from connectctl.ops.connect.connector import Status, cause_of

if TYPE_CHECKING:
    from connectctl.ops.operations.connectors.observe import ConnectorHealth

LONGEST_CAUSE = 90
NONE = "There are no connectors."
UNSEEN = "The connectors could not be read."


def block(found: Sequence[ConnectorHealth], wide: bool, *, seen: bool = True) -> Block:
    """Return the table of connectors. ``wide`` adds classes, target states and full causes.

    Without ``seen``, neither the workers nor the topics could be read.
    """
    columns = ["CONNECTOR", "TYPE", "STATE", "TASKS", "WORKERS"] + (
        ["CLASS", "TARGET", "DETAIL"] if wide else []
    )
    causes = any(health.verdict.cause for health in found)
    rows = [
        _row(health, wide) + ([_cause(health.verdict.cause, wide)] if causes else [])
        for health in found
    ]
    empty = NONE if seen else UNSEEN
    return Block(
        columns + (["CAUSE"] if causes else []),
        rows,
        empty,
        () if wide else ("WORKERS", "TYPE", "TASKS"),
    )


def _row(health: ConnectorHealth, wide: bool) -> list[str]:
    connector = health.connector
    row = [
        health.name,
        connector.type or "?",
        health.verdict.state.value,
        f"{health.verdict.running}/{len(connector.tasks)}",
        ",".join(health.workers) or "-",
    ]
    more = [
        connector.config.get("connector.class", "?"),
        connector.target_state or "-",
        health.verdict.detail or "-",
    ]
    return row + (more if wide else [])


def _cause(cause: str | None, wide: bool) -> str:
    if cause is None or wide:
        return cause or ""
    # The package of a Java exception does not help users; its name and message do.
    name, colon, message = cause.partition(":")
    short = name.rpartition(".")[2] + colon + message
    return short if len(short) <= LONGEST_CAUSE else short[: LONGEST_CAUSE - 1] + "…"


def as_json(health: ConnectorHealth) -> dict[str, Any]:
    connector = health.connector
    return {
        "name": health.name,
        "type": connector.type,
        "class": connector.config.get("connector.class"),
        "state": health.verdict.state.value,
        "detail": health.verdict.detail or None,
        "cause": health.verdict.cause,
        "targetState": connector.target_state,
        "connector": status_json(connector.status),
        "tasks": [{"id": n} | status_json(status) for n, status in connector.tasks.items()],
    }


def status_json(status: Status | None, *, trace: bool = False) -> dict[str, Any]:
    """Return the status of a connector or task; all None if there is none."""
    if status is None:
        return {"state": None, "worker": None, "cause": None} | ({"trace": None} if trace else {})
    data = {"state": status.state, "worker": status.worker, "cause": cause_of(status)}
    return data | ({"trace": status.trace and masked(status.trace)} if trace else {})

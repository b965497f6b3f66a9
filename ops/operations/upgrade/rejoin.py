"""Waits for a restarted worker: a new process of it in the group, responding, in the expected
mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectctl.ops.connect.release import EXACTLY_ONCE, older
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.operations.rolling import waiting
from connectctl.ops.operations.rolling.waiting import Missing
from connectctl.ops.operations.upgrade.run_state import (
    JOINED,
    RESTARTED,
    RESTARTING,
    WRONG_MODE,
    WorkerProgress,
)

if TYPE_CHECKING:
    from connectctl.ops.operations.upgrade.context import UpgradeContext
    from connectctl.ops.operations.upgrade.snapshot import RollingWorker

SETTLING = 30.0
"""Seconds within which a worker that has rejoined must show its mode."""


def wait_for_start(context: UpgradeContext, workers: Sequence[str], *, by_hand: bool) -> bool:
    """Whether this run has restarted each of ``workers``; waits for those that are still starting.

    An earlier attempt may have been killed during the restart or just after it. A worker outside
    the group is then starting, and one whose restart command has returned is stopping or starting:
    another restart would only delay it. It has the time of a gate, from the restart command.
    """

    def probe() -> bool | Missing:
        members, notes = context.members(), context.notes.workers
        left = [
            w
            for w in workers
            if (entry := notes.get(w)) is None or not entry.restarted(members.get(w))
        ]
        if not left:
            return True
        if not all(
            _starting(context, notes.get(worker), members.get(worker), by_hand) for worker in left
        ):
            return False
        return Missing(f"{' and '.join(left)} was being restarted when this run was interrupted")

    return waiting.wait_for(context, probe) is True


def _starting(
    context: UpgradeContext, entry: WorkerProgress | None, member: str | None, by_hand: bool
) -> bool:
    """Whether a worker that is not back may be starting: its restart was requested less than the
    gate timeout ago.
    """
    if entry is None or entry.at is None or entry.state not in (RESTARTING, RESTARTED):
        return False
    under_way = member is None or (entry.state == RESTARTED and not by_hand)
    return under_way and 0 <= context.wall() - entry.at < context.patience.timeout


def wait_for(context: UpgradeContext, worker: str, value: str, *, by_hand: bool) -> str:
    """Wait until ``worker`` rejoins with ``value``. Raises ``TimedOut``, or ``ConnectctlError`` for
    a wrong mode.
    """
    before = context.notes.workers[worker].before
    patience = context.patience.by_hand if by_hand else context.patience.timeout
    began = context.now()
    members: dict[str, str] | None = None

    def probe() -> str | Missing:
        nonlocal members
        try:
            members = context.members()
            missing, found = _missing(context, worker, members.get(worker), before)
        except ConnectctlError as e:
            return Missing(f"cannot describe the worker group: {e}")
        if missing is not None or found is None:
            return Missing(missing or "")
        if found.mode.fits(value):
            leads = context.notes.workers[worker].leads
            context.write(worker, WorkerProgress(value, JOINED, before, members[worker], leads))
            context.remember_leader()
            return f"back after {context.now() - began:.1f} s"
        wrong = f"{worker} is {found.mode}, and should be {value}"
        late = context.now() - began >= min(SETTLING, patience)
        if by_hand or (found.mode.may_change and not late):
            return Missing(wrong)
        context.write(worker, WorkerProgress(value, WRONG_MODE, members[worker]))
        raise _wrong_mode(worker, wrong)

    found = waiting.wait_for(context, probe, patience)
    if isinstance(found, Missing):
        raise _timed_out(worker, patience, found.reason, members)
    return found


def _missing(
    context: UpgradeContext, worker: str, member: str | None, before: str | None
) -> tuple[str | None, RollingWorker | None]:
    """Return why the worker has not rejoined yet, or else the worker with its mode."""
    if member is None:
        return f"{worker} is not in the group", None
    if member == before:
        return f"{worker} has not been restarted (same member id)", None
    found = next(iter(context.workers(only=worker)), None)
    if found is None or found.problem:
        return f"{worker} does not respond: {found.problem if found else 'it left the group'}", None
    if found.support is Support.UNKNOWN and not older(found.version, EXACTLY_ONCE):
        return f"{worker} does not report whether exactly-once is enabled", None
    return None, found


def _wrong_mode(worker: str, why: str) -> ConnectctlError:
    return ConnectctlError(
        f"{worker} restarted in a different mode than planned",
        why=why,
        next_step="Check its startup properties: the property may also be set elsewhere, or "
        "another tool wrote the file. A resumed run sets it and restarts the worker "
        "again.",
        code="wrong-mode",
    )


def _timed_out(
    worker: str, patience: float, missing: str | None, members: dict[str, str] | None
) -> TimedOut:
    others = "" if members is None else f"; current members: {', '.join(sorted(members)) or 'none'}"
    return TimedOut(
        f"Timed out after {patience:g} s waiting for {worker} to rejoin the group",
        why=f"{missing}{others}",
        next_step="Check the worker's log and start it.",
        code="not-back",
    )

"""Waits for restarted workers: a new process in the group, responding, in the expected mode; then
verifies the modes of all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from connectctl.ops.connect.health import unhealthy_workers
from connectctl.ops.connect.release import EXACTLY_ONCE, older
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import CONTRADICTED, ConnectctlError, TimedOut
from connectctl.ops.kafka.group_state import instability
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


def check_rejoined(context: UpgradeContext) -> None:
    """Verify that every worker that this run has changed and restarted still is in its mode."""
    joined = {
        worker: entry.value
        for worker, entry in context.notes.workers.items()
        if entry.state == JOINED
    }
    check_modes(context, joined)


def check_modes(
    context: UpgradeContext, expected: Mapping[str, str], of_others: Collection[str] | None = None
) -> tuple[RollingWorker, ...]:
    """Return the workers in the group, if each of ``expected`` is in the group, responds and is in
    its mode.

    Waits up to ``SETTLING`` seconds: a new leader initializes its transactional id shortly after it
    has become leader. ``of_others``: the modes that other workers may have, None for any. Raises
    ``ConnectctlError``.
    """
    found: tuple[RollingWorker, ...] = ()

    def probe() -> str | Missing:
        nonlocal found
        context.remember_leader()
        state, found = context.reader.group().state, context.workers()
        reasons = [why] if (why := instability(state)) else []
        reasons += _reasons(context, found, expected, of_others)
        wrong = _wrong(found, expected, of_others)
        final = any(
            not worker.mode.may_change and worker.support is not Support.UNKNOWN for worker in wrong
        )
        return Missing("; ".join(reasons)) if reasons and not final else ""

    waiting.wait_for(context, probe, min(context.patience.timeout, SETTLING))
    if reasons := _reasons(context, found, expected, of_others):
        raise _failure(context, _wrong(found, expected, of_others), reasons)
    return found


def _reasons(
    context: UpgradeContext,
    found: Collection[RollingWorker],
    expected: Mapping[str, str],
    of_others: Collection[str] | None,
) -> list[str]:
    problems = {worker.address: worker.problem for worker in found if worker.problem}
    serving = [worker for worker in context.expected() if worker in expected]
    down = unhealthy_workers(serving, [worker.address for worker in found], problems)
    return [
        *map(str, down),
        *(f"{w.address} is {w.mode}" for w in _wrong(found, expected, of_others)),
    ]


def _wrong(
    found: Collection[RollingWorker], expected: Mapping[str, str], of_others: Collection[str] | None
) -> list[RollingWorker]:
    def fits(worker: RollingWorker) -> bool:
        wanted = (expected[worker.address],) if worker.address in expected else of_others
        return wanted is None or any(worker.mode.fits(value) for value in wanted)

    return [worker for worker in found if worker.problem is None and not fits(worker)]


def _failure(
    context: UpgradeContext, wrong: Collection[RollingWorker], reasons: Collection[str]
) -> ConnectctlError:
    """Return the error, and record the workers that a resumed run has to change and restart
    again.
    """
    phase = max((int(turn.partition(".")[0]) for turn in context.notes.turns), default=0)
    taken = {
        w
        for turn, workers in context.notes.turns.items()
        if turn.startswith(f"{phase}.")
        for w in workers
    }
    ours = [worker for worker in wrong if worker.address in context.notes.workers]
    if any(worker.address not in taken for worker in ours):
        # An earlier roll of this run set them: it cannot be repeated after the next one has begun.
        hint = (
            "Roll back: connectctl upgrade abort; or end the run as it is: connectctl upgrade "
            "abort --leave."
        )
        return ConnectctlError(
            "Workers are not in the expected mode",
            why="; ".join(reasons),
            next_step=hint,
            code=CONTRADICTED,
        )
    for worker in ours:
        value = context.notes.workers[worker.address].value
        context.write(worker.address, WorkerProgress(value, WRONG_MODE, worker.member))
    again = " and ".join(worker.address for worker in ours)
    hint = (
        f"Check what else writes the properties. A resumed run changes and restarts {again} again."
        if ours
        else ""
    )
    return ConnectctlError(
        "Workers are not in the expected mode",
        why="; ".join(reasons),
        next_step=hint or "See connectctl upgrade status.",
        code="wrong-mode",
    )

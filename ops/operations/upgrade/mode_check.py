"""Verify that workers have their modes, by the same judgement as ``upgrade status``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from connectctl.ops.connect.health import unhealthy_workers
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import CONTRADICTED, ConnectctlError
from connectctl.ops.kafka.group_state import instability
from connectctl.ops.operations.rolling.waiting import Missing, wait_for
from connectctl.ops.operations.upgrade.rejoin import SETTLING
from connectctl.ops.operations.upgrade.run_state import JOINED, WRONG_MODE, WorkerProgress

if TYPE_CHECKING:
    from connectctl.ops.operations.upgrade.context import UpgradeContext
    from connectctl.ops.operations.upgrade.snapshot import RollingWorker


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

    wait_for(context, probe, min(context.patience.timeout, SETTLING))
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

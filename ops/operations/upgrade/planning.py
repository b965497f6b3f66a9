"""Plan the steps from the current modes to the requested ones. Pure; raises ``Refused`` with all
reasons.

Source: KIP-618, Rolling upgrade(s) and Downgrade. A phase sets one value on some workers, one after
the other; the next phase begins when every worker is observed in the mode that this one sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connectctl.ops.core.errors import NotAuthorized, Refused
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.plan import Noop
from connectctl.ops.kafka.group_state import has_members, is_settled
from connectctl.ops.kafka.visibility import grant
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade import plan_caveats
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.restart_order import Group, restart_order
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot, RollingWorker
from connectctl.ops.operations.upgrade.steps import (
    ChangeProperty,
    CheckModes,
    FirstGate,
    Gate,
    IncludedStep,
    Rejoin,
    ReplaceBinaries,
    RestartFailed,
    RestartWorker,
    mode_label,
)

DISABLED, PREPARING, ENABLED, OLD = (
    SourceSupport.DISABLED,
    SourceSupport.PREPARING,
    SourceSupport.ENABLED,
    SourceSupport.NOT_SUPPORTED,
)
WHY = {
    PREPARING: "KIP-618, Rolling upgrade(s): no worker may be enabled before every leader fences "
    "and every worker leaves the config topic to it",
    ENABLED: "KIP-618, Rolling upgrade(s): the second roll, when every worker is at least "
    "preparing",
    DISABLED: "KIP-618, Soft downgrade: its tasks continue with at-least-once delivery",
}
WHY_BACK = (
    "also on the way back, no worker may be disabled while another one still asks the "
    "leader to fence"
)
WHY_OLD = "KIP-618, Hard downgrade: an older release does not know the property"


@dataclass(frozen=True)
class RollRequest:
    """The requested mode; ``to`` is None if the property is not changed. ``targets`` are
    exceptions, by worker.

    ``straight``: from enabled to disabled in one roll, as in KIP-618's soft downgrade.
    ``binaries``: an older release replaces the current one, after that or, with ``to`` None,
    immediately. ``only``: no other workers are changed. ``order``: workers to restart first if
    possible. ``back``: it rolls a run back, whatever is wrong with others.
    """

    to: SourceSupport | None
    straight: bool = False
    binaries: bool = False
    targets: Mapping[str, SourceSupport] = field(default_factory=dict)
    only: tuple[str, ...] | None = None
    order: tuple[str, ...] = ()
    back: bool = False

    def target(self, worker: RollingWorker) -> SourceSupport:
        """The mode that is requested for the worker."""
        return self.targets.get(worker.address, self.to or worker.value)


def by_hand(steps: Sequence[Any]) -> tuple[str, ...]:
    """Return the workers or instances to be restarted by hand, in the order of ``steps``."""
    found = [step for step in steps if getattr(step, "by_hand", False)]
    return tuple(
        dict.fromkeys(w for step in found for w in getattr(step, "workers", (step.subject,)))
    )


def plan(
    snapshot: RollingSnapshot,
    request: RollRequest,
    findings: Sequence[Finding] = (),
    before: Sequence[Any] = (),
) -> PlannedSteps:
    """Plan ``request``. ``before`` are steps of other operations that have to come first.

    Raises ``NotAuthorized`` if all errors are missing rights, and otherwise ``Refused`` with all
    reasons: errors among ``findings``, contradictions about connectors, and obstacles to changing
    these workers.
    """
    findings = tuple(dict.fromkeys((*snapshot.findings, *findings)))
    phases = list(_phases(snapshot, request))
    pending = any(workers for workers, _ in phases)
    reasons = [*_absent(snapshot, request)]
    errors = [*_errors(findings)] if pending else []
    if pending:
        reasons += _reasons(snapshot, request, phases)
    if errors and not reasons:
        _refuse_blind(errors)
    reasons += (f"{finding.id} {finding.reason}" for finding in errors)
    if reasons:
        lost = [w.address for w in snapshot.workers if w.lost] if not request.back else []
        hint = (
            f"Start the workers, or plan without them: {' '.join(f'--without {w}' for w in lost)}"
            if lost
            else None
        )
        if hint is None and pending and not request.back:
            hint = next((finding.next_step for finding in _contradictions(snapshot)), None)
        raise Refused(
            "Upgrade refused", why="; ".join(dict.fromkeys(reasons)), next_step=hint, code="refused"
        )
    steps = tuple(_steps(snapshot, request, phases, before)) if pending else ()
    warnings = tuple(plan_caveats.lines(snapshot, steps))
    return PlannedSteps(steps, warnings, findings, () if pending else (_unchanged(snapshot),))


def _unchanged(snapshot: RollingSnapshot) -> Noop:
    modes = sorted({mode_label(worker.value) for worker in snapshot.workers})
    return Noop(
        snapshot.group_id, f"every worker ({len(snapshot.workers)}) is {' or '.join(modes)}"
    )


Phase = tuple[list["RollingWorker"], SourceSupport]


def _phases(snapshot: RollingSnapshot, request: RollRequest) -> Iterator[Phase]:
    """Yield the rolls, each with its workers and the value to set. Workers that have the value are
    left out.
    """
    selected = [w for w in snapshot.workers if request.only is None or w.address in request.only]
    if request.to is not None:
        to_preparing = [
            w for w in selected if not request.straight and passes_preparing(w, request.target(w))
        ]
        yield to_preparing, PREPARING
        last = [
            w
            for w in selected
            if request.target(w) is not PREPARING and not _has_reached(w, request.target(w))
        ]
        for value in (ENABLED, DISABLED):
            yield [w for w in last if request.target(w) is value], value
    if request.binaries:
        yield [w for w in selected if w.value is not OLD], OLD


def passes_preparing(worker: RollingWorker, target: SourceSupport) -> bool:
    """Whether a worker must be set to ``preparing``, as an intermediate or final mode."""
    if worker.value is PREPARING:
        return False
    if target is PREPARING:
        return True
    if target is ENABLED:
        return worker.value is not ENABLED
    return worker.maybe_enabled


def _has_reached(worker: RollingWorker, target: SourceSupport) -> bool:
    return worker.value is target or (target is DISABLED and worker.value is OLD)


# -------------------------------------------------------------------------------- reasons to refuse


def _absent(snapshot: RollingSnapshot, request: RollRequest) -> Iterator[str]:
    """Missing workers refuse every plan: workers that are not observed may need the change."""
    if not snapshot.workers or not has_members(snapshot.state):
        yield f"no worker is in the group {snapshot.group_id}: start the workers first"
    elif not request.back:
        for worker in snapshot.workers:
            if worker.lost:
                yield f"{worker.address} was in the group in run {worker.lost} and is not in it now"


def _reasons(
    snapshot: RollingSnapshot, request: RollRequest, phases: Sequence[Phase]
) -> Iterator[str]:
    if not is_settled(snapshot.state):
        yield f"the group {snapshot.group_id} is {snapshot.state}: wait until the rebalance is over"
    touched = {w.address: w for workers, value in phases for w in workers if value is not OLD}
    yield from _too_old(touched.values(), request)
    yield from (
        f"{w.address} cannot be changed: {w.obstacle}" for w in touched.values() if w.obstacle
    )
    urls = [w.url for w in snapshot.workers if w.url]
    duplicates = sorted({url for url in urls if urls.count(url) > 1})
    if duplicates:
        yield f"several workers advertise {', '.join(duplicates)}, and cannot be distinguished"
    if not request.back:
        yield from (f"{finding.subject}: {finding.reason}" for finding in _contradictions(snapshot))


def _contradictions(snapshot: RollingSnapshot) -> list[Finding]:
    """The findings that workers and config topic differ. An abort is planned all the same: workers
    may be away.
    """
    return [finding for finding in snapshot.findings if finding.id == "SIGHT004"]


def _too_old(workers: Any, request: RollRequest) -> Iterator[str]:
    old = [w for w in workers if w.value is OLD and request.target(w) in (PREPARING, ENABLED)]
    text = ", ".join(f"{w.address} runs {w.version or 'an unknown release'}" for w in old)
    if text:
        yield (
            f"{text}: exactly-once source support came with 3.3, so upgrade Connect on every "
            "worker first"
        )


REPAIRED_BY_UPGRADE = ("CLUSTER004", "WORKER004")
"""Not refused: a worker that does not respond is restarted first, and a leader that is not
preparing becomes so.
"""


def _errors(findings: Sequence[Finding]) -> Iterator[Finding]:
    for finding in findings:
        if finding.severity is Severity.ERROR and finding.id not in REPAIRED_BY_UPGRADE:
            yield finding


def _refuse_blind(errors: Sequence[Finding]) -> None:
    """Raise ``NotAuthorized`` if all errors are about what this principal may not see."""
    rights = {each.subject: each.denied for each in errors if each.denied is not None}
    right = next(iter(rights.values()), None)
    if right is not None and all(each.subject in rights for each in errors):
        why = "; ".join(dict.fromkeys(f"{each.id} {each.statement}" for each in errors))
        raise NotAuthorized("Upgrade refused", why=why, next_step=grant(right), right=right)


# ---------------------------------------------------------------------------------------- the steps


def _steps(
    snapshot: RollingSnapshot, request: RollRequest, phases: Sequence[Phase], before: Sequence[Any]
) -> Iterator[Any]:
    yield FirstGate(forgives_fencing=_forgives_fencing(request))
    yield from (
        IncludedStep(step, "KIP-618, Offsets accuracy: older releases read the global topic only")
        for step in before
    )
    order: Sequence[str] = request.order
    busy = [(number, workers, value) for number, (workers, value) in enumerate(phases) if workers]
    touched = {worker.address for _, workers, _ in busy for worker in workers}
    # A worker that is down and not restarted here has no mode to verify at the end.
    seen = [
        worker
        for worker in snapshot.workers
        if worker.member is not None or worker.address in touched
    ]
    modes = {worker.address: str(worker.value) for worker in seen}
    restarted: set[str] = set()
    for number, workers, value in busy:
        # A restarted leader no longer leads: in the next roll it is one of the first workers.
        groups = restart_order(
            [replace(w, leader=w.leader and w.address not in restarted) for w in workers], order
        )
        for slot, group in enumerate(groups):
            yield from _turn(snapshot, request, number, slot, group, value, modes)
        order = [worker for group in reversed(groups) for worker in group]
        restarted |= {worker.address for worker in workers}
        modes |= {worker.address: str(value) for worker in workers}
        last = number == busy[-1][0]
        why = (
            "this is the end of the roll"
            if last
            else "the next roll begins only when every worker is there"
        )
        yield CheckModes(dict(modes), reason=why)
    if request.binaries:
        yield RestartFailed()


def _turn(
    snapshot: RollingSnapshot,
    request: RollRequest,
    phase: int,
    slot: int,
    group: Group,
    value: SourceSupport,
    modes: Mapping[str, str],
) -> Iterator[Any]:
    members = [worker for worker in snapshot.workers if worker.address in group]
    subject = members[0].restart_group or group[0]
    untouched = all(modes[w.address] == w.value for w in members)
    now = ", ".join(dict.fromkeys(str(w.value) for w in members)) if untouched else ""

    def new_step(kind: Any, reason: str, **more: Any) -> Any:
        return kind(subject, phase, slot, group, str(value), reason, **more)

    if value is OLD:
        yield new_step(ReplaceBinaries, WHY_OLD, now=now, by_hand=True)
        yield new_step(Rejoin, "it has to be back before the next one is stopped", by_hand=True)
    else:
        back = value is PREPARING and all(request.target(w) is DISABLED for w in members)
        manual = any(w.by_hand for w in members)
        yield new_step(ChangeProperty, WHY_BACK if back else WHY[value], now=now, by_hand=manual)
        yield new_step(RestartWorker, _why_restarted(members, value), by_hand=manual)
        yield new_step(
            Rejoin,
            "it has to be back, in its new mode, before the next one is restarted",
            by_hand=manual,
        )
    why = "only one worker at a time may be unavailable"
    yield new_step(Gate, why, forgives_fencing=_forgives_fencing(request))


def _forgives_fencing(request: RollRequest) -> bool:
    """Whether tasks that cannot reach the fencing endpoint are left until the end (KIP-618,
    Single-step downgrade).
    """
    return request.binaries and request.to is None


def _why_restarted(workers: Sequence[RollingWorker], value: SourceSupport) -> str:
    description = workers[0].change_descriptions.get(value)
    if workers[0].restart_group:
        return (
            f"{workers[0].restart_group} restarts its workers itself, in an order of its own: "
            f"{description}"
        )
    return (
        f"a worker reads its properties when it starts: {description}"
        if description
        else "a worker reads its properties when it starts"
    )

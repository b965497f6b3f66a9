"""The restart order: broken workers first, the leader last; decided again during execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectctl.ops.operations.upgrade.snapshot import RollingWorker

Group = tuple[str, ...]
"""Workers that are restarted together; nearly always one."""


def restart_order(
    workers: Sequence[RollingWorker], wanted_first: Sequence[str] = ()
) -> tuple[Group, ...]:
    """The workers in restart order. ``wanted_first`` go first where possible.

    A broken worker is first, also if it leads: it serves no requests, so its restart interrupts
    nothing, and the roll begins with the likely problem. Else the leader is last: leadership moves
    only when the leader leaves, so it moves once, to a worker that is already changed.
    """
    positions = {worker: number for number, worker in enumerate(wanted_first)}

    def rank(worker: RollingWorker) -> tuple[bool, bool, int, str]:
        return (
            worker.leader and not worker.broken,
            not worker.broken,
            positions.get(worker.address, len(positions)),
            worker.address,
        )

    groups: dict[str, list[str]] = {}
    for worker in sorted(workers, key=rank):
        groups.setdefault(worker.restart_group or worker.address, []).append(worker.address)
    leading = {
        worker.restart_group or worker.address
        for worker in workers
        if worker.leader and not worker.broken
    }
    ordered = [name for name in groups if name not in leading] + [
        name for name in groups if name in leading
    ]
    return tuple(tuple(groups[name]) for name in ordered)


def next_workers(
    planned: Sequence[Group],
    taken: Mapping[int, Group],
    slot: int,
    leader: str | None,
    broken: Sequence[str] = (),
) -> Group:
    """The workers to restart at ``slot`` of a phase: the planned group, or another if it has the
    current ``leader``.

    ``taken`` are the earlier decisions of the phase, which do not change. ``planned`` are the
    groups of all slots. A leader among the ``broken`` workers is restarted as planned.
    """
    if slot in taken:
        return taken[slot]
    left = [group for group in planned if group not in taken.values()]
    wanted = planned[slot] if planned[slot] in left else left[0]
    if leader in wanted and leader not in broken:
        return next((group for group in left if leader not in group), wanted)
    return wanted

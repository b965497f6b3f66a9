"""Output of ``upgrade status``, as text and JSON."""

from __future__ import annotations

from typing import Any

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Block
from connectctl.migrations.access import UpgradeAccess
from connectctl.ops.connect.health import UnhealthyComponent
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.journal import Run
from connectctl.ops.operations.upgrade.runs import LoadedRun, contradictions
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot, RollingWorker


def workers_block(snapshot: RollingSnapshot) -> Block:
    """Return the table of workers, with their modes and the confidence of each."""
    columns = ["WORKER", "LEADER", "VERSION", "MODE", "CONFIDENCE", "SOURCE", "PROBLEM"]
    return Block(
        columns,
        [_row(worker) for worker in snapshot.workers],
        "No workers in the group.",
        ("VERSION",),
    )


def _row(worker: RollingWorker) -> list[str]:
    return [
        worker.address,
        "leader" if worker.leader else "",
        worker.version or "-",
        str(worker.value),
        worker.mode.how,
        "-" if worker.mode.source == worker.problem else worker.mode.source,
        worker.problem or worker.obstacle or "",
    ]


def group_block(snapshot: RollingSnapshot) -> Block:
    """Return the table of the group, with the driver of its workers."""
    delay = f"{snapshot.delay_ms / 1000:g} s" if snapshot.delay_ms else "-"
    columns = ["GROUP", "STATE", "WORKERS", "REBALANCE-DELAY", "UNHEALTHY", "DRIVER"]
    inside = sum(worker.member is not None for worker in snapshot.workers)
    workers = (
        str(inside) if inside == len(snapshot.workers) else f"{inside} of {len(snapshot.workers)}"
    )
    count = len(snapshot.unhealthy_workers) + len(snapshot.baseline)
    # Connectors that nobody reported on are not healthy for that.
    known = f"at least {count}" if count else "unknown"
    unhealthy = str(count) if snapshot.connectors is not None else known
    row = [snapshot.group_id, snapshot.state, workers, delay, unhealthy]
    return Block(columns, [[*row, snapshot.driver]], spare=("REBALANCE-DELAY",))


def unhealthy_line(component: UnhealthyComponent) -> str:
    """Return the line for an unhealthy connector or task, and whether its state is transient."""
    if not component.is_transient:
        return f"Unhealthy: {component}"
    return (
        f"In transition: {component}. It resolves when the rebalance or restart is over; check "
        "again."
    )


def run_lines(restored: LoadedRun) -> list[str]:
    """Return the progress of a run, and why it stopped."""
    run, steps = restored.run, restored.decided().steps
    done = restored.first_undone
    lines = [
        f"Run {run.id} ({', '.join(run.subjects)}) is {run.state}: {done} of {len(steps)} steps "
        "done."
    ]
    if done < len(steps):
        lines.append(f"  Next is step {done + 1}: {steps[done].describe()}")
    if failure := failure_of(run):
        lines.append(f"  It stopped: {failure}")
    return lines


def failure_of(run: Run) -> str | None:
    """Return why a run stopped; None if its last step did not fail: it was paused or killed."""
    last = run.marks[-1] if run.marks else None
    return last.detail if last is not None and last.what == "failed" else None


def lock_of(scene: UpgradeAccess) -> dict[str, Any]:
    """Return the holder of the cluster lock as JSON; ``problem`` is why it is unknown."""
    if scene.clients.settings.get("lock") == "local":
        return {"holder": None, "problem": "not checked (--lock local)"}
    try:
        holder = scene.clients.cluster_lock.holder()
    except ConnectctlError as e:
        return {"holder": None, "problem": str(e)}
    return {"holder": holder.as_json() if holder else None, "problem": None}


def lock_line(lock: dict[str, Any]) -> str | None:
    """Return the line for the holder of the cluster lock; None without one."""
    if lock["problem"]:
        return f"Could not read the holder of the cluster lock: {lock['problem']}"
    holder = lock["holder"]
    if holder is None:
        return None
    named = f"run {holder['run']} of {holder['by']}" if holder["run"] else holder["by"]
    return (
        f"Locked by {named} since {holder['since'] or 'an unknown time'} (at "
        f"{holder['address'] or 'unknown'})"
    )


def status_json(
    scene: UpgradeAccess, last: LoadedRun | None, *, unfinished: bool
) -> dict[str, Any]:
    """Return the status of the workers and of the ``last`` run as JSON."""
    snapshot = scene.snapshot
    return {
        "clusterId": snapshot.cluster_id,
        "groupId": snapshot.group_id,
        "state": snapshot.state,
        "rebalanceDelayMs": snapshot.delay_ms,
        "driver": snapshot.driver,
        "workers": [worker_json(worker) for worker in snapshot.workers],
        "notSeen": list(snapshot.unseen),
        "unhealthy": [*map(str, snapshot.unhealthy_workers), *map(str, snapshot.baseline)],
        "transient": [str(component) for component in snapshot.baseline if component.is_transient],
        "run": run_json(last) if last else None,
        "unfinished": unfinished,
        "lock": lock_of(scene),
        "nextStep": next_step(scene, last if unfinished else None),
    }


def show_status(scene: UpgradeAccess, last: LoadedRun | None, data: dict[str, Any]) -> None:
    """Print the status; ``data`` is the result of ``status_json``."""
    terminal.blocks([group_block(scene.snapshot), workers_block(scene.snapshot)])
    lines = ["", *(run_lines(last) if last else ["No upgrade of this cluster is in the journal."])]
    lines += [f"Could not read {unseen}" for unseen in scene.snapshot.unseen]
    lines += (f"Unhealthy: {worker}" for worker in scene.snapshot.unhealthy_workers)
    lines += map(unhealthy_line, scene.snapshot.baseline)
    lines += filter(
        None, [lock_line(data["lock"]), data["nextStep"] and f"Next: {data['nextStep']}"]
    )
    for line in lines:
        terminal.print_wrapped(line)


def worker_json(worker: RollingWorker) -> dict[str, Any]:
    """Return a worker as JSON."""
    return {
        "address": worker.address,
        "leader": worker.leader,
        "version": worker.version,
        "mode": str(worker.value),
        "known": str(worker.mode.how),
        "source": worker.mode.source,
        "inGroup": worker.member is not None,
        "problem": worker.problem,
        "obstacle": worker.obstacle,
    }


def run_json(restored: LoadedRun) -> dict[str, Any]:
    """Return a run as JSON."""
    run, steps = restored.run, restored.decided().steps
    following = restored.first_undone
    return {
        "id": run.id,
        "subjects": list(run.subjects),
        "state": run.state.value,
        "done": following,
        "steps": len(steps),
        "next": steps[following].describe() if following < len(steps) else None,
        "failure": failure_of(run),
    }


def next_step(scene: UpgradeAccess, restored: LoadedRun | None) -> str | None:
    """Return the next command, None if there is nothing to do."""
    if restored is not None:
        abort = f"connectctl upgrade abort {restored.run.id}"
        if contradictions(restored, scene.snapshot):
            return f"{abort}, or {abort} --leave"
        return f"connectctl upgrade resume {restored.run.id}, or {abort}"
    values = {worker.value for worker in scene.snapshot.workers if worker.member is not None}
    return "connectctl upgrade plan" if len(values) > 1 else None

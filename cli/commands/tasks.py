"""``connectctl tasks``: whether connectors exceed tasks.max (KIP-1004)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from connectctl.cli.options import (
    ConnectorsArgument,
    ForVersionOption,
    ReportOptions,
    command_group,
    with_options,
)
from connectctl.cli.output import findings as output_findings
from connectctl.cli.output import terminal

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.connect.worker import Worker
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.tasks_max.observe import Release, TaskSet, TasksSeen

app = command_group("Check connectors against tasks.max.")


@app.callback()
def tasks() -> None:
    """Check connectors against tasks.max, now and after an upgrade."""


@app.command()
@with_options
def check(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    for_version: ForVersionOption = None,
    options: ReportOptions = ReportOptions(),
) -> None:
    """List connectors with more tasks than tasks.max, which fail now or after an upgrade
    (KIP-1004).

    \b
    Examples:
      connectctl tasks check                            every connector
      connectctl tasks check --for-version 3.8          what an upgrade to 3.8 would break
      connectctl tasks check --fail-on warning -o junit > tasks.xml
      connectctl tasks check -o json | jq -r '.connectors[] | select(.then == "fails").name'

    From 3.8 on, workers set a connector that generates more tasks than tasks.max to FAILED, and
    each task of such a set FAILS when it starts. The last column is the release of --for-version;
    else 3.8, while a worker is older; else a later release without tasks.max.enforce. For a stopped
    connector the tasks of its last run count. Exit code 0: no finding of the severity of --fail-on
    or above; 1: at least one.
    """
    from connectctl.ops.checks.tasks_max import rules
    from connectctl.ops.core.rule import check
    from connectctl.ops.core.unseen import finding_of
    from connectctl.ops.operations.tasks_max.forecast import horizon

    asked = output_findings.release(for_version)
    seen = _observe(ctx.obj)
    if connectors:
        seen = seen.only(connectors)
    release = asked or horizon(seen)
    findings = output_findings.kept(
        [*map(finding_of, seen.unseen), *check(rules, seen, asked)], options.ignore
    )
    data = _as_json(seen, release)
    output_findings.emit_report(
        "TasksCheck", data, findings, options, lambda wide: _print(seen, release, findings, wide)
    )
    raise typer.Exit(output_findings.exit_code(findings, options.fail_on))


def _observe(session: Session) -> TasksSeen:
    from connectctl.ops.operations.cluster.group_workers import refuse_unknown
    from connectctl.ops.operations.tasks_max.observe import tasks_of_cluster, tasks_of_workers

    settings = session.settings
    if settings.get("rest") and not settings.get("bootstrap_servers"):
        return tasks_of_workers(session.connect_to(None))
    group = session.group()
    seen = tasks_of_cluster(session.kafka, session.connect_to(group), group, session.named_topics)
    refuse_unknown(group, session, seen.sets)
    return seen


# ------------------------------------------------------------------------------------------- tables


def _print(
    seen: TasksSeen, release: Release | None, findings: tuple[Finding, ...], wide: bool
) -> None:
    last = f"ON {release}" if release else "LATER"
    columns = ["CONNECTOR", "TASKS.MAX", "ENFORCED", "TASKS", "RUNNING", "NOW", last]
    more = ["STATE", "LAST-RUN", "GENERATES", "COUNTED-IN", "CLASS"] if wide else []
    rows = [_row(tasks, seen, release) + (_more(tasks) if wide else []) for tasks in seen.sets]
    terminal.table(
        columns + more,
        rows,
        empty="There are no connectors.",
        spare=() if wide else ("ENFORCED", "RUNNING"),
    )
    terminal.note(f"NOW is the behaviour of the workers: {_versions(seen)}.", style="dim")
    if release is None:
        terminal.note("LATER is a release without tasks.max.enforce.", style="dim")
    terminal.findings(findings)


def _versions(seen: TasksSeen) -> str:
    """Return the workers' version; in a mixed group by worker, because a task fails only on some of
    them.
    """
    by_version: dict[str, list[str]] = {}
    for worker in seen.workers:
        by_version.setdefault(worker.version or "of unknown version", []).append(worker.address)
    if len(by_version) == 1:
        return next(iter(by_version))
    return (
        "; ".join(
            f"{version} on {', '.join(found)}" for version, found in sorted(by_version.items())
        )
        or "unknown"
    )


def _row(tasks: TaskSet, seen: TasksSeen, release: Release | None) -> list[str]:
    from connectctl.ops.operations.tasks_max.forecast import on_present_workers, on_release

    enforce = {True: "yes", False: "no", None: "?"}[tasks.enforce]
    return [
        tasks.name,
        str(tasks.config.get("tasks.max", tasks.limit)),
        enforce,
        str(tasks.size),
        str(tasks.health.verdict.running),
        on_present_workers(tasks, seen),
        on_release(tasks, release),
    ]


def _more(tasks: TaskSet) -> list[str]:
    wanted = tasks.refusal.generated if tasks.refusal else None
    return [
        str(tasks.health.verdict),
        _or_dash(tasks.last if tasks.stopped else None),
        _or_dash(wanted),
        tasks.read_from,
        tasks.config.get("connector.class", "?"),
    ]


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


# --------------------------------------------------------------------------------------------- JSON


def _as_json(seen: TasksSeen, release: Release | None) -> dict[str, Any]:
    return {
        "clusterId": seen.cluster_id,
        "workers": list(map(_worker_json, seen.workers)),
        "forVersion": str(release) if release else None,
        "connectors": [_set_json(tasks, seen, release) for tasks in seen.sets],
    }


def _worker_json(worker: Worker) -> dict[str, Any]:
    from connectctl.ops.operations.tasks_max.observe import enforces, release_of

    release = release_of(worker)
    return {
        "address": worker.address,
        "version": worker.version,
        "enforcesTasksMax": None if release is None else enforces(release),
    }


def _set_json(tasks: TaskSet, seen: TasksSeen, release: Release | None) -> dict[str, Any]:
    from connectctl.ops.operations.tasks_max.forecast import on_present_workers, on_release

    connector = tasks.health.connector
    return {
        "name": tasks.name,
        "type": connector.type,
        "class": tasks.config.get("connector.class"),
        "state": tasks.health.verdict.state.value,
        "tasksMax": tasks.limit,
        "enforce": tasks.enforce,
        "tasks": tasks.size,
        "running": tasks.health.verdict.running,
        "tasksOfLastRun": tasks.last if tasks.stopped else None,
        "generates": tasks.refusal.generated if tasks.refusal else None,
        "countedIn": tasks.read_from,
        "now": on_present_workers(tasks, seen).value,
        "then": on_release(tasks, release).value,
    }

"""``connectctl runs apply`` executes the plan that a dry run printed, or refuses it; ``runs undo``.

The cluster is observed and planned again only for a comparison: the saved plan is executed.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from connectctl.cli import apply
from connectctl.cli.commands import fence
from connectctl.cli.commands.connectors import apply as connectors_apply
from connectctl.cli.commands.connectors import cluster as connectors_cluster
from connectctl.cli.commands.connectors import cure as connectors_cure
from connectctl.cli.commands.transactions import end as transactions_end
from connectctl.cli.commands.upgrade.options import GateOptions
from connectctl.cli.options import ApplyOptions, OffsetOptions, WaitOptions
from connectctl.cli.output import terminal
from connectctl.cli.plan_file import check_fresh, read_plan
from connectctl.cli.session import Session
from connectctl.cli.transaction_sources import group_of, sources_of
from connectctl.ops.all_steps import KINDS
from connectctl.ops.clients.secrets import reveal
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.journal import RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.saved_plan import check_same_cluster, check_where
from connectctl.ops.operations.connectors.access import ConnectorAccess
from connectctl.ops.operations.connectors.config import files as config_files
from connectctl.ops.operations.connectors.config.files import resolved
from connectctl.ops.operations.connectors.config.plan import ConfigPlan
from connectctl.ops.operations.connectors.config.steps import ChangeConnector, CreateConnector, stored_offsets
from connectctl.ops.operations.connectors.config.undo import plan_undo
from connectctl.ops.operations.connectors.plan_again import plan_again
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords
from connectctl.ops.operations.fencing.observe import request_of, select_again
from connectctl.ops.operations.fencing.steps import FenceIds
from connectctl.ops.operations.offsets.prepare import OffsetAccess, targets_of
from connectctl.ops.operations.offsets.steps import Change
from connectctl.ops.operations.sink_offsets.changes import GroupTarget
from connectctl.ops.operations.sink_offsets.steps import ChangeGroupOffsets
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import OPERATION as SWEEP
from connectctl.ops.task_runtime.job.left_members import OPERATION as MEMBERS
from connectctl.ops.task_runtime.job.saved_run import SavedRun

CONFIGURATIONS = ("create", "apply", "patch", "edit", "delete", "rollback", "undo")
CONNECTORS = ("stop", "pause", "resume", "restart", "cure", "topics", *CONFIGURATIONS)
VERBS = {"connectors": CONNECTORS, "loggers": ("set",)}
"""The verbs whose plans can be applied, for nouns of which not all can."""


def apply_file(session: Session, path: Path, options: ApplyOptions) -> None:
    """Execute the plan in ``path``. Raises ``Refused`` if stale or of another cluster, ``BadInput`` if it is not a plan."""
    data = read_plan(path)
    operation = str(data.get("operation"))
    noun, _, verb = operation.partition(" ")
    if operation == "upgrade":
        from connectctl.cli.commands.upgrade.apply import apply_saved

        apply_saved(session, data, path, GateOptions(**vars(options)))
        return
    known = {
        "connectors": _connectors,
        "loggers": _connectors,
        "offsets": _offsets,
        "fence": _fence,
        "transactions": _transactions,
        "run": _run,
    }
    if noun not in known or verb not in VERBS.get(noun, (verb,)):
        raise BadInput(
            f"{path} is not a plan that runs apply accepts: it is a plan of {operation}",
            next_step="To continue an unfinished run: connectctl runs resume RUN.",
        )
    if "digest" not in data:
        raise BadInput(f"{path} is not a plan", why="it has no digest")
    known[noun](session, Plan.from_json(data, KINDS), options)


def _connectors(session: Session, saved: Plan, options: ApplyOptions) -> None:
    cluster = connectors_cluster.observed(session)
    check_where((saved.cluster_id, saved.group_id), (cluster.cluster_id(), cluster.group_id))
    if saved.operation.removeprefix("connectors ") in CONFIGURATIONS:
        _configurations(session, cluster, saved, options)
        return
    if saved.operation == "connectors cure":
        (name,) = saved.resources
        check_fresh(saved, connectors_cure.planned(session, cluster, name))
        apply.apply(session, saved, connectors_cure.context_of(session, cluster, saved), options)
        return
    check_fresh(saved, plan_again(cluster, saved))
    connectors_cluster.perform(session, cluster, saved, options)


def _configurations(session: Session, cluster: ConnectorAccess, saved: Plan, options: ApplyOptions) -> None:
    """Compare the plan with the current state; its secrets, which it does not contain, are read from its files again."""
    if any(isinstance(step, Change) for step in saved.steps):
        hint = "Give the files: connectctl connectors create -f FILE --offsets FILE."
        raise BadInput(
            "The plan writes initial offsets to the offsets topic, and cannot be applied from a file", next_step=hint
        )
    named = {
        Path(step.file) for step in saved.steps if isinstance(step, CreateConnector | ChangeConnector) and step.file
    }
    # A plan without secrets can be applied on a machine without its files.
    files = sorted(path for path in named if path.exists())
    given = {each.name: each for each in config_files.desired(files, reveal)}
    configs = resolved(cluster.calls, saved, given)
    references = {name: each.references for name, each in given.items()}
    connectors_apply.carry_out(session, cluster, ConfigPlan(saved, configs, references), options)


def _transactions(session: Session, saved: Plan, options: ApplyOptions) -> None:
    check_where((saved.cluster_id, saved.group_id), (session.transactions.cluster_id(), group_of(session) or ""))
    check_fresh(saved, transactions_end.plan_again(session, saved))
    apply.apply(session, saved, transactions_end.context_of(session), options)


def _fence(session: Session, saved: Plan, options: ApplyOptions) -> None:
    """Compare the ids of a fence and their owners again; epochs may have increased."""
    if not saved.steps:
        apply.apply(session, saved, None, options)
        return
    step = saved.steps[0]
    assert isinstance(step, FenceIds)
    sources = sources_of(session, request_of(step))
    check_where((saved.cluster_id, saved.group_id), (sources.calls.cluster_id(), group_of(session) or ""))
    now = select_again(sources, step)
    if options.dry_run:
        apply.show(saved, options.output)
        return
    look = partial(select_again, sources, step)
    fence.agree_and_fence(session, sources, now, saved, lambda: None, look, options)


def _offsets(session: Session, saved: Plan, options: ApplyOptions) -> None:
    from connectctl.cli.commands.offsets import execution, sink_change

    def same_cluster(access: OffsetAccess) -> None:
        check_where((saved.cluster_id, saved.group_id), (access.sources.kafka.cluster_id(), access.group_id))

    stopping = OffsetOptions(**vars(options), stop=True)
    if groups := [step for step in saved.steps if isinstance(step, ChangeGroupOffsets)]:
        every = [step.subject for step in groups if step.change.exact and not step.change.entries]
        sink_change.change_groups(
            session,
            saved.operation,
            [GroupTarget(step.subject, step.change, step.connector) for step in groups],
            stopping,
            via=groups[0].via,
            typed=every[0] if every and saved.operation == "offsets reset" else None,
            undoes=groups[0].undoes,
            check=same_cluster,
            saved=saved,
        )
        return
    targets, typed = targets_of(saved)
    execution.change(session, saved.operation, targets, stopping, typed=typed, check=same_cluster, saved=saved)


def _run(session: Session, saved: Plan, options: ApplyOptions) -> None:
    # The task runtime is not imported for other plans.
    if saved.operation == MEMBERS:
        from connectctl.cli.commands.run.execution import scene_of
        from connectctl.ops.task_runtime.job.status_report import members_context, planned_removal

        scene = scene_of(session)
        check_where((saved.cluster_id, saved.group_id), (scene.kafka.cluster_id(), session.group_id))
        check_fresh(saved, planned_removal(scene, session.group_id, saved.resources))
        context = members_context(scene, session.group_id)
        apply.apply(session, saved, context, options)
        return
    if saved.operation == SWEEP:
        from connectctl.cli.commands.run.sweep import sweep_saved

        sweep_saved(session, saved, options)
        return
    from connectctl.cli.commands.run.execution import run_job

    run = SavedRun.of(saved)
    run_job(session, run.request, options, run)


def undo(session: Session, id: str, options: WaitOptions) -> None:
    """Undo the changes of the run ``id``. Raises ``Refused`` for a run of another kind, or if others made changes since.

    Other changes have separate commands.
    """
    journal = apply.open_journal()
    run = journal.get(id)
    plan = journal.plan_of(run, KINDS)
    noun, _, verb = run.operation.partition(" ")
    if noun != "connectors" or verb not in CONFIGURATIONS:
        known = {
            "offsets": f"connectctl offsets undo {run.id} --stop",
            "upgrade": f"connectctl upgrade abort {run.id}",
            "loggers": f"connectctl loggers undo {run.id}",
        }
        hint = known.get(noun)
        raise Refused(
            f"runs undo applies to configuration changes only, and the run {run.id} is a run of {run.operation}",
            next_step=f"Undo it with: {hint}" if hint else f"See what it did: connectctl runs show {run.id}.",
        )
    if run.state is RunState.UNDONE:
        raise Refused(f"The run {run.id} is undone already")
    cluster = connectors_cluster.observed(session)
    check_same_cluster(run, cluster.cluster_id(), cluster.group_id)
    current = {each.name: each for each in cluster.connectors()}
    passwords, stored = partial(defined_passwords, cluster.calls), partial(stored_offsets, cluster.calls)
    planned = plan_undo(journal, run, plan, current, passwords, stored, wait=options.wait)
    if any(isinstance(step, Change) for step in plan.steps):
        terminal.note(
            f"The offsets that it wrote stay; to undo those: connectctl offsets undo {run.id} --stop", style="yellow"
        )
    connectors_apply.carry_out(session, cluster, planned, options)

"""Resumes runs of connectors, fences and transactions: the context of their steps, and whether they may continue."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from connectctl.cli import apply
from connectctl.cli.commands.connectors import cluster as connectors_cluster
from connectctl.cli.commands.connectors import cure as connectors_cure
from connectctl.cli.commands.offsets import execution
from connectctl.cli.commands.run.execution import scene_of
from connectctl.cli.commands.transactions.end import context_of
from connectctl.cli.options import ApplyOptions
from connectctl.cli.session import Session
from connectctl.cli.transaction_sources import LazyWorkers, group_of, sources_of
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.saved_plan import check_same_cluster
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.carried_offsets import to_repeat
from connectctl.ops.operations.fencing.observe import observe, refuse_running
from connectctl.ops.operations.fencing.planning import check, select
from connectctl.ops.operations.fencing.snapshot import FenceAction, FenceRequest
from connectctl.ops.operations.fencing.steps import FenceContext, FenceIds
from connectctl.ops.operations.offsets.steps import Change
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import OPERATION as SWEEP
from connectctl.ops.task_runtime.job.left_members import OPERATION as MEMBERS
from connectctl.ops.task_runtime.job.status_report import members_context

LEAST_PATIENCE = 60.0
"""Least seconds for a connector to start on its workers."""


def take_up(session: Session, journal: Journal, run: Run, plan: Plan, options: ApplyOptions) -> None:
    """Print, or execute, the remaining steps of ``run``.

    Raises ``Refused`` if the cluster is another one, or has changed since the confirmation.
    """
    from connectctl.ops.task_runtime.job.steps import OPERATION

    if plan.operation == OPERATION:
        _hand_back(session, journal, run, plan, options)
        return
    context, cluster_id, group_id = _context_of(session, journal, run, plan)
    check_same_cluster(run, cluster_id, group_id)
    context.resumed = True
    again = to_repeat(run, plan.steps)
    steps = tuple(step for number, step in enumerate(plan.steps) if number in again or not run.done(number))
    left = replace(plan, operation=f"resume {plan.operation}", steps=steps, noops=())
    if options.dry_run:
        apply.show(left, options.output)
        return
    apply.confirm(session, left, yes=options.yes)
    on_result = apply.print_result if options.output.for_people else None
    results = apply.carry_out(session, plan, context, journal, run, on_result=on_result, again=again)
    apply.report(plan, results, options.output)


def _context_of(session: Session, journal: Journal, run: Run, plan: Plan) -> tuple[Any, str, str]:
    """Return the context of the steps of ``plan``, and the Kafka cluster and the group that it changes."""
    if plan.operation == "fence":
        return _fence(session, journal, run, plan)
    if plan.operation == MEMBERS:
        scene = scene_of(session)
        return members_context(scene, session.group_id), scene.kafka.cluster_id(), session.group_id
    if plan.operation == SWEEP:
        from connectctl.cli.commands.run.sweep import sweep_again  # it loads pyarrow

        return sweep_again(session, plan)
    if plan.operation.startswith("transactions "):
        return context_of(session), session.transactions.cluster_id(), group_of(session) or ""

    if any(isinstance(step, Change) for step in plan.steps):
        access, _ = execution.look_at(session, [])
        kafka = access.sources.kafka
        return execution.context_of(session, access, journal), kafka.cluster_id(), access.group_id
    cluster = connectors_cluster.observed(session)
    context = (
        connectors_cure.context_of(session, cluster, plan)
        if plan.operation == "connectors cure"
        else connectors_cluster.context_of(session, cluster)
    )
    return context, cluster.cluster_id(), cluster.group_id


def _fence(session: Session, journal: Journal, run: Run, plan: Plan) -> tuple[Any, str, str]:
    step = plan.steps[0]
    assert isinstance(step, FenceIds)
    sources = sources_of(session, FenceRequest(connectors=step.connectors))
    context = FenceContext(
        LazyWorkers(session),
        session.timeout,
        transactions=sources.calls,
        journal=journal,
        fencing=session.timeout,
        check=partial(refuse_running, sources),
    )
    context.run = run
    if left := [] if run.done(0) else step.left(context):
        ids = {row.id for row in left}
        creates = any(row.action is FenceAction.CREATE for row in left)
        request = FenceRequest(ids=tuple(row.id for row in left), leader=True, create=creates, force=step.force)
        now = select(observe(sources, request), request)
        # A task started since the run began uses its id again, and would fail.
        check(replace(now, rows=tuple(row for row in now.rows if row.id in ids)), request)
    return context, sources.calls.cluster_id(), group_of(session) or ""


def _hand_back(session: Session, journal: Journal, run: Run, plan: Plan, options: ApplyOptions) -> None:
    """Return the connector of a killed ``connectctl run --take-over`` to its workers.

    Only the job file runs its tasks again. Raises ``Refused`` if the run is still active, or has no connector to return.
    """
    from connectctl.ops.clients.kafka_protocol.run_presence import Presence
    from connectctl.ops.task_runtime.job.steps import HandBack, JobContext, hand_back_left
    from connectctl.ops.task_runtime.job.worker_takeover import hand_back

    (name,), kafka = run.subjects, session.kafka
    check_same_cluster(run, kafka.cluster_id(), session.group_id)
    number = hand_back_left(plan, run)
    topics = find_internal_topics(kafka, kafka.group(run.group_id), session.named_topics, needed=("config",))
    presence = Presence(kafka, run.group_id, name, str(topics.config))  # type: ignore[arg-type]  # needed="config" gives a config topic
    presence.hold_alone(max(session.timeout, LEAST_PATIENCE))
    try:
        if number is None:
            if not options.dry_run:
                journal.end(run.id, RunState.FAILED)
            raise Refused(
                f"The run {run.id} has ended; there is nothing to hand back to the workers",
                next_step="Run its job file again: connectctl run FILE continues from its source offsets.",
                code="nothing-to-resume",
            )
        step = plan.steps[number]
        assert isinstance(step, HandBack)
        left = replace(plan, operation=f"resume {plan.operation}", steps=plan.steps[number:], noops=())
        if options.dry_run:
            apply.show(left, options.output)
            return

        def work() -> str | None:
            request = FenceRequest(connectors=(name,))
            sources = sources_of(session, request)
            context = connectors_cluster.context_of(session, connectors_cluster.observed(session))
            context.timeout = max(session.timeout, LEAST_PATIENCE)
            return hand_back(context, sources.calls, observe(sources, request).ids, name, step.verb)

        apply.confirm(session, left, yes=options.yes)
        on_result = apply.print_result if options.output.for_people else None
        context = JobContext(work=work)
        results = apply.carry_out(session, plan, context, journal, run, on_result=on_result, start=number)
    finally:
        presence.leave()
    apply.report(plan, results, options.output)

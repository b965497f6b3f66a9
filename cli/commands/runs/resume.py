"""``connectctl runs resume``: continue a run that did not end, or hand a connector back to its
workers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from connectctl.cli import apply, flow
from connectctl.cli.commands.runs.operation_of import operation_of
from connectctl.cli.options import ApplyOptions
from connectctl.cli.session import Session
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.saved_plan import check_same_cluster
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.access import observed_cluster
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.fencing.observe import observe
from connectctl.ops.operations.fencing.snapshot import FenceRequest
from connectctl.ops.operations.operation import Operation, Remaining
from connectctl.ops.operations.transactions.sources import sources_of
from connectctl.ops.registry import KINDS

LEAST_PATIENCE = 60.0
"""Least seconds for a connector to start on its workers."""


def resume_run(
    session: Session, id: str, options: ApplyOptions, only: Operation[Any, Any] | None = None
) -> None:
    """Print, or execute, the remaining steps of a run; ``only`` is the one operation that the
    command resumes.

    Raises ``Refused`` if it is a different cluster, or has changed since the confirmation.
    """
    journal = session.journal()
    run = journal.get(id)
    operation = operation_of(run, only)
    if run.state in (RunState.DONE, RunState.UNDONE, RunState.REFUSED):
        raise Refused(f"The run {id} is {run.state}; there is nothing to resume")
    plan = journal.plan_of(run, KINDS)
    if operation is not None:
        flow.resume(session, operation, journal, run, plan, options)
    else:
        _hand_back(session, journal, run, plan, options)


def _hand_back(
    session: Session, journal: Journal, run: Run, plan: Plan, options: ApplyOptions
) -> None:
    """Return the connector of a killed ``connectctl run --take-over`` to its workers.

    Only the job file runs its tasks again. Raises ``Refused`` if the run is still active, or has no
    connector to return.
    """
    from connectctl.ops.clients.kafka_protocol.run_presence import Presence
    from connectctl.ops.task_runtime.job.steps import JobContext, hand_back_left
    from connectctl.ops.task_runtime.job.worker_takeover import hand_back

    (name,), kafka = run.subjects, session.kafka
    check_same_cluster(run, kafka.cluster_id(), session.group_id)
    found = hand_back_left(plan, run)
    topics = find_internal_topics(
        kafka, kafka.group(run.group_id), session.named_topics, needed=("config",)
    )
    # needed="config" gives a config topic
    presence = Presence(kafka, run.group_id, name, str(topics.config))  # type: ignore[arg-type]
    presence.hold_alone(max(session.timeout, LEAST_PATIENCE))
    try:
        if found is None:
            if not options.dry_run:
                journal.end(run.id, RunState.FAILED)
            raise Refused(
                f"The run {run.id} has ended; there is nothing to hand back to the workers",
                next_step="Run its job file again: connectctl run FILE continues from its source "
                "offsets.",
                code="nothing-to-resume",
            )
        number, step = found
        left = replace(
            plan, operation=f"resume {plan.operation}", steps=plan.steps[number:], noops=()
        )
        if options.dry_run:
            apply.show(left, options.output)
            return

        def work() -> str | None:
            request = FenceRequest(connectors=(name,))
            sources = sources_of(session, request)
            cluster = observed_cluster(session)
            patience = max(session.timeout, LEAST_PATIENCE)
            context = StepContext(cluster.calls, patience, facts=cluster.facts, journal=journal)
            return hand_back(context, sources.calls, observe(sources, request).ids, name, step.verb)

        apply.confirm(session, left, yes=options.yes)
        on_result = apply.print_result if options.output.for_people else None
        context = JobContext(work=work)
        results = apply.carry_out(
            session, plan, context, journal, run, on_result=on_result, remaining=Remaining(number)
        )
    finally:
        presence.leave()
    apply.report(plan, results, options.output)

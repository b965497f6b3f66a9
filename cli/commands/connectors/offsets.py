"""Initial offsets for workers that cannot set them: written to the offsets topic before the connector is created."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from connectctl.cli import apply
from connectctl.cli.commands.connectors.options import ConfigOptions
from connectctl.cli.commands.offsets import execution
from connectctl.cli.session import Session
from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.release import INITIAL_STATE, older
from connectctl.ops.core.errors import Refused
from connectctl.ops.operations.connectors.access import ConnectorAccess
from connectctl.ops.operations.connectors.config.outlook import Entries
from connectctl.ops.operations.connectors.config.plan import ConfigPlan
from connectctl.ops.operations.connectors.config.values import keep
from connectctl.ops.operations.offsets.changes import SetOffsets
from connectctl.ops.operations.offsets.planning import TOPIC_PROPERTY, plan_changes
from connectctl.ops.operations.offsets.prepare import refuse_without_write
from connectctl.ops.operations.offsets.target import OffsetTarget


def by_topic(cluster: ConnectorAccess, entries: Entries) -> bool:
    """Whether ``entries`` are to be written to the topic: depends on the workers' release, if the brokers are given."""
    if not entries or cluster.kafka is None:
        return False
    return older(str(cluster.calls.get("/").get("version")), INITIAL_STATE)


def create(session: Session, planned: ConfigPlan, name: str, entries: Entries, *, options: ConfigOptions) -> None:
    """Execute ``planned``, which creates the source connector ``name``, after the steps that write its offsets."""
    if any("kafka_topic" in (read_json(partition) or {}) for partition, _ in entries):
        raise Refused(
            f"Cannot create {name} with offsets of a sink: workers before 3.7 do not set them",
            next_step=f"Set them first: connectctl offsets set --group connect-{name} -f FILE; then create it.",
            code="unsupported",
        )
    topic = planned.configs[0].get(TOPIC_PROPERTY)
    request = SetOffsets(name, entries, options.force)
    target = OffsetTarget(name, lambda subject: request, topic, new=True)
    access, (subject,) = execution.look_at(session, [target])
    access.sources.check_proven()
    subject = replace(subject, config=dict(planned.configs[0]))
    plan = planned.plan
    where = plan.operation, plan.cluster_id, [(subject, request)]
    changes = plan_changes(*where, stop=False, group_id=plan.group_id, view=access.view, via="kafka")
    refuse_without_write(changes, lambda: session.own_rights)
    execution.warn(changes.warnings)
    whole = replace(plan, steps=(*changes.plan.steps, *plan.steps))
    context = execution.context_of(session, access, apply.open_journal())
    apply.apply(
        session, whole, context, begin=partial(keep, planned.configs, references=planned.references), options=options
    )

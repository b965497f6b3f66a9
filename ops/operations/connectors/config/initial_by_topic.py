"""Initial offsets for workers that cannot set them: written to the offsets topic before the
connector is created.
"""

from __future__ import annotations

from dataclasses import replace

from connectctl.ops.clients.protocols import Clients
from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.connect.release import INITIAL_STATE, older
from connectctl.ops.core.errors import Refused
from connectctl.ops.operations.connectors.access import ConnectorAccess
from connectctl.ops.operations.connectors.config.outlook import Entries
from connectctl.ops.operations.connectors.config.plan import ConfigPlan
from connectctl.ops.operations.offsets.changes import SetOffsets
from connectctl.ops.operations.offsets.planning import plan_changes
from connectctl.ops.operations.offsets.sources import observe_connectors
from connectctl.ops.operations.offsets.target import OffsetTarget


def by_topic(cluster: ConnectorAccess, entries: Entries) -> bool:
    """Return whether ``entries`` are written to the topic: for workers before 3.7, which cannot set
    them, with brokers.
    """
    if not entries or cluster.kafka is None:
        return False
    return older(str(cluster.calls.get("/").get("version")), INITIAL_STATE)


def with_offsets_first(
    clients: Clients, planned: ConfigPlan, name: str, entries: Entries, *, force: bool
) -> ConfigPlan:
    """Return ``planned``, which creates the source connector ``name``, with the steps that write
    its offsets in front.
    """
    if any("kafka_topic" in (read_json(partition) or {}) for partition, _ in entries):
        raise Refused(
            f"Cannot create {name} with offsets of a sink: workers before 3.7 do not set them",
            next_step=f"Set them first: connectctl offsets set --group connect-{name} -f FILE; "
            "then create it.",
            code="unsupported",
        )
    topic = planned.configs[0].get(TOPIC)
    request = SetOffsets(name, entries, force)
    target = OffsetTarget(name, lambda subject: request, topic, new=True)
    access, (subject,) = observe_connectors(clients, [target])
    access.sources.check_proven()
    subject = replace(subject, config=dict(planned.configs[0]))
    plan = planned.plan
    changes = plan_changes(
        plan.operation,
        plan.cluster_id,
        [(subject, request)],
        stop=False,
        group_id=plan.group_id,
        view=access.view,
        via="kafka",
    )
    notes = (*planned.notes, *map(addresses_masked, changes.warnings))
    return replace(
        planned, plan=replace(plan, steps=(*changes.plan.steps, *plan.steps)), notes=notes
    )

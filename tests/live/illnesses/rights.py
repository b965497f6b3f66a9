"""A principal that may not see something, which doctor has to say, and one that sees everything."""

from __future__ import annotations

import json

from connectctl.ops.kafka.acls import Operation, Resource
from fakes.acls import allow
from live.grants import Grants
from live.illnesses.bed import RUNNING, Bed, Where, situation
from live.rightsworld import PRINCIPAL, login

EVERYTHING = (
    allow(PRINCIPAL, Operation.ALL, Resource.TOPIC, "*"),
    allow(PRINCIPAL, Operation.ALL, Resource.GROUP, "*"),
    allow(PRINCIPAL, Operation.ALL, Resource.CLUSTER, "kafka-cluster"),
    allow(PRINCIPAL, Operation.ALL, Resource.TRANSACTIONAL_ID, "*"),
)


@situation(
    "The principal of doctor may not see a sink's group",
    "UNSEEN001",
    "lacks Describe on the group",
    where=Where.WORKERS,
)
def a_group_is_hidden(bed: Bed) -> None:
    runs_as_a_principal_without(bed, f"connect-{bed.name}")


@situation("The principal of doctor may see everything", where=Where.WORKERS)
def nothing_is_hidden(bed: Bed) -> None:
    runs_as_a_principal_without(bed)


def runs_as_a_principal_without(bed: Bed, *groups: str) -> None:
    """Create a sink, and have doctor run as a principal that may see everything but these groups."""
    bed.topic("one")
    bed.sink()
    bed.states(*RUNNING)
    hidden = [
        allow(PRINCIPAL, Operation.DESCRIBE, Resource.GROUP, group, deny=True) for group in groups
    ]
    grants = Grants(bed.cluster)
    bed.closing.append(grants.close)
    grants.add([*EVERYTHING, *hidden])
    bed.closing.append(lambda: grants.remove([*EVERYTHING, *hidden]))
    context = {
        "bootstrap_servers": bed.cluster.listeners["SECURED"],
        "group_id": bed.cluster.group_id,
        "topics": bed.cluster.topics,
        **login(bed.directory),
    }
    file = bed.directory / "contexts.yaml"
    file.write_text(json.dumps({"current": "c", "contexts": {"c": context}}))
    bed.options = ("--config", str(file))

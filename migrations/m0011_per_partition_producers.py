"""Take a stream application back from group-aware producers to one per partition, in one rolling
bounce.

KIP-447, Compatibility: on a release that is group-aware one roll is enough, because both kinds of
producers commit with their generation. A release before 2.6, which is not group-aware, requires a
second roll: the property first, the older binaries only when no producer is group-aware.
``--set binaries=older`` plans it; the operator installs the binaries, and the run reads the
restarted release from the group's subscriptions.

Kafka Streams 4.0 does not support ``exactly_once``.

Guaranteed, as in the upgrade: one instance at a time with a gate after each; at the end
transactional ids of threads of processes outside the group are fenced.
"""

from __future__ import annotations

from connectctl.migrations import streams
from connectctl.migrations.registry import MigrationInput
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.streams_eos import ProducerModel
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps

NAME = "per-partition-producers"
PARAMETERS = streams.PARAMETERS | {
    "binaries": "older: a release before 2.6 is installed afterwards, in another roll"
}


def plan(inputs: MigrationInput) -> PlannedSteps:
    """The property back in one roll, then older binaries if requested."""
    binaries = inputs.given.get("binaries")
    if binaries not in (None, "older"):
        raise BadInput(
            f"binaries={binaries} is not older", next_step="Leave it out to stay on the release."
        )
    return streams.plan(inputs, ProducerModel.PER_PARTITION, older=binaries == "older")


MIGRATION = streams.migration(11, NAME, __doc__, plan, PARAMETERS)

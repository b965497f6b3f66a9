"""Upgrade a stream application from a producer per partition to group-aware ones, in two rolling
bounces.

KIP-447. With ``processing.guarantee=exactly_once`` Kafka Streams has a producer for every task, and
zombies are fenced by the transactional id, which names the task. With ``exactly_once_v2``
(``exactly_once_beta`` in 2.6 to 2.8) there is one for each thread, and zombies are fenced by the
consumer group: offset commits carry member id and generation, and the new owner of a partition
waits for open transactions.

Brokers must be 2.5 or newer. The first roll brings every instance to a release that is group-aware,
2.6 or newer, the property unchanged: only when all of them commit with their generation may the
first one drop its per-partition producers. The group's subscriptions contain the releases; if all
are new enough there is no first roll. The second roll changes the property. At the end each process
with partitions verifiably has its own transactional id, and every id of the old model is fenced: no
instance initializes it any more, so nothing else would fence a zombie.

One bounce, with the new release and the new property together, is sufficient if the application may
lose consistency for a moment (KIP-447 allows it for users who do not need the guarantee), or if all
of its instances are stopped before the first new one starts: change them yourself then. One bounce
is also enough to go back to ``exactly_once`` within the same release, and for an application that
keeps ``exactly_once`` or ``at_least_once`` and is only upgraded.

Kafka Streams 2.6 removed the task-level metrics ``commit-latency-max`` and ``commit-latency-avg``
without a deprecation (KIP-447), because tasks no longer commit one by one: alerts and dashboards
that use them have no values after the first roll. Use ``commit-latency-max`` and
``commit-latency-avg`` of the thread.

Guaranteed: one instance at a time, the next only when the group is stable with all members and its
lag does not grow; the property is not changed before every instance is verifiably group-aware; no
id of a running instance is fenced.
"""

from __future__ import annotations

from connectctl.migrations import streams
from connectctl.migrations.registry import MigrationInput
from connectctl.ops.kafka.streams_eos import ProducerModel
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps

NAME = "group-aware-producers"
PARAMETERS = streams.PARAMETERS | {
    "value": "exactly_once_v2 or exactly_once_beta; by default as its release supports"
}


def plan(inputs: MigrationInput) -> PlannedSteps:
    """The remaining rolls, and the fencing of unused ids of the old producer model."""
    return streams.plan(inputs, ProducerModel.GROUP_AWARE, value=inputs.given.get("value"))


MIGRATION = streams.migration(10, NAME, __doc__, plan, PARAMETERS)

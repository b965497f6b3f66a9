"""What may be wrong between a connector and tasks.max (KIP-1004): the rules TASK001 to TASK009, with their stories."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

KIP = "KIP-1004, Public Interfaces"
CHECK = "KIP-1004; Worker.checkTasksMax"

REFUSED = Rule(
    "TASK001",
    Severity.ERROR,
    "A connector is FAILED because it generated more tasks than tasks.max",
    "None of the new tasks were published, so that the change which the connector was given has not taken effect",
    KIP,
    """
    From 3.8 on a worker compares what the connector generates with tasks.max. One that generates more is made FAILED,
    and none of its new task configurations are published. The request that created or changed it has long been answered
    with success, and validation says nothing: the trace in its status is the only place where it is told.

    What ran before runs on, with its old configuration. The worker does not try again by itself.

    A connector that does so has a bug: taskConfigs(maxTasks) must not give more than it is asked for. Report it, and give
    the connector a tasks.max that is as large as what it generates. tasks.max.enforce=false lets it run as well, until a
    later release takes that property away.
    """,
)
SET_FAILED = Rule(
    "TASK002",
    Severity.ERROR,
    "Tasks are FAILED because their set is larger than tasks.max",
    "No task of such a set starts, so that nothing is copied any more",
    CHECK,
    """
    A worker from 3.8 on checks the whole set whenever one of its tasks starts. In a set that is larger than tasks.max
    every task fails, the first as well as the last.

    Such a set comes from an older worker, or tasks.max was lowered and the connector kept generating too many. As long as
    it ran nobody noticed; a restart, a rebalance or the upgrade of a worker started the tasks anew.

    Give the connector a tasks.max that is as large as the set. If its plugin copies its own properties into its tasks, they
    start again by themselves; otherwise restart what has failed.
    """,
)
DOOMED = Rule(
    "TASK003",
    Severity.ERROR,
    "A running set of tasks is larger than tasks.max, and fails when it starts again",
    "A restart, a rebalance or a restarted worker makes its tasks FAIL one after the other",
    CHECK,
    """
    Workers from 3.8 on check a set of tasks when one of its tasks starts, not while it runs. A set that is larger than
    tasks.max therefore runs on, and every task that starts again FAILS. A paused set is no exception.

    It comes about when tasks.max is lowered and the connector goes on to generate as many as before: then the connector
    itself is FAILED (TASK001), its old tasks run, and they are one rebalance away from failing.

    Give the connector a tasks.max that is as large as the set before anything restarts. In a group where only some workers
    are from 3.8 on, the tasks fail on those and run on the others.
    """,
)
UPGRADE = Rule(
    "TASK004",
    Severity.WARNING,
    "A set of tasks is larger than tasks.max, and fails after an upgrade",
    "Connectors that do not respect tasks.max fail once the workers are of a release that enforces it, which 3.8 is",
    "KIP-1004, Compatibility, Deprecation, and Migration Plan",
    """
    Workers before 3.8 publish whatever a connector generates; late patches of old releases warn about it in their log. So
    a plugin that ignores tasks.max goes unnoticed.

    With the first worker of 3.8 or newer each task that this worker gets FAILS. Once all are new the whole set has failed,
    and the connector itself FAILS as soon as it generates tasks.

    Before the upgrade, give the connector a tasks.max that is as large as its set. tasks.max.enforce=false does it too:
    old workers do not know the property and pass over it, new ones honour it.

    With --for-version 3.8 or newer this is an error: that upgrade breaks the connector.
    """,
)
ALLOWED = Rule(
    "TASK005",
    Severity.WARNING,
    "A connector needs tasks.max.enforce=false",
    "The property is deprecated and will be removed in an upcoming major release, and the connector fails without it",
    KIP,
    """
    tasks.max.enforce=false lets a connector have more tasks than tasks.max. It was made for an emergency, is deprecated
    from the beginning, and will be taken away by a later major release; every release up to 4.3 has it.

    The bug is the plugin's. Report it, raise tasks.max to what the connector generates, and remove the property.

    On workers before 3.8 the property means nothing. There this is only an information: the connector is ready for an
    upgrade.
    """,
)
NEEDLESS = Rule(
    "TASK006",
    Severity.INFO,
    "tasks.max.enforce=false is set where nothing needs it",
    "The property is deprecated, and hides a plugin that begins to generate too many tasks",
    KIP,
    """
    The connector has no more tasks than tasks.max, so that nothing would fail without tasks.max.enforce=false.

    Remove it: it is deprecated, and with it nobody learns when a later version of the plugin generates too many.
    """,
)
FEWER = Rule(
    "TASK007",
    Severity.INFO,
    "A connector has fewer tasks than tasks.max",
    "tasks.max is an upper bound; more tasks than the connector can split its work into do not help",
    "KIP-1004, Motivation",
    """
    tasks.max is what a connector may have, not what it gets. It has fewer where its work cannot be split further: a file
    is read by one task, a database by no more tasks than it has tables, a topic by no more than it has partitions.

    That is normal. It is told because who raised tasks.max may wonder why nothing became faster; and because a connector
    without any task runs and copies nothing.
    """,
)
INVALID = Rule(
    "TASK008",
    Severity.ERROR,
    "tasks.max or tasks.max.enforce has a value that no worker takes",
    "The connector fails when it starts, and every change of its configuration is refused",
    "ConnectorConfig; KIP-1004, Public Interfaces",
    """
    tasks.max is a whole number of at least 1, tasks.max.enforce is true or false. Validation refuses anything else, so
    that such a value gets into the config topic only past it: by a record written by hand, or by a worker so old that it
    does not know tasks.max.enforce.

    In that last case the connector runs, and fails with the first worker of 3.8 or newer.
    """,
)
RESUME = Rule(
    "TASK009",
    Severity.WARNING,
    "A stopped connector had more tasks than tasks.max when it last ran",
    "If it generates as many when it is resumed it FAILS, and none of its tasks start",
    CHECK,
    """
    A stopped connector has no tasks, and generates new ones when it is resumed. Those of its last run are still in the
    config topic: they were more than tasks.max allows now.

    Either tasks.max has been lowered since, and then a sound plugin generates fewer. Or the plugin ignores tasks.max: where
    the tasks' own configurations show that they were generated for a smaller tasks.max, that is certain, and is said.

    Raise tasks.max before you resume it.
    """,
)

RULES: tuple[Rule, ...] = (REFUSED, SET_FAILED, DOOMED, UPGRADE, ALLOWED, NEEDLESS, FEWER, INVALID, RESUME)

"""The rules for what every connector's configuration has: CONFIG001 to CONFIG015."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

NO_CLASS = Rule(
    "CONFIG001",
    Severity.ERROR,
    "connector.class is missing, or no worker has such a plugin",
    "Workers refuse the configuration",
    "AbstractHerder.validateConnectorConfig",
    """
    connector.class names the connector's class in full, or by its short name with or without the word Connector. A worker
    knows the classes that were in its plugin.path when it started; GET /connector-plugins lists them.

    Write the class that the plugin's documentation names, or install the plugin on every worker and restart them.
    """,
)
BAD_NAME = Rule(
    "CONFIG002",
    Severity.ERROR,
    "The connector has no name, or one that workers refuse",
    "Workers refuse the configuration",
    "ConnectorConfig, ConnectorsResource.checkAndPutConnectorConfigName",
    """
    A name is not empty and has no control characters. Where name is also a property of the configuration, it must be the
    same: workers take the blanks around the one and not around the other.
    """,
)
UNREACHABLE_NAME = Rule(
    "CONFIG003",
    Severity.WARNING,
    "The connector gets a name that no request can use",
    "Workers create it, and nobody can stop it, change it or delete it through their REST API any more",
    "ConnectorsResource, seen on workers from 4.0 on",
    """
    The name of a connector is part of the address of every request about it. The workers' server refuses addresses with
    an escaped slash, backslash or percent sign as ambiguous, and takes a name of one or two dots for a way up. Workers
    check none of that when a connector is created: it is there, runs, and every request about it gets 400 or 405.

    Give it a name of letters, digits, dots, dashes and underscores.
    """,
)
BAD_TASKS_MAX = Rule(
    "CONFIG004",
    Severity.ERROR,
    "tasks.max is not an integer from 1 on",
    "Workers refuse the configuration",
    "ConnectorConfig",
    """
    tasks.max is the most tasks that a connector may have, a whole number from 1 on, and 1 where it is not set.
    """,
)
ALLOWED_TOO_MANY = Rule(
    "CONFIG005",
    Severity.WARNING,
    "tasks.max.enforce is false",
    "A later release of Kafka has the property no more, and the connector may then be FAILED",
    "KIP-1004, Public Interfaces",
    """
    From 3.8 on a connector that generates more tasks than tasks.max is FAILED, unless tasks.max.enforce is false. The
    property was deprecated on the day it came: it is there to win time.

    Raise tasks.max to what the connector generates, or have the connector corrected, and leave the property out.
    """,
)
BAD_VALUE = Rule(
    "CONFIG006",
    Severity.ERROR,
    "A property of Connect itself has a value that workers refuse",
    "Workers refuse the configuration",
    "ConnectorConfig, SinkConnectorConfig, ConfigDef",
    """
    What all connectors have in common is checked by every worker: words must be among those allowed, in lower case unless
    the documentation says otherwise, switches true or false, times whole numbers. An empty value is not the same as none.
    """,
)
NULL = Rule(
    "CONFIG007",
    Severity.ERROR,
    "A property has null for a value",
    "Workers refuse the configuration",
    "AbstractHerder.addNullValuedErrors",
    """
    From 3.7 on workers refuse null for any property in a whole configuration. In a change that is merged into the present
    one (PATCH) null takes the property out, and is fine.

    Leave the property out.
    """,
)
NO_TOPICS = Rule(
    "CONFIG008",
    Severity.ERROR,
    "A sink connector's topics are not given, given twice, or given with gaps",
    "Workers refuse the configuration",
    "SinkConnectorConfig.validate",
    """
    A sink connector reads the topics of topics, or those that match topics.regex: one of the two, not both. topics has no
    empty and no double entries.
    """,
)
OWN_DEAD_LETTERS = Rule(
    "CONFIG009",
    Severity.ERROR,
    "A sink connector would read its own dead letters",
    "Workers refuse the configuration",
    "SinkConnectorConfig.validate",
    """
    What a sink connector cannot read goes to errors.deadletterqueue.topic.name. Were that among its own topics, it would
    read it, fail on it again, and write it there again.
    """,
)
IDLE_DEAD_LETTERS = Rule(
    "CONFIG010",
    Severity.WARNING,
    "There is a dead letter queue, and errors are not tolerated",
    "The task fails at the first record that it cannot read instead of continuing with the next",
    "KIP-298, SinkConnectorConfig",
    """
    errors.tolerance is none unless it is set, and then the first record that cannot be converted or transformed ends the
    task. A dead letter queue makes sense with errors.tolerance=all.
    """,
)
WORKERS_GROUP = Rule(
    "CONFIG011",
    Severity.ERROR,
    "A sink connector's consumer group is the workers' own group",
    "Workers refuse the configuration",
    "DistributedHerder.validateSinkConnectorGroupId",
    """
    A sink's group is connect-<name>, or consumer.override.group.id. A group has one kind of members: workers or consumers.
    """,
)
NOT_DEFINED = Rule(
    "CONFIG012",
    Severity.ERROR,
    "A transformation or predicate is named and not defined, or named twice",
    "Workers refuse the configuration",
    "ConnectorConfig.EnrichablePlugin",
    """
    Every alias in transforms and in predicates needs its type: transforms.<alias>.type. Empty entries of the list are
    aliases, too: look for a comma too many.
    """,
)
NO_PREDICATE = Rule(
    "CONFIG013",
    Severity.ERROR,
    "A transformation uses a predicate that predicates does not list",
    "Every task fails at its start, although workers take the configuration",
    "ConnectorConfig.transformationStages",
    """
    transforms.<alias>.predicate names an alias that must be in predicates. Workers do not check this: the connector is
    created, and its tasks fail with "Unknown configuration 'predicates.<alias>.plugin.version'".
    """,
)
NOT_LISTED = Rule(
    "CONFIG014",
    Severity.WARNING,
    "A transformation or predicate is configured and not listed",
    "It does nothing, without a word",
    "ConnectorConfig.transformationStages",
    """
    Only the aliases in transforms are applied, in their order, and only those in predicates are known. What is configured
    beside them is ignored.
    """,
)
TOPIC_CREATION = Rule(
    "CONFIG015",
    Severity.ERROR,
    "Topic creation is configured without its defaults",
    "The connector is FAILED at its start, although workers take the configuration",
    "SourceConnectorConfig, KIP-158",
    """
    As soon as a source connector has any property that begins with topic.creation. it needs
    topic.creation.default.replication.factor and topic.creation.default.partitions; -1 is the brokers' default. Workers
    with topic.creation.enable=false ignore all of it.
    """,
)
RULES: tuple[Rule, ...] = (
    NO_CLASS,
    BAD_NAME,
    UNREACHABLE_NAME,
    BAD_TASKS_MAX,
    ALLOWED_TOO_MANY,
    BAD_VALUE,
    NULL,
    NO_TOPICS,
    OWN_DEAD_LETTERS,
    IDLE_DEAD_LETTERS,
    WORKERS_GROUP,
    NOT_DEFINED,
    NO_PREDICATE,
    NOT_LISTED,
    TOPIC_CREATION,
)

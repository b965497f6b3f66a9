"""The rules for client overrides and for a connector's offsets topic: CONFIG020 to CONFIG028."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

IGNORED = Rule(
    "CONFIG020",
    Severity.WARNING,
    "A client override is ignored with exactly-once",
    "The connector does not run the way its configuration says",
    "Worker, ConnectUtils.ensureProperty, KIP-618, Connector principal permissions",
    """
    With exactly-once enabled a worker sets three client properties of a source connector itself: its producers'
    enable.idempotence and transactional.id, and the isolation.level of the consumer that reads its offsets. What the
    connector's configuration says about them is dropped, with a warning in the worker's log.

    Leave these overrides out: the day that exactly-once is switched off they count again, and transactional.id then makes
    the tasks fail.
    """,
)
BREAKS = Rule(
    "CONFIG021",
    Severity.ERROR,
    "A producer override is not allowed for a transactional producer",
    "Every task fails when it makes its producer, although workers take the configuration",
    "ProducerConfig.postProcessAndValidateIdempotenceConfigs",
    """
    A transactional producer is idempotent, and an idempotent one needs acks=all, retries of at least 1 and no more than 5
    requests in flight. Workers do not check this when they validate a configuration: the connector is created, and its
    tasks fail at their start.

    Without exactly-once the same holds for a connector that sets enable.idempotence to true.
    """,
)
NEVER_STARTS = Rule(
    "CONFIG022",
    Severity.ERROR,
    "A producer override keeps the tasks from ever starting",
    "The producer tries to get its producer id for ever; tasks have no status, and nothing fails",
    "TransactionManager.initializeTransactions",
    """
    A transaction.timeout.ms of 0 or less is taken by the workers' validation and by the producer's own configuration. The
    producer then fails to build its first request, logs "transaction timeout value is not positive", and tries again
    without end. The connector is RUNNING and no task of it ever shows up.

    Leave the override out for 60000, or give more than the time in which a batch, or an interval, is written.
    """,
)
ID_WITHOUT_IDEMPOTENCE = Rule(
    "CONFIG023",
    Severity.ERROR,
    "A connector has a transactional id where exactly-once is not enabled",
    "Every task fails when it makes its producer, although workers take the configuration",
    "ProducerConfig.postProcessAndValidateIdempotenceConfigs",
    """
    Without exactly-once a worker's producers are not idempotent, and a producer with a transactional id has to be. With
    idempotence switched on as well the producer comes about, and fails at its first record: nobody begins a transaction.

    Leave producer.override.transactional.id out. With exactly-once each task gets an id of its own from its worker.
    """,
)
BAD_OVERRIDE = Rule(
    "CONFIG024",
    Severity.ERROR,
    "A client override has a value that Kafka's client refuses",
    "Workers answer every request about the connector with an error, or its tasks fail at their start",
    "AbstractHerder.validateClientOverrides, ProducerConfig, ConsumerConfig, AdminClientConfig",
    """
    Where a value is of the wrong type, a worker cannot validate the configuration at all and answers 500. A value of the
    right type that the client does not allow is taken, and connector or tasks fail when they make their client.

    A source connector's consumer and admin client come about with exactly-once, with a dedicated offsets topic, or to
    create topics: until then nobody looks at their overrides.
    """,
)
NOT_ALLOWED = Rule(
    "CONFIG025",
    Severity.ERROR,
    "The workers' policy does not allow a client override",
    "Workers refuse the configuration",
    "AbstractConnectorClientConfigOverridePolicy",
    """
    connector.client.config.override.policy says which client properties a connector may override: All of them, which is
    the default, None, those of the Principal, or those on an Allowlist. It is asked only about the clients that a connector
    has, and with exactly-once enabled a source connector has a consumer and an admin client, too.

    Leave the override out, or have it allowed on every worker.
    """,
)
NOT_ALLOWED_LATER = Rule(
    "CONFIG028",
    Severity.ERROR,
    "Kafka 5.0 does not allow a client override that the connector has",
    "Workers refuse the configuration, and a connector that is there is FAILED when it starts on them",
    "KIP-1188, AllowlistConnectorClientConfigOverridePolicy",
    """
    Up to 4.x workers allow every client override where connector.client.config.override.policy is not set. From 5.0 on the
    default is an allow-list that is empty: none is allowed. It is asked only about the clients that a connector has.

    Since 4.2 the new policy can be set today: connector.client.config.override.policy=Allowlist, with the properties in
    connector.client.config.override.allowlist (their names in the client, as linger.ms), on every worker. Or set the policy
    to All to keep what is. Principal is deprecated since 4.2. connectors cure sets two overrides of the admin client.
    """,
)
BAD_OFFSETS_TOPIC = Rule(
    "CONFIG026",
    Severity.ERROR,
    "offsets.storage.topic is not a valid topic name",
    "Workers refuse an empty name; with any other the connector fails, because its topic cannot be created",
    "SourceConnectorConfig, Topic.validate",
    """
    For the workers' own topic leave offsets.storage.topic out. Kafka's documentation says that an empty value means the
    same; workers refuse it.

    Names of topics have up to 249 ASCII letters, digits, dots, underscores and dashes. Workers do not check that when they
    validate: the connector is created and FAILED.
    """,
)
BAD_TARGET = Rule(
    "CONFIG027",
    Severity.ERROR,
    "A topic that the connector uses cannot have that name",
    "Its tasks fail when they first write to the topic or read from it, although workers take the configuration",
    "Topic.validate",
    """
    Names of topics have up to 249 ASCII letters, digits, dots, underscores and dashes. A source task that writes to another
    name waits for its metadata first, and can look RUNNING for a while; a sink task fails at once.
    """,
)
RULES: tuple[Rule, ...] = (
    IGNORED,
    BREAKS,
    NEVER_STARTS,
    ID_WITHOUT_IDEMPOTENCE,
    BAD_OVERRIDE,
    NOT_ALLOWED,
    NOT_ALLOWED_LATER,
    BAD_OFFSETS_TOPIC,
    BAD_TARGET,
)

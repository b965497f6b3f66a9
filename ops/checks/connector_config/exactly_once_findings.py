"""The rules for a source connector's exactly-once properties: EOS001 to EOS015 (KIP-618)."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

NOT_ENABLED = Rule(
    "EOS001",
    Severity.ERROR,
    "exactly.once.support is required, and workers are not enabled",
    "Workers refuse to create the connector, and to change its configuration",
    "DistributedHerder.validateSourceConnectorExactlyOnceSupport",
    """
    With exactly.once.support=required a connector asks to run with exactly-once or not at all. A worker whose
    exactly.once.source.support is disabled or preparing refuses it when it validates the configuration. Preparing counts
    as not enabled.

    A connector that is there already goes on running on such a worker, without exactly-once, and its tasks can be
    restarted, stopped and resumed: only a change of its configuration is refused. So it is a warning on the way down or
    to preparing, and no reason to stay. Enable exactly-once on all workers first (connectctl upgrade plan), or write
    requested.
    """,
)
UNSUPPORTED = Rule(
    "EOS002",
    Severity.ERROR,
    "exactly.once.support is required, and the connector does not support it with this configuration",
    "Workers refuse to create the connector, and to change its configuration",
    "SourceConnector.exactlyOnceSupport",
    """
    Before a worker takes a configuration with exactly.once.support=required it asks the connector's class, which knows
    what its source can do. This one says no to the configuration at hand.

    It may say yes to another: FileStreamSource needs a file, MirrorSource a source consumer with read_committed. See the
    connector's documentation, or write requested to run it without the guarantee.
    """,
)
SAYS_NOTHING = Rule(
    "EOS003",
    Severity.ERROR,
    "exactly.once.support is required, and the connector does not say whether it supports it",
    "Workers refuse to create the connector, and to change its configuration",
    "SourceConnector.exactlyOnceSupport",
    """
    The question came with 3.3, and a connector that is older, or whose authors left it out, gives no answer. Workers take
    that for a no.

    Its documentation may tell more than the class does. If the connector tracks offsets of its own and repeats nothing
    that they cover, requested gives the same guarantee, without the check.
    """,
)
FAILS_WHEN_ASKED = Rule(
    "EOS004",
    Severity.ERROR,
    "The connector fails when it is asked about exactly-once",
    "Workers refuse to create the connector, and to change its configuration",
    "SourceConnector.exactlyOnceSupport",
    """
    The connector's class threw an exception instead of an answer, mostly because it reads properties that are wrong or
    missing. The worker's log has the stack trace.

    Put the other findings of this connector right first; then ask again.
    """,
)
NO_GUARANTEE = Rule(
    "EOS005",
    Severity.WARNING,
    "The connector runs with transactions, and without the guarantee that they are for",
    "After a restart records may be written twice, or not at all, although exactly-once is enabled",
    "KIP-618, Connector API expansions",
    """
    Once workers are enabled, every source connector writes in transactions. The guarantee also needs a source that can
    be read again from an offset, and this connector says that it has none with its configuration.

    With exactly.once.support=requested, which is the default, workers run it all the same. Write required for
    connectors that must not run without the guarantee.
    """,
)
BAD_SUPPORT = Rule(
    "EOS006",
    Severity.ERROR,
    "exactly.once.support is neither requested nor required",
    "Workers refuse the configuration",
    "SourceConnectorConfig",
    """
    A connector requests exactly-once or requires it; there is no third way, and none to switch it off for one connector.
    Case does not matter, an empty value does.
    """,
)
BAD_BOUNDARY = Rule(
    "EOS007",
    Severity.ERROR,
    "transaction.boundary is neither poll, interval nor connector",
    "Workers refuse the configuration, even where exactly-once is not enabled",
    "SourceConnectorConfig",
    """
    The boundary says when a task's transaction ends: with every batch that it gave the worker (poll), after a time
    (interval), or when the connector says so (connector). Case does not matter.
    """,
)
NO_BOUNDARIES = Rule(
    "EOS008",
    Severity.ERROR,
    "transaction.boundary is connector, and the connector defines no boundaries",
    "Workers refuse the configuration, even where exactly-once is not enabled",
    "SourceConnector.canDefineTransactionBoundaries",
    """
    A connector that ends transactions itself must say that it can. This one says that it cannot, says nothing, or fails
    when it is asked; without a word of its own a connector cannot.

    Use poll, which is the default, or interval for fewer and larger transactions.
    """,
)
BAD_INTERVAL = Rule(
    "EOS009",
    Severity.ERROR,
    "transaction.boundary.interval.ms is not a number of milliseconds",
    "Workers refuse the configuration, even where the interval is not used",
    "SourceConnectorConfig",
    """
    The interval is a whole number from 0 on. It is checked whatever transaction.boundary is, and whether or not
    exactly-once is enabled. Leave it out for the worker's offset.flush.interval.ms.
    """,
)
IDLE_INTERVAL = Rule(
    "EOS010",
    Severity.INFO,
    "transaction.boundary.interval.ms is set and not used",
    "Transactions do not end when somebody meant them to",
    "KIP-618, Transaction boundaries",
    """
    The interval counts only with transaction.boundary=interval. With poll, the default, a transaction ends with every
    batch; with connector when the connector says so.
    """,
)
LONG_INTERVAL = Rule(
    "EOS011",
    Severity.ERROR,
    "The transaction interval is not shorter than the transaction timeout",
    "The broker ends the transaction before the task does, and the task fails",
    "ExactlyOnceWorkerSourceTask, KIP-618, Transaction timeouts",
    """
    A broker rolls a transaction back that is open for longer than the producer's transaction.timeout.ms, 60000 if nobody
    said otherwise. With transaction.boundary=interval a task commits when the interval is over, at the first batch after
    it, and then learns that its epoch is an old one. It fails with "unable to finish writing records to Kafka before its
    producer transaction expired".

    Make the interval shorter, or set producer.override.transaction.timeout.ms to a good deal more than the interval and
    to no more than the brokers' transaction.max.timeout.ms. Mind that readers with read_committed wait that long for
    every record.
    """,
)
WORKERS_INTERVAL = Rule(
    "EOS012",
    Severity.WARNING,
    "transaction.boundary is interval, and the interval is the worker's",
    "The worker's default is as long as the transaction timeout, so that tasks may fail",
    "SourceConnectorConfig, WorkerConfig",
    """
    Without transaction.boundary.interval.ms the worker's offset.flush.interval.ms decides, 60000 by default. The default
    of a producer's transaction.timeout.ms is the same number, and a transaction always ends a little later than its
    interval.

    Say transaction.boundary.interval.ms in the connector's configuration, and make it a good deal shorter than the
    timeout.
    """,
)
NO_EFFECT = Rule(
    "EOS013",
    Severity.INFO,
    "Properties of exactly-once are set where they have no effect",
    "Somebody may take the connector to have a guarantee that it does not have",
    "SourceConnectorConfig",
    """
    exactly.once.support, transaction.boundary and offsets.storage.topic are for source connectors; a sink connector's are
    ignored, and are not even checked. A sink's own records to another system are exactly-once only if the connector sees
    to it.

    A source connector's transaction.boundary has no effect on workers that are not enabled: there are no transactions.
    """,
)
WORKERS_PROPERTY = Rule(
    "EOS014",
    Severity.WARNING,
    "A worker's property is in the configuration of a connector",
    "It is ignored there, without a word",
    "DistributedConfig, SourceConnectorConfig",
    """
    Workers and connectors have properties of nearly the same name: exactly.once.source.support and offset.storage.topic
    are a worker's, exactly.once.support and offsets.storage.topic a connector's. Connect ignores what it does not know.

    A connector with the wrong one runs with the defaults: exactly-once is requested and not required, and its offsets are
    in the workers' topic.
    """,
)
DISAGREE = Rule(
    "EOS015",
    Severity.ERROR,
    "Workers disagree about the configuration",
    "Whether it is taken depends on the worker that is asked, and a task may fail when it is moved",
    "DistributedHerder.validateConnectorConfig",
    """
    Any worker can be sent a configuration, and it is the one who validates it. Workers answer differently where their
    exactly-once support, their versions, their plugins or their override policies differ: mostly in the middle of a
    rolling change, or because plugins were not installed everywhere.

    Compare the workers (connectctl cluster show) and make them alike.
    """,
)
RULES: tuple[Rule, ...] = (
    NOT_ENABLED,
    UNSUPPORTED,
    SAYS_NOTHING,
    FAILS_WHEN_ASKED,
    NO_GUARANTEE,
    BAD_SUPPORT,
    BAD_BOUNDARY,
    NO_BOUNDARIES,
    BAD_INTERVAL,
    IDLE_INTERVAL,
    LONG_INTERVAL,
    WORKERS_INTERVAL,
    NO_EFFECT,
    WORKERS_PROPERTY,
    DISAGREE,
)

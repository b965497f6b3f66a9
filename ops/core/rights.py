"""The rights that connectctl itself needs, by command: what its principal has to be allowed, and
what is missing without.

One table, from which ``docs/rights.md`` is made, ``preflight --self`` is judged, and
``--self --emit`` prints. A row names the call of an edge that needs the right
(``ops/clients/protocols.py``) and what it is about by its role; the names of a cluster are filled
in later (``ops/checks/own_rights/rules.py``). Rights as Kafka's ``KafkaApis`` asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from connectctl.ops.kafka.acls import Operation, Resource


class Name(StrEnum):
    CLUSTER = "the Kafka cluster"
    GROUP = "group.id"
    ANY_GROUP = "every group"
    CONFIG = "the config topic"
    OFFSETS = "the offsets topic"
    STATUS = "the status topic"
    DEDICATED = "connectors' own offsets topics"
    TARGETS = "the topics that connectors write to"
    ANY_TOPIC = "every topic"
    LOG = "__transaction_state"
    GROUP_LOG = "__consumer_offsets"
    TASKS = "<group.id>-<connector>-<task>"
    LEADER = "connect-cluster-<group.id>"
    CHANGES = "connectctl-offsets-<group.id>"
    PRESENCE = "connectctl-run-<group.id>-<connector>"
    RUN_STATUS = "<group.id>-run-status"
    LOCK = "connectctl-lock-<group.id>"
    ANY_ID = "every transactional id"
    SINK_GROUPS = "the consumer groups of sinks"
    SINK_TOPICS = "the topics that sinks read"
    SINK_OUTPUTS = "manifests and dead letters of sinks"


class Effect(StrEnum):
    """The effect of a missing right: the command is refused, or sees a part and reports it."""

    REFUSED = "refused"
    PART = "sees a part"


class When(StrEnum):
    ALWAYS = "always"
    UNNAMED = "internal topics are not named"
    CREATES = "it creates the topic"
    ENABLED = "workers are preparing or enabled"
    DEDICATED = "the connector has an offsets topic of its own"
    GLOBAL = "it writes to the offsets topic"
    PRODUCED = "tasks of the connector have had producers"
    OPEN = "a transaction is open on it"
    CHANGED = "the run has changed a worker"


@dataclass(frozen=True)
class Allowed:
    """The operations that brokers allow; None if they do not report them, with the reason in
    ``why``.
    """

    operations: frozenset[Operation] | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """A right that a command needs: ``operation`` on ``resource`` of that ``name``, for ``call``, a
    method of an edge.

    A call is one of ``ops/clients/protocols.py``, or of a module beside it that is named before it.
    ``without`` describes what is missing without the right.
    """

    call: str
    operation: Operation
    resource: Resource
    name: Name
    effect: Effect
    without: str
    when: When = When.ALWAYS


_D, _R, _W = Operation.DESCRIBE, Operation.READ, Operation.WRITE
_DC, _C = Operation.DESCRIBE_CONFIGS, Operation.CREATE
_DESCRIBED = "kafka_protocol.group_coordinator.Coordinator.describe"
_LEAVE = "kafka_protocol.group_coordinator.Coordinator.remove_static"
_STABLE_OFFSETS = "kafka_protocol.group_coordinator.Coordinator.stable_offsets"
_TOPIC, _GROUP, _ID, _CLUSTER = (
    Resource.TOPIC,
    Resource.GROUP,
    Resource.TRANSACTIONAL_ID,
    Resource.CLUSTER,
)
_REFUSED, _PART = Effect.REFUSED, Effect.PART


def _reads(name: Name, effect: Effect, without: str, when: When = When.ALWAYS) -> tuple[Need, ...]:
    """To read a topic to its end; Read includes Describe, which a deny can still take away."""
    return (
        Need("KafkaReads.extents", _D, _TOPIC, name, effect, without, when),
        Need("KafkaReads.image", _R, _TOPIC, name, effect, without, when),
    )


_WORKERS = Need(
    "KafkaReads.group",
    _D,
    _GROUP,
    Name.GROUP,
    _REFUSED,
    "which workers are running, with their connectors and tasks",
)
_FIND = Need(
    "KafkaReads.compacted",
    _D,
    _TOPIC,
    Name.ANY_TOPIC,
    _PART,
    "internal topics that are not named",
    When.UNNAMED,
)
_LOG_SEEN = Need(
    "KafkaReads.topics",
    _D,
    _TOPIC,
    Name.LOG,
    _PART,
    "the coordinators of transactional ids, and their topic",
)
_OWN_LAYOUT = Need(
    "KafkaReads.topics",
    _DC,
    _TOPIC,
    Name.DEDICATED,
    _PART,
    "their cleanup.policy, and the findings based on it",
)
_HIDDEN_OFFSETS = Need(
    "KafkaReads.existing",
    _D,
    _TOPIC,
    Name.OFFSETS,
    _PART,
    "whether the offsets topic exists, and its partitions",
)
_LAYOUT = tuple(
    Need(
        "KafkaReads.topics",
        _DC,
        _TOPIC,
        name,
        _PART,
        "its cleanup.policy, and the findings based on it",
    )
    for name in (Name.CONFIG, Name.OFFSETS, Name.STATUS)
)
_CONNECTORS_AND_STATUSES = (
    *_reads(Name.CONFIG, _PART, "connectors and their target states, if no worker responds"),
    *_reads(Name.STATUS, _PART, "statuses, if no worker responds"),
)
_LOOK = (_WORKERS, _FIND, *_CONNECTORS_AND_STATUSES)
_FENCED = Need("TransactionCalls.describe", _D, _ID, Name.TASKS, _PART, "whether a task was fenced")

_ALL_OFFSETS = (
    _FIND,
    *_reads(Name.CONFIG, _REFUSED, "which connectors have offsets topics of their own"),
    *_reads(Name.OFFSETS, _REFUSED, "offsets"),
)
_OFFSETS_SHOWN = (
    *_ALL_OFFSETS,
    *_reads(Name.DEDICATED, _PART, "offsets in a topic of the connector's own"),
    _WORKERS,
    _LAYOUT[1],
)
_OFFSETS_WHOLE = (
    *_ALL_OFFSETS,
    *_reads(Name.DEDICATED, _REFUSED, "offsets in a topic of the connector's own"),
    _WORKERS,
    _LAYOUT[1],
)
_SINKS_SHOWN = (
    Need("GroupReads.group", _D, _GROUP, Name.SINK_GROUPS, _PART, "the committed offsets of sinks"),
    Need(
        "KafkaReads.extents",
        _D,
        _TOPIC,
        Name.SINK_TOPICS,
        _PART,
        "the committed offsets of sinks in them, and the lag",
    ),
)
_BY_WORKERS = "the change, if the workers' REST API does not make it"
_SINKS_CHANGED = (
    *_SINKS_SHOWN,
    Need("GroupOffsetWrites.commit", _R, _GROUP, Name.SINK_GROUPS, _PART, _BY_WORKERS),
    Need("GroupOffsetWrites.commit", _R, _TOPIC, Name.SINK_TOPICS, _PART, _BY_WORKERS),
    Need(
        "GroupOffsetWrites.delete", Operation.DELETE, _GROUP, Name.SINK_GROUPS, _PART, _BY_WORKERS
    ),
)
_RUNS = Need(
    "KafkaReads.holders",
    _D,
    _GROUP,
    Name.PRESENCE,
    _PART,
    "runs of connectctl that have the connector, unless fenced",
)
_FENCED_BEFORE = (
    _RUNS,
    Need(
        "TransactionCalls.describe",
        _D,
        _ID,
        Name.TASKS,
        _REFUSED,
        "which producers to fence, unless no run is alive",
        When.PRODUCED,
    ),
    Need(
        "TransactionCalls.fence",
        _W,
        _ID,
        Name.TASKS,
        _REFUSED,
        "fencing the producers that may also write them",
        When.PRODUCED,
    ),
)
_LOCK = Need(
    "ClusterLock.held",
    _R,
    _GROUP,
    Name.LOCK,
    _REFUSED,
    "the cluster lock, unless --lock local is given",
)
_CHANGE = (_WORKERS, _LOCK, _FIND, *_CONNECTORS_AND_STATUSES)
_HOLDER = Need("ClusterLock.holder", _D, _GROUP, Name.LOCK, _PART, "the holder of the cluster lock")
_IN_A_TRANSACTION = "the write, which is one transaction"
_OFFSETS_WRITTEN = (
    _WORKERS,
    _LOCK,
    *_ALL_OFFSETS,
    *_reads(Name.DEDICATED, _REFUSED, "offsets in a topic of the connector's own", When.DEDICATED),
    *_reads(Name.STATUS, _PART, "statuses, if no worker responds"),
    *_FENCED_BEFORE,
    Need("KafkaWrites.transact", _W, _TOPIC, Name.OFFSETS, _REFUSED, "the write", When.GLOBAL),
    Need("KafkaWrites.transact", _W, _TOPIC, Name.DEDICATED, _REFUSED, "the write", When.DEDICATED),
    Need("KafkaWrites.transact", _D, _ID, Name.CHANGES, _REFUSED, _IN_A_TRANSACTION),
    Need("KafkaWrites.transact", _W, _ID, Name.CHANGES, _REFUSED, _IN_A_TRANSACTION),
    _LAYOUT[1],
)
_OFFSETS_MOVED = (
    *_OFFSETS_WRITTEN,
    Need(
        "KafkaWrites.create_topic", _C, _TOPIC, Name.DEDICATED, _REFUSED, "the topic", When.CREATES
    ),
)

_EVERY_ID = (
    Need("TransactionCalls.listed", _D, _ID, Name.ANY_ID, _PART, "the transactions of other ids"),
    Need(
        "AclReads.bindings",
        _D,
        _CLUSTER,
        Name.CLUSTER,
        _PART,
        "the proof that no transaction is omitted",
    ),
    Need(
        "AclReads.authorizer",
        _DC,
        _CLUSTER,
        Name.CLUSTER,
        _PART,
        "the proof that no transaction is omitted",
    ),
)
_OTHER_GROUPS = Need(
    "TransactionCalls.connect_groups", _D, _GROUP, Name.ANY_GROUP, _PART, "the owners of other ids"
)
_LISTED_GROUPS = Need(
    "TransactionCalls.connect_groups", _D, _CLUSTER, Name.CLUSTER, _PART, "the owners of other ids"
)
_PRODUCERS = Need(
    "TransactionCalls.producers",
    _R,
    _TOPIC,
    Name.TARGETS,
    _REFUSED,
    "which producers have a transaction open in it",
)
_PRODUCERS_OF_OWN = Need(
    "TransactionCalls.producers",
    _R,
    _TOPIC,
    Name.DEDICATED,
    _PART,
    "which producers have a transaction open in it",
)
_PROOF = Need(
    "TransactionLogReads.entries",
    _R,
    _TOPIC,
    Name.LOG,
    _REFUSED,
    "the proof of whether a coordinator has the producer",
)
_PROOF_OF_OPEN = replace(_PROOF, effect=_PART, when=When.OPEN)
_MARKERS = Need(
    "TransactionLogReads.preceding",
    _DC,
    _TOPIC,
    Name.TARGETS,
    _REFUSED,
    "the proof that compaction removed no marker",
)
_MARKERS_OF_OPEN = replace(
    _MARKERS, effect=_PART, when=When.OPEN, without="whether it was to be committed"
)
_BY_ID = tuple(
    Need(
        call,
        operation,
        _ID,
        Name.TASKS,
        _PART,
        "the end of a transaction that is named by its transactional id",
    )
    for call, operation in (("TransactionCalls.describe", _D), ("TransactionCalls.fence", _W))
)
_ENDED = (
    Need("TransactionCalls.topic_partitions", _D, _TOPIC, Name.TARGETS, _REFUSED, "the partition"),
    _PRODUCERS,
    _PROOF,
    _LOCK,
    Need(
        "TransactionCalls.mark",
        Operation.ALTER,
        _CLUSTER,
        Name.CLUSTER,
        _REFUSED,
        "the end of the transaction",
    ),
)
_OWNERS = (
    Need(
        "KafkaReads.group",
        _D,
        _GROUP,
        Name.GROUP,
        _PART,
        "which connectors have the ids, and the workers' topics",
    ),
    *_reads(Name.CONFIG, _PART, "which connectors of the config topic have the ids"),
)
_ROLES = (
    *_OWNERS,
    *(
        Need("KafkaReads.existing", _D, _TOPIC, name, _PART, "which topics are the workers' own")
        for name in (Name.OFFSETS, Name.STATUS)
    ),
)
_LEADER_MODE = Need(
    "TransactionCalls.describe",
    _D,
    _ID,
    Name.LEADER,
    _PART,
    "whether the leader is preparing",
    When.ENABLED,
)
_BROKER_SETTINGS = Need(
    "BrokerReads.settings",
    _DC,
    _CLUSTER,
    Name.CLUSTER,
    _PART,
    "the brokers' configuration (transactions, topics)",
)
_READERS = Need(
    "BrokerReads.readers",
    _D,
    _CLUSTER,
    Name.CLUSTER,
    _PART,
    "groups that may not be described individually",
)
_CHECKS = (
    *_LOOK,
    *_LAYOUT,
    *_reads(Name.OFFSETS, _PART, "whether its records can be read, and their owner"),
    *_reads(Name.DEDICATED, _PART, "whether connectors lose offsets"),
    Need(
        "KafkaReads.topics", _D, _TOPIC, Name.TARGETS, _PART, "the topics that connectors write to"
    ),
    _OWN_LAYOUT,
    _LOG_SEEN,
    _BROKER_SETTINGS,
    _READERS,
    _FENCED,
    _LEADER_MODE,
    *_EVERY_ID,
    _OTHER_GROUPS,
)
_REBALANCES = Need(
    "KafkaReads.group_log",
    _R,
    _TOPIC,
    Name.GROUP_LOG,
    _PART,
    "how often the group rebalanced, and which workers came and went",
)
_DOCTOR = (
    *(need for need in _CHECKS if need.name is not Name.TARGETS),
    _REBALANCES,
    Need(
        "KafkaReads.tails",
        _R,
        _TOPIC,
        Name.GROUP_LOG,
        _PART,
        "whether the lag of sinks grows, and which partitions stand still",
    ),
    Need("KafkaReads.offsets_at", _D, _TOPIC, Name.SINK_TOPICS, _PART, "the lag of sinks"),
    Need(
        "KafkaReads.tails",
        _R,
        _TOPIC,
        Name.TARGETS,
        _PART,
        "the newest records of sources that are silent",
    ),
)
_ROLL = (
    *_reads(Name.DEDICATED, _REFUSED, "whether connectors lose offsets"),
    *_CHECKS,
    Need(
        "KafkaReads.topics",
        _DC,
        _TOPIC,
        Name.LOG,
        _PART,
        "the partitions and replicas of the coordinators' topic",
    ),
)
_ROLL_GOES_ON = (*_reads(Name.DEDICATED, _PART, "whether connectors lose offsets"), *_ROLL[2:])
"""A roll that began is continued, or taken back, without a new look at what its plan was made
from.
"""
_RUN_ARCHIVES = "runs of archives, and of sinks with dead letters"
_RUN_SINKS = "runs of sinks and transforms: membership, records and offsets"
_RUN = (
    _WORKERS,
    Need(
        "ClusterLock.held",
        _R,
        _GROUP,
        Name.LOCK,
        _PART,
        "the cluster lock (a take-over is refused without it)",
    ),
    Need(
        "KafkaReads.holders",
        _D,
        _GROUP,
        Name.PRESENCE,
        _PART,
        "other runs of the connector (a take-over is refused)",
    ),
    Need(
        "kafka_protocol.run_presence.Presence.join",
        _R,
        _GROUP,
        Name.PRESENCE,
        _PART,
        "visibility to other runs (a take-over is refused)",
    ),
    *(
        each
        for name in (Name.CONFIG, Name.OFFSETS, Name.STATUS)
        for each in (
            *_reads(name, _REFUSED, "its offsets, and other runs of the connector"),
            Need("KafkaWrites.transact", _W, _TOPIC, name, _REFUSED, "its records there"),
            Need("KafkaWrites.create_topic", _C, _TOPIC, name, _REFUSED, "the topic", When.CREATES),
        )
    ),
    *_LAYOUT,
    *_reads(Name.DEDICATED, _REFUSED, "the connector's offsets"),
    Need(
        "KafkaWrites.transact", _W, _TOPIC, Name.DEDICATED, _REFUSED, "the offsets that it commits"
    ),
    Need("KafkaWrites.transact", _W, _TOPIC, Name.TARGETS, _REFUSED, "its records"),
    Need("TransactionCalls.describe", _D, _ID, Name.TASKS, _REFUSED, "its tasks' older producers"),
    Need("TransactionCalls.fence", _W, _ID, Name.TASKS, _REFUSED, "fencing, and transactions"),
    Need(_STABLE_OFFSETS, _D, _GROUP, Name.SINK_GROUPS, _PART, _RUN_SINKS),
    Need("librdkafka.client.Kafka.ask", _R, _GROUP, Name.SINK_GROUPS, _PART, _RUN_SINKS),
    Need("librdkafka.client.Kafka.ask", _R, _TOPIC, Name.SINK_TOPICS, _PART, _RUN_SINKS),
    Need("KafkaReads.topics", _D, _TOPIC, Name.SINK_OUTPUTS, _PART, _RUN_ARCHIVES),
    Need("KafkaWrites.transact", _W, _TOPIC, Name.SINK_OUTPUTS, _PART, _RUN_ARCHIVES),
    Need(
        "KafkaWrites.create_topic",
        _C,
        _TOPIC,
        Name.SINK_OUTPUTS,
        _PART,
        _RUN_ARCHIVES,
        When.CREATES,
    ),
    Need(
        "KafkaReads.image", _R, _TOPIC, Name.SINK_OUTPUTS, _PART, "the orphans that --sweep removes"
    ),
    Need(
        "TransactionCalls.describe", _D, _ID, Name.LEADER, _REFUSED, "the leader's transactional id"
    ),
    Need(
        "TransactionCalls.fence",
        _W,
        _ID,
        Name.LEADER,
        _REFUSED,
        "writing to the config topic, as a leader does",
    ),
    _BROKER_SETTINGS,
)
_FENCE = (
    _WORKERS,
    _LOCK,
    _FIND,
    *_reads(Name.CONFIG, _REFUSED, "how many tasks a connector had"),
    Need("TransactionCalls.describe", _D, _ID, Name.TASKS, _REFUSED, "the ids"),
    Need("TransactionCalls.fence", _W, _ID, Name.TASKS, _REFUSED, "fencing"),
    *_EVERY_ID,
    _OTHER_GROUPS,
)

_ADDRESSES = Need("KafkaReads.group", _D, _GROUP, Name.GROUP, _REFUSED, "the workers' addresses")
_BY_NAME = "offsets that are stored under a new name"
COMMANDS: dict[str, tuple[Need, ...]] = {
    "cluster show": (*_LOOK, _HIDDEN_OFFSETS, *_LAYOUT),
    **dict.fromkeys(("connectors list", "connectors diff", "tasks check"), _LOOK),
    "connectors history": (*_LOOK, *_reads(Name.CONFIG, _REFUSED, "the configurations of before")),
    "connectors show": (*_LOOK, _FENCED),
    **dict.fromkeys(
        (
            *(
                f"connectors {each}"
                for each in ("stop", "pause", "resume", "restart", "edit", "patch", "topics")
            ),
            *("loggers set", "loggers undo", "runs undo"),
        ),
        _CHANGE,
    ),
    "connectors cure": (*_CHANGE, *_reads(Name.CONFIG, _REFUSED, "what blocks the tasks"), _FENCED),
    **dict.fromkeys(
        ("connectors create", "connectors rollback"),
        (*_CHANGE, *_reads(Name.OFFSETS, _PART, _BY_NAME)),
    ),
    "connectors apply": (*_CHANGE, *_reads(Name.OFFSETS, _PART, _BY_NAME), *_EVERY_ID),
    "connectors delete": (*_CHANGE, *_EVERY_ID),
    **dict.fromkeys(("plugins list", "plugins show", "loggers get", "validate"), (_ADDRESSES,)),
    "offsets show": (*_OFFSETS_SHOWN, *_SINKS_SHOWN),
    "offsets diff": _OFFSETS_WHOLE,
    "offsets backup": (*_OFFSETS_WHOLE, _SINKS_SHOWN[0]),
    "offsets merge": _OFFSETS_MOVED,
    **dict.fromkeys(("offsets copy", "runs resume", "runs apply"), _OFFSETS_WRITTEN),
    **dict.fromkeys(
        ("offsets set", "offsets reset", "offsets restore", "offsets undo"),
        (*_OFFSETS_WRITTEN, *_SINKS_CHANGED),
    ),
    "fence": _FENCE,
    "preflight": _CHECKS,
    "doctor": _DOCTOR,
    "bundle": _DOCTOR,
    "transactions list": (
        Need(
            "TransactionCalls.listed",
            _D,
            _ID,
            Name.ANY_ID,
            _REFUSED,
            "transactions; with rights on some ids, of others",
        ),
        *_EVERY_ID,
        *_OWNERS,
        _OTHER_GROUPS,
    ),
    "transactions show": (
        Need("TransactionCalls.describe", _D, _ID, Name.TASKS, _REFUSED, "the id"),
        Need(
            "TransactionCalls.producers",
            _R,
            _TOPIC,
            Name.TARGETS,
            _PART,
            "the progress of the transaction in a topic",
        ),
        *_OWNERS,
        _OTHER_GROUPS,
        _LISTED_GROUPS,
    ),
    "transactions hanging": (
        Need(
            "TransactionCalls.topic_partitions",
            _D,
            _TOPIC,
            Name.ANY_TOPIC,
            _PART,
            "partitions of topics that are not named",
        ),
        _PRODUCERS,
        _PROOF_OF_OPEN,
        _MARKERS_OF_OPEN,
        *_ROLES,
    ),
    "transactions lag": (
        Need(
            "TransactionCalls.bounds",
            _D,
            _TOPIC,
            Name.TARGETS,
            _REFUSED,
            "the offset at which read_committed readers wait",
        ),
        replace(_PRODUCERS, effect=_PART, when=When.OPEN),
        *_EVERY_ID,
        *_ROLES,
        Need(
            "TransactionCalls.bounds",
            _D,
            _TOPIC,
            Name.DEDICATED,
            _PART,
            "connectors' own offsets topics",
        ),
        _PRODUCERS_OF_OWN,
        _OTHER_GROUPS,
    ),
    "transactions abort": (*_ENDED, _MARKERS_OF_OPEN, *_BY_ID, *_ROLES),
    "transactions commit": (*_ENDED, _MARKERS, *_ROLES),
    "run job": _RUN,
    "run status": (
        _WORKERS,
        *_reads(Name.STATUS, _REFUSED, "statuses"),
        *_reads(Name.RUN_STATUS, _REFUSED, "statuses of a run that took a connector over"),
        *_reads(Name.CONFIG, _PART, "which consumer groups sinks and transforms of runs have"),
        _RUNS,
        Need(_DESCRIBED, _D, _GROUP, Name.SINK_GROUPS, _PART, "members that a killed run left"),
        Need(
            _STABLE_OFFSETS,
            _D,
            _GROUP,
            Name.SINK_GROUPS,
            _PART,
            "offsets that wait for a transaction",
        ),
        Need(
            "KafkaReads.topics",
            _D,
            _TOPIC,
            Name.SINK_TOPICS,
            _PART,
            "offsets that wait for a transaction",
        ),
        Need(
            "TransactionCalls.listed",
            _D,
            _ID,
            Name.ANY_ID,
            _PART,
            "the transaction that offsets wait for",
        ),
        Need(
            _LEAVE,
            _R,
            _GROUP,
            Name.SINK_GROUPS,
            _PART,
            "members that a killed run left are not removed",
        ),
    ),
    "audit": (
        *_reads(Name.TARGETS, _REFUSED, "the records"),
        *_reads(Name.CONFIG, _PART, "the connector named by --connector"),
        *_reads(Name.OFFSETS, _PART, "the source offsets that the records are compared with"),
        *_reads(Name.DEDICATED, _PART, "the source offsets that the records are compared with"),
        Need(
            "KafkaReads.topics",
            _DC,
            _TOPIC,
            Name.TARGETS,
            _PART,
            "whether compaction caused the gaps",
        ),
        *_reads(Name.SINK_TOPICS, _PART, "the inputs named by --from"),
        *_reads(Name.SINK_OUTPUTS, _PART, "the archive named by --manifest"),
        Need(
            _STABLE_OFFSETS,
            _D,
            _GROUP,
            Name.SINK_GROUPS,
            _PART,
            "the offsets of the inputs that --group has committed",
        ),
    ),
    "upgrade list": (*_LOOK, _LEADER_MODE),
    "upgrade plan": _ROLL,
    "upgrade apply": (*_ROLL, _LOCK),
    "upgrade resume": (*_ROLL_GOES_ON, _LOCK),
    "upgrade abort": (*_ROLL_GOES_ON, replace(_LOCK, when=When.CHANGED)),
    "upgrade status": (*_LOOK, _LEADER_MODE, _HOLDER),
    **dict.fromkeys(
        (
            *("offsets history", "runs list", "runs show", "runs prune"),
            *(f"context {each}" for each in ("show", "list", "use", "add", "remove")),
            *(f"sandbox {each}" for each in ("up", "down", "status", "logs")),
            *("demo", "completion", "docs man"),
        ),
        (),
    ),
}
"""Every command, with what its principal needs; those with nothing ask no cluster of the
person's.
"""


def needs_of(command: str) -> Iterator[Need]:
    """Yield what ``command`` needs, each right once: a right without which it is refused precedes
    one that only hides a part.
    """
    seen: dict[tuple[Operation, Resource, Name], Need] = {}
    for need in sorted(COMMANDS[command], key=lambda each: each.effect is not Effect.REFUSED):
        seen.setdefault((need.operation, need.resource, need.name), need)
    yield from seen.values()

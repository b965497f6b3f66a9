"""The rights that connectctl itself needs, by command, and what is missing without each.

One table for ``docs/rights.md``, ``preflight --self`` and ``--self --emit``. A row names the client's method that needs
the right (``ops/clients/protocols.py``) and the role of its resource; the names in a cluster are filled in later
(``ops/checks/own_rights/rules.py``). Rights as Kafka's ``KafkaApis`` requires them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from connectctl.ops.kafka.acls import Operation, Resource


class Name(StrEnum):
    """The resource of a right, by its role."""

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
    """The effect of a missing right: the command is refused, or its result is reported as partial."""

    REFUSED = "refused"
    PART = "sees a part"


class When(StrEnum):
    """The condition of a row."""

    ALWAYS = "always"
    UNNAMED = "internal topics are not named"
    CREATES = "it creates the topic"
    ENABLED = "workers are preparing or enabled"


@dataclass(frozen=True)
class Allowed:
    """The operations that brokers allow; None if they do not report them, with the reason in ``why``."""

    operations: frozenset[Operation] | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """A right that a command needs: ``operation`` on ``resource`` of that ``name``, for ``call``, a method of a client.

    A call is in ``ops/clients/protocols.py``, or in the module next to it that its name begins with.
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
_REMOVE_STATIC = "kafka_protocol.group_coordinator.Coordinator.remove_static"
_STABLE_OFFSETS = "kafka_protocol.group_coordinator.Coordinator.stable_offsets"
_TOPIC, _GROUP, _ID, _CLUSTER = Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID, Resource.CLUSTER
_REFUSED, _PART = Effect.REFUSED, Effect.PART


def _reads(name: Name, effect: Effect, without: str, when: When = When.ALWAYS) -> tuple[Need, ...]:
    """Return the needs to read a topic to its end; Read includes Describe, unless a deny ACL removes it."""
    return (
        Need("KafkaReads.extents", _D, _TOPIC, name, effect, without, when),
        Need("KafkaReads.image", _R, _TOPIC, name, effect, without, when),
    )


_WORKERS = Need("KafkaReads.group", _D, _GROUP, Name.GROUP, _REFUSED, "which workers are running, and what they run")
_WORKERS_IN_PART = Need(
    "KafkaReads.group", _D, _GROUP, Name.GROUP, _PART, "which workers are running, and what they read"
)
_FIND = Need(
    "KafkaReads.compacted", _D, _TOPIC, Name.ANY_TOPIC, _PART, "internal topics that are not named", When.UNNAMED
)
_LAYOUT = tuple(
    Need("KafkaReads.topics", _DC, _TOPIC, name, _PART, "its cleanup.policy, and what follows from it")
    for name in (Name.CONFIG, Name.OFFSETS, Name.STATUS)
)
_CONNECTORS_AND_STATUSES = (
    *_reads(Name.CONFIG, _PART, "connectors and their target states, where no worker answers"),
    *_reads(Name.STATUS, _PART, "statuses, where no worker answers"),
)
_LISTING = (_WORKERS, _FIND, *_CONNECTORS_AND_STATUSES)
_FENCED = Need("TransactionCalls.describe", _D, _ID, Name.TASKS, _PART, "whether a task was fenced")

_ALL_OFFSETS = (
    _FIND,
    *_reads(Name.CONFIG, _REFUSED, "which connectors have offsets topics of their own"),
    *_reads(Name.OFFSETS, _REFUSED, "offsets"),
)
_OFFSETS_SHOWN = (
    *_ALL_OFFSETS,
    *_reads(Name.DEDICATED, _PART, "offsets in a topic of the connector's own"),
    _WORKERS_IN_PART,
    _LAYOUT[1],
)
_OFFSETS_WHOLE = (
    *_ALL_OFFSETS,
    *_reads(Name.DEDICATED, _REFUSED, "offsets in a topic of the connector's own"),
    _WORKERS_IN_PART,
    _LAYOUT[1],
)
_SINKS_SHOWN = (
    Need("GroupReads.group", _D, _GROUP, Name.SINK_GROUPS, _PART, "what sinks have committed"),
    Need("KafkaReads.extents", _D, _TOPIC, Name.SINK_TOPICS, _PART, "what sinks have committed of them, and the lag"),
)
_BY_WORKERS = "the change where the workers' REST API does not make it"
_SINKS_CHANGED = (
    *_SINKS_SHOWN,
    Need("GroupOffsetWrites.commit", _R, _GROUP, Name.SINK_GROUPS, _PART, _BY_WORKERS),
    Need("GroupOffsetWrites.commit", _R, _TOPIC, Name.SINK_TOPICS, _PART, _BY_WORKERS),
    Need("GroupOffsetWrites.delete", Operation.DELETE, _GROUP, Name.SINK_GROUPS, _PART, _BY_WORKERS),
)
_RUNS = Need(
    "KafkaReads.holders", _D, _GROUP, Name.PRESENCE, _PART, "runs of connectctl that have the connector, unless fenced"
)
_FENCED_BEFORE = (
    _RUNS,
    Need("TransactionCalls.describe", _D, _ID, Name.TASKS, _PART, "which producers to fence, unless no run is alive"),
    Need("TransactionCalls.fence", _W, _ID, Name.TASKS, _REFUSED, "fencing the producers that may also write them"),
)
_LOCK = Need("ClusterLock.held", _R, _GROUP, Name.LOCK, _REFUSED, "the cluster's lock, unless --lock local leaves it")
_CHANGE = (_WORKERS, _LOCK, _FIND, *_CONNECTORS_AND_STATUSES)
_HOLDER = Need("ClusterLock.holder", _D, _GROUP, Name.LOCK, _PART, "who holds the cluster's lock")
_IN_A_TRANSACTION = "the write, which is one transaction"
_OFFSETS_WRITTEN = (
    _WORKERS,
    _LOCK,
    *_ALL_OFFSETS,
    *_reads(Name.DEDICATED, _REFUSED, "offsets in a topic of the connector's own"),
    *_reads(Name.STATUS, _PART, "statuses, where no worker answers"),
    *_FENCED_BEFORE,
    Need("KafkaWrites.transact", _W, _TOPIC, Name.OFFSETS, _REFUSED, "the write"),
    Need("KafkaWrites.transact", _W, _TOPIC, Name.DEDICATED, _REFUSED, "the write"),
    Need("KafkaWrites.transact", _D, _ID, Name.CHANGES, _REFUSED, _IN_A_TRANSACTION),
    Need("KafkaWrites.transact", _W, _ID, Name.CHANGES, _REFUSED, _IN_A_TRANSACTION),
    _LAYOUT[1],
)
_OFFSETS_MOVED = (
    *_OFFSETS_WRITTEN,
    Need("KafkaWrites.create_topic", _C, _TOPIC, Name.DEDICATED, _REFUSED, "the topic", When.CREATES),
)

_EVERY_ID = (
    Need("TransactionCalls.listed", _D, _ID, Name.ANY_ID, _PART, "the transactions of other ids"),
    Need("AclReads.bindings", _D, _CLUSTER, Name.CLUSTER, _PART, "the proof that no transaction is left out"),
    Need("AclReads.authorizer", _DC, _CLUSTER, Name.CLUSTER, _PART, "the proof that no transaction is left out"),
)
_OTHER_GROUPS = Need("TransactionCalls.connect_groups", _D, _GROUP, Name.ANY_GROUP, _PART, "the owners of other ids")
_PRODUCERS = Need(
    "TransactionCalls.producers", _R, _TOPIC, Name.TARGETS, _REFUSED, "which producers have a transaction open in it"
)
_PROOF = Need(
    "TransactionLogReads.entries", _R, _TOPIC, Name.LOG, _REFUSED, "whether a coordinator knows the producer: its proof"
)
_ENDED = (
    Need("TransactionCalls.places", _D, _TOPIC, Name.TARGETS, _REFUSED, "the partition"),
    _PRODUCERS,
    _PROOF,
    _LOCK,
    Need("TransactionCalls.mark", Operation.ALTER, _CLUSTER, Name.CLUSTER, _REFUSED, "the end of the transaction"),
)
_LEADER_MODE = Need(
    "TransactionCalls.describe", _D, _ID, Name.LEADER, _PART, "whether the leader is preparing", When.ENABLED
)
_BROKER_SETTINGS = Need(
    "BrokerReads.settings", _DC, _CLUSTER, Name.CLUSTER, _PART, "how the brokers are set (transactions, topics)"
)
_READERS = Need("BrokerReads.readers", _D, _CLUSTER, Name.CLUSTER, _PART, "groups that may not be described alone")
_CHECKS = (
    *_LISTING,
    *_LAYOUT,
    *_reads(Name.OFFSETS, _PART, "whether its records can be read, and their owner"),
    *_reads(Name.DEDICATED, _PART, "whether connectors lose offsets"),
    Need("KafkaReads.topics", _D, _TOPIC, Name.TARGETS, _PART, "the topics that connectors write to"),
    _BROKER_SETTINGS,
    _READERS,
    _FENCED,
    _LEADER_MODE,
    *_EVERY_ID,
    _OTHER_GROUPS,
)
_ROLL = (*_CHECKS, Need("KafkaReads.topics", _DC, _TOPIC, Name.LOG, _PART, "how the coordinators' topic is laid out"))
_RUN_ARCHIVES = "runs of archives, and of sinks with dead letters"
_RUN_SINKS = "runs of sinks and transforms: membership, records and offsets"
_RUN = (
    _WORKERS,
    Need(
        "ClusterLock.held", _R, _GROUP, Name.LOCK, _PART, "the lock of the cluster (a take-over is refused without it)"
    ),
    Need(
        "KafkaReads.holders", _D, _GROUP, Name.PRESENCE, _PART, "other runs of the connector (a take-over is refused)"
    ),
    Need(
        "kafka_protocol.run_presence.Presence.join",
        _R,
        _GROUP,
        Name.PRESENCE,
        _PART,
        "being seen by others (a take-over is refused)",
    ),
    *(
        each
        for name in (Name.CONFIG, Name.OFFSETS, Name.STATUS)
        for each in (
            *_reads(name, _REFUSED, "its offsets, and who else runs it"),
            Need("KafkaWrites.transact", _W, _TOPIC, name, _REFUSED, "what it keeps there"),
            Need("KafkaWrites.create_topic", _C, _TOPIC, name, _REFUSED, "the topic", When.CREATES),
        )
    ),
    *_LAYOUT,
    *_reads(Name.DEDICATED, _REFUSED, "the connector's offsets"),
    Need("KafkaWrites.transact", _W, _TOPIC, Name.DEDICATED, _REFUSED, "the offsets that it commits"),
    Need("KafkaWrites.transact", _W, _TOPIC, Name.TARGETS, _REFUSED, "its records"),
    Need("TransactionCalls.describe", _D, _ID, Name.TASKS, _REFUSED, "its tasks' older producers"),
    Need("TransactionCalls.fence", _W, _ID, Name.TASKS, _REFUSED, "fencing, and transactions"),
    Need(_STABLE_OFFSETS, _D, _GROUP, Name.SINK_GROUPS, _PART, _RUN_SINKS),
    Need("librdkafka.client.Kafka.ask", _R, _GROUP, Name.SINK_GROUPS, _PART, _RUN_SINKS),
    Need("librdkafka.client.Kafka.ask", _R, _TOPIC, Name.SINK_TOPICS, _PART, _RUN_SINKS),
    Need("KafkaReads.topics", _D, _TOPIC, Name.SINK_OUTPUTS, _PART, _RUN_ARCHIVES),
    Need("KafkaWrites.transact", _W, _TOPIC, Name.SINK_OUTPUTS, _PART, _RUN_ARCHIVES),
    Need("KafkaWrites.create_topic", _C, _TOPIC, Name.SINK_OUTPUTS, _PART, _RUN_ARCHIVES, When.CREATES),
    Need("KafkaReads.image", _R, _TOPIC, Name.SINK_OUTPUTS, _PART, "the orphans that --sweep removes"),
    Need("TransactionCalls.describe", _D, _ID, Name.LEADER, _REFUSED, "the leader's transactional id"),
    Need("TransactionCalls.fence", _W, _ID, Name.LEADER, _REFUSED, "writing to the config topic as a leader does"),
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

NOTHING: tuple[Need, ...] = ()
_ADDRESSES = Need("KafkaReads.group", _D, _GROUP, Name.GROUP, _PART, "the workers' addresses")
COMMANDS: dict[str, tuple[Need, ...]] = {
    "cluster show": (*_LISTING, *_LAYOUT),
    "connectors list": _LISTING,
    "connectors show": (*_LISTING, _FENCED),
    "connectors stop": _CHANGE,
    "connectors pause": _CHANGE,
    "connectors resume": _CHANGE,
    "connectors restart": _CHANGE,
    "connectors cure": (*_CHANGE, _FENCED),
    "connectors create": (*_CHANGE, *_reads(Name.OFFSETS, _PART, "offsets that are stored under a new name")),
    "connectors apply": (
        *_CHANGE,
        *_reads(Name.OFFSETS, _PART, "offsets that are stored under a new name"),
        *_EVERY_ID,
    ),
    "connectors edit": _CHANGE,
    "connectors patch": _CHANGE,
    "connectors delete": (*_CHANGE, *_EVERY_ID),
    "connectors diff": _CHANGE,
    "connectors history": _LISTING,
    "connectors rollback": (*_CHANGE, *_reads(Name.OFFSETS, _PART, "offsets that are stored under a new name")),
    "connectors topics": _CHANGE,
    "plugins list": (_ADDRESSES,),
    "plugins show": (_ADDRESSES,),
    "loggers get": (_ADDRESSES,),
    "loggers set": _CHANGE,
    "loggers undo": _CHANGE,
    "offsets show": (*_OFFSETS_SHOWN, *_SINKS_SHOWN),
    "offsets diff": _OFFSETS_WHOLE,
    "offsets backup": (*_OFFSETS_WHOLE, _SINKS_SHOWN[0]),
    "offsets merge": _OFFSETS_MOVED,
    "offsets copy": _OFFSETS_WRITTEN,
    "offsets set": (*_OFFSETS_WRITTEN, *_SINKS_CHANGED),
    "offsets reset": (*_OFFSETS_WRITTEN, *_SINKS_CHANGED),
    "offsets restore": (*_OFFSETS_WRITTEN, *_SINKS_CHANGED),
    "offsets undo": (*_OFFSETS_WRITTEN, *_SINKS_CHANGED),
    "offsets history": NOTHING,
    "fence": _FENCE,
    "tasks check": _LISTING,
    "preflight": _CHECKS,
    "validate": (_ADDRESSES,),
    "transactions list": (*_EVERY_ID, _OTHER_GROUPS),
    "transactions show": (
        Need("TransactionCalls.describe", _D, _ID, Name.TASKS, _REFUSED, "the id"),
        Need("TransactionCalls.producers", _R, _TOPIC, Name.TARGETS, _PART, "how far the transaction is in a topic"),
    ),
    "transactions hanging": (
        Need("TransactionCalls.places", _D, _TOPIC, Name.ANY_TOPIC, _PART, "partitions of topics that are not named"),
        _PRODUCERS,
        _PROOF,
    ),
    "transactions lag": (
        Need("TransactionCalls.bounds", _D, _TOPIC, Name.TARGETS, _REFUSED, "how far readers are held back"),
        _PRODUCERS,
        *_EVERY_ID,
    ),
    "transactions abort": _ENDED,
    "transactions commit": _ENDED,
    "run job": _RUN,
    "run status": (
        _WORKERS_IN_PART,
        *_reads(Name.STATUS, _REFUSED, "statuses"),
        *_reads(Name.RUN_STATUS, _PART, "statuses of a run that took a connector over"),
        *_reads(Name.CONFIG, _PART, "which consumer groups sinks and transforms of runs have"),
        _RUNS,
        Need(_DESCRIBED, _D, _GROUP, Name.SINK_GROUPS, _PART, "members that a killed run left"),
        Need(_REMOVE_STATIC, _R, _GROUP, Name.SINK_GROUPS, _PART, "members that a killed run left are not removed"),
    ),
    "audit": (
        *_reads(Name.TARGETS, _REFUSED, "the records"),
        *_reads(Name.CONFIG, _PART, "the connector that --connector names"),
        *_reads(Name.OFFSETS, _PART, "the source offsets that the records are compared with"),
        *_reads(Name.DEDICATED, _PART, "the source offsets that the records are compared with"),
        Need("KafkaReads.topics", _DC, _TOPIC, Name.TARGETS, _PART, "whether gaps are the cleaner's"),
        *_reads(Name.SINK_TOPICS, _PART, "the inputs that --from names"),
        *_reads(Name.SINK_OUTPUTS, _PART, "the archive that --manifest names"),
        Need(_STABLE_OFFSETS, _D, _GROUP, Name.SINK_GROUPS, _PART, "what --group has committed of the inputs"),
    ),
    "upgrade list": (*_LISTING, _LEADER_MODE),
    "upgrade plan": _ROLL,
    "upgrade apply": (*_ROLL, _LOCK),
    "upgrade status": (*_LISTING, _LEADER_MODE, _HOLDER),
    "upgrade resume": (*_ROLL, _LOCK),
    "upgrade abort": (*_ROLL, _LOCK),
    "runs list": NOTHING,
    "runs show": NOTHING,
    "runs resume": _OFFSETS_WRITTEN,
    "runs undo": _CHANGE,
    "runs apply": _OFFSETS_WRITTEN,
    "context show": NOTHING,
    "context list": NOTHING,
    "context use": NOTHING,
    "context add": NOTHING,
    "context remove": NOTHING,
    "sandbox up": NOTHING,
    "sandbox down": NOTHING,
    "sandbox status": NOTHING,
    "sandbox logs": NOTHING,
    "demo": NOTHING,
    "completion": NOTHING,
    "docs man": NOTHING,
}
"""Every command with its needs; those without any do not contact the user's clusters."""


def needs_of(command: str) -> Iterator[Need]:
    """Yield the needs of ``command``, each right once: with two effects, the one that refuses the command."""
    seen: dict[tuple[Operation, Resource, Name], Need] = {}
    for need in sorted(COMMANDS[command], key=lambda each: each.effect is not Effect.REFUSED):
        seen.setdefault((need.operation, need.resource, need.name), need)
    yield from seen.values()

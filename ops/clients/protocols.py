"""Types of the clients that operations use. The real clients and the fakes of tests implement them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from connectctl.ops.config.settings import Settings
    from connectctl.ops.connect.cluster_lock import LockHolder
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.core.errors import ConnectctlError
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.core.rights import Allowed
    from connectctl.ops.kafka.acls import Authorizer, Binding, Resource, Right
    from connectctl.ops.kafka.batch_headers import Marker
    from connectctl.ops.kafka.brokers import BrokerVersion, ReaderGroups
    from connectctl.ops.kafka.consumer_group import ClientGroup
    from connectctl.ops.kafka.error_handling import Code
    from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
    from connectctl.ops.kafka.records import ConsumerRecord, KeyTimes, TopicImage
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.kafka.topics import OffsetRange, TopicFacts
    from connectctl.ops.kafka.transactions import Bounds, Listing, PartitionProducer, Transaction
    from connectctl.ops.kafka.visibility import Gap, Observation


class KafkaReads(Protocol):
    """Reading from one Kafka cluster. Every method raises ``Unreachable``, ``NotAuthorized`` or
    ``TimedOut``.
    """

    def cluster_id(self) -> str:
        """The cluster's id."""

    def brokers(self) -> int:
        """Return the number of brokers of the cluster."""

    def topic_names(self) -> frozenset[str]:
        """The names of the topics that this principal may see: at least these exist. For one topic
        ask ``existing``.
        """

    def existing(self, names: Sequence[str]) -> Observation[frozenset[str]]:
        """Return those of ``names`` that exist, with a gap for each that this principal may not
        see.
        """

    def topics(self, names: Sequence[str]) -> dict[str, TopicFacts]:
        """Layout and ``cleanup.policy`` of the topics in ``names`` that exist. Raises
        ``NotAuthorized`` for a hidden one.
        """

    def compacted(self) -> Observation[dict[str, TopicFacts]]:
        """Return every visible topic whose clean-up policy includes compaction, or is empty.

        Kafka's internal topics are left out. There is a gap for each topic whose configuration may
        not be read; topics that may not be seen are left out without one.
        """

    def group(self, group_id: str) -> ConnectGroup:
        """The group of Connect workers called ``group_id``; state ``Dead`` where the coordinator
        knows none.

        Raises ``NotAuthorized`` where this principal may not see it.
        """

    def holders(self, group_id: str, connector: str) -> tuple[Holder, ...]:
        """The runs of connectctl that have ``connector`` of the Connect group; one that died counts
        for a few seconds.
        """

    def image(
        self,
        topics: Sequence[str],
        *,
        patience: float,
        superseded: bool = False,
        includes: Callable[[str], bool] | None = None,
    ) -> dict[str, TopicImage]:
        """Read ``topics`` with read_committed to their ends as they stand now.

        Where an open transaction keeps the end from being read for more than ``patience`` seconds,
        what could be read is given with ``held_back`` telling the rest. Topics that do not exist
        are left out, hidden ones are ``NotAuthorized``. With ``includes`` the source offsets of
        other connectors are left out. Raises ``ConnectctlError`` for what memory does not hold.
        """

    def key_times(
        self, topics: Sequence[str], *, patience: float, most: int
    ) -> dict[str, KeyTimes]:
        """Return when the newest ``most`` retained records of each key were written. Values are
        not kept; otherwise as ``image``.
        """

    def group_log(self, group_id: str, since_ms: int) -> list[ConsumerRecord]:
        """Return the records about the group that its coordinator has written to its partition of
        ``__consumer_offsets`` since a time, in milliseconds since the epoch, in the order of the
        log.
        """

    def extents(self, topics: Sequence[str]) -> dict[str, dict[int, OffsetRange]]:
        """Return the beginning and the end of every partition of ``topics``. Topics that do not
        exist are left out, as in ``image``.
        """

    def offsets_at(self, topics: Sequence[str], timestamp: int) -> dict[str, dict[int, int]]:
        """Return the first offset of every partition with a record of ``timestamp`` (milliseconds
        since the epoch) or later; its end if there is none.
        """

    def written_by(self, ids: Sequence[str], topics: Sequence[str]) -> frozenset[str]:
        """Return those of ``topics`` to which one of the transactional ids ``ids`` has written
        lately.

        Brokers forget a producer a day after its last write, and report none to a principal that
        may not see it.
        """

    def tails(self, topics: Sequence[str], count: int) -> dict[str, list[ConsumerRecord]]:
        """Return the records at the last ``count`` offsets of each partition of ``topics``,
        committed or not: a sample that distinguishes topics.
        """


class KafkaWrites(KafkaReads, Protocol):
    """Changing one Kafka cluster, besides reading it. Raises what ``KafkaReads`` raises, and
    ``ConnectctlError``.
    """

    def transact(self, id_: str, records: Iterable[tuple[str, int, bytes, bytes | None]]) -> int:
        """Write ``(topic, partition, key, value)`` in one transaction of the transactional id
        ``id_``.

        Gives how many. After an error it is unknown whether the transaction was committed: read
        again.
        """

    def create_topic(
        self,
        name: str,
        partitions: int,
        replicas: int,
        config: Mapping[str, str],
        *,
        exactly: bool = False,
    ) -> None:
        """Create a topic; one that exists already is fine. On a cluster of fewer brokers than
        ``replicas`` it has one on each, unless it must have ``exactly`` so many.
        """


class ConnectCalls(Protocol):
    """The REST servers of a Connect cluster's workers. Raises ``Unreachable`` and
    ``ConnectctlError``.
    """

    urls: tuple[str, ...]

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        """The JSON at ``path``, from the worker at ``url`` or from the first that answers;
        ``timeout`` in seconds.
        """

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        url: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Send a changing request; retried while workers answer that a rebalance is under way."""


class ClusterLock(Protocol):
    """The lock of one Connect cluster, which everybody who changes it takes, wherever they are."""

    def holder(self) -> LockHolder | None:
        """Its holder, None without one. Raises ``NotAuthorized``, ``Unreachable``, ``TimedOut``."""

    def held(
        self, run: str, ours: Callable[[str], bool]
    ) -> AbstractContextManager[Callable[[], None]]:
        """Hold it as ``run`` of the journal, which knows the runs of which ``ours`` is true.

        Gives a function that returns while it is held, and raises ``ConnectctlError`` where it is
        not, or where that cannot be determined. Raises ``Refused`` where another client holds it.
        """


class TransactionCalls(Protocol):
    """Coordinators and partition leaders of one Kafka cluster. Raises ``Unreachable``,
    ``NotAuthorized``, ``BadInput``.

    What concerns one id, one partition or one broker is not an exception but a code in the result.
    """

    def cluster_id(self) -> str:
        """The cluster's id."""

    def describe(self, ids: Sequence[str]) -> dict[str, Transaction | Code]:
        """Every id of ``ids`` as its coordinator has it, asked once."""

    def fence(
        self,
        timeouts: Mapping[str, int],
        patience: float,
        on_result: Callable[[str, InitProducerIdResponse], None],
    ) -> None:
        """Send one InitProducerId for each id, with its transaction timeout in milliseconds; all in
        flight at once.

        ``on_result`` is called with each answer when it arrives, on another thread; exactly once
        for each id. ``patience`` is in seconds, for each answer.
        """

    def listed(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        prefixes: Sequence[str] = (),
    ) -> Observation[tuple[Listing, ...]]:
        """Return all ids in one of ``states`` with one of ``producer_ids`` that begin with one of
        ``prefixes``; empty: any.

        They are in order. Complete if every coordinator responded, and it is proven that this
        principal may see every id with these prefixes.
        """

    def connect_groups(self) -> Observation[frozenset[str]]:
        """The groups of Connect workers on this cluster. Complete with Describe on the cluster, if
        all brokers answer.
        """

    def topic_partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        """The partitions of those of ``topics`` that exist. Raises ``NotAuthorized`` for one that
        may not be seen.
        """

    def all_topic_partitions(self) -> Observation[list[TopicPartition]]:
        """The partitions of all topics, Kafka's internal ones included. Complete as ``listed``
        is.
        """

    def producers(
        self, topic_partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, tuple[PartitionProducer, ...] | Code]:
        """The producers that the leader of each partition remembers."""

    def bounds(
        self, topic_partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Bounds | Code]:
        """Last stable offset and high watermark of each partition."""

    def mark(
        self, topic_partition: TopicPartition, producer: PartitionProducer, *, commit: bool
    ) -> Code:
        """Write the marker that ends the producer's open transaction in that partition, as its
        coordinator would.
        """


@dataclass(frozen=True, slots=True)
class PrecedingLog:
    """The log of a partition before an open transaction of a producer, and the beginning of that
    transaction.

    ``epoch`` is that of its first batch, None without one. ``marker`` is the producer's newest one
    before it. Without one, ``since_ms`` is the time from which on there certainly is none, in
    milliseconds since the epoch; infinite if the log could not be read whole. ``right`` is the
    missing one for which it could not.
    """

    epoch: int | None
    marker: Marker | None
    since_ms: float
    right: Right | None = None


class TransactionLogReads(Protocol):
    """The records of transaction coordinators, and the log of partitions. Raises what
    ``KafkaReads`` raises.
    """

    def entries(
        self, ids: Sequence[str] | None, wanted: Callable[[bytes | None, bytes | None], bool]
    ) -> list[ConsumerRecord]:
        """The records of ``__transaction_state`` whose key and value are ``wanted``, in the order
        of the log.

        Only the partitions of the transactional ``ids`` are read; None: all.
        """

    def preceding(
        self, topic_partition: TopicPartition, producer: PartitionProducer, since_ms: int | None
    ) -> PrecedingLog:
        """Return the log before the open transaction of ``producer``, back to ``since_ms``; None:
        no limit.
        """


@dataclass(frozen=True)
class ConfiguredValue:
    """The value of a property on a worker, as a driver reads it. ``source`` is its origin: a file,
    a hook, a resource.

    ``value`` is None if the property is not set there; the worker may run with an older one.
    """

    value: str | None
    source: str


@dataclass(frozen=True)
class RestartMode:
    """The way in which a worker is restarted, for the code that waits for it.

    ``together`` names the resource that restarts this worker with every other worker of the same
    name, in its own order (``KafkaConnect prod/connect``): change and restart are then done once
    for all of them. None: one by one. ``by_hand``: ``change`` and ``restart`` print instructions
    and return at once; wait until the restart is proven.
    """

    together: str | None = None
    by_hand: bool = False


class WorkerDriver(Protocol):
    """The operator's way to change and restart workers. ``worker`` is an address, ``host:port``, as
    in the group.

    Every method raises ``ConnectctlError`` (``TimedOut`` if a command takes too long), with secrets
    masked.
    """

    @property
    def name(self) -> str:
        """The driver's name in the context file."""

    def restart_mode(self, worker: str) -> RestartMode:
        """Return whether it is restarted alone or with others; alone by default. Sends no request."""
        return RestartMode()

    def describe(self, worker: str, name: str, value: str) -> str:
        """In one line, what changing the property and restarting will do, for the plan."""

    def check(self, worker: str) -> str | None:
        """Return why this worker could not be changed (a file that cannot be written, no template),
        else None. Changes nothing.
        """

    def configured(self, worker: str, name: str) -> ConfiguredValue | None:
        """The property's value by file or hook; None where this driver has no way to know."""
        return None

    def change(self, worker: str, name: str, value: str) -> str | None:
        """Set the property, with effect at the next start. Setting it twice makes no difference."""

    def restart(self, worker: str) -> str | None:
        """Stop and start the worker; does not wait until it is in the group again."""


class RightsReads(Protocol):
    """The rights of the principal in use on one Kafka cluster, by requests that change nothing
    (KIP-430).
    """

    def cluster_id(self) -> str:
        """The Kafka cluster's id."""

    def on_cluster(self) -> Allowed:
        """The operations on the cluster."""

    def on_topics(self, names: Sequence[str]) -> dict[str, Allowed]:
        """Return the operations on each topic; none for a topic that may not be described."""

    def on_groups(self, ids: Sequence[str]) -> dict[str, Allowed]:
        """Return the operations on each group, whether it exists or not; none for a group that may
        not be described.
        """

    def describes(self, ids: Sequence[str]) -> dict[str, bool | None]:
        """Return whether each transactional id may be described, known or not; None without a
        response.
        """

    def unseen(self, resource: Resource) -> tuple[Gap, ...]:
        """Return what may be missing in a listing of every topic or transactional id; empty if
        nothing is, proven.
        """

    def creates(self, names: Sequence[str]) -> dict[str, bool | None]:
        """Return whether each topic could be created, by a creation that is only validated; None if
        unknown.
        """


class AclReads(Protocol):
    """The ACLs of one Kafka cluster. Raises ``Unreachable``, ``NotAuthorized``, ``BadInput`` and
    ``ConnectctlError``.
    """

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses, as a command line takes them."""

    def cluster_id(self) -> str:
        """The cluster's id."""

    def bindings(self) -> tuple[Binding, ...] | None:
        """Every ACL there is; None where the brokers have no authorizer. Needs Describe on the
        cluster.
        """

    def authorizer(self) -> Authorizer:
        """Return how one of the brokers configures its authorizer. Needs DescribeConfigs on the
        cluster.
        """

    def topic_names(self) -> frozenset[str]:
        """The topics that this principal may see."""

    def wants_idempotent_write(self) -> bool:
        """Return whether idempotent producers need their own ACL here: on brokers before 2.8
        (KIP-679).
        """


class BrokerReads(Protocol):
    """The brokers of one Kafka cluster and the groups that read from it. Raises what ``KafkaReads``
    raises.

    What concerns one broker or one group is not an exception but an error in the result.
    """

    def cluster_id(self) -> str:
        """The cluster's id."""

    def versions(self) -> dict[int, BrokerVersion | ConnectctlError]:
        """Return the versions that every broker supports, by its id, and the features of the
        cluster.
        """

    def unreachable(self) -> dict[int, str]:
        """Return the brokers in the metadata that accept no connection from this machine, with
        their addresses, ``HOST:PORT``. Metadata has a broker that has died until its session ends.
        """

    def settings(self, names: Sequence[str]) -> dict[int, dict[str, str] | ConnectctlError]:
        """Properties of every broker, without those that it does not know or hides. Needs
        DescribeConfigs on the cluster.
        """

    def hidden(self, topics: Sequence[str]) -> frozenset[str]:
        """Return those of ``topics`` whose existence this principal may not know: it lacks Describe
        on them.
        """

    def readers(self) -> ReaderGroups:
        """Every group of readers with its members and committed offsets. Needs Describe on groups,
        topics and cluster.
        """


class GroupReads(Protocol):
    """Consumer groups by their names. Raises what ``KafkaReads`` raises."""

    def group(self, group_id: str) -> ClientGroup:
        """The group called ``group_id`` with its members; state ``Dead`` as in
        ``KafkaReads.group``.
        """

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """The offsets that the group has committed, by topic and partition."""

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end of each partition for read_committed; those that do not exist any more are
        left out.
        """


class GroupOffsetWrites(GroupReads, Protocol):
    """Committed offsets of groups, which are changed only while a group has no members. Raises what
    ``GroupReads`` raises.

    ``group`` gives groups of KIP-848, too, with their state and without members' names.
    """

    def stable(self, group_id: str) -> dict[TopicPartition, int]:
        """As ``committed``; raises ``Refused`` where an open transaction holds offsets of the group
        (KIP-447).
        """

    def pending(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Return those of ``partitions`` for which an open transaction has an offset of the group
        (KIP-447).
        """

    def holder(self, group_id: str) -> str:
        """The transactions that may hold pending offsets of the group, in words."""

    def names(self) -> frozenset[str]:
        """The groups that this principal may describe."""

    def committed_of(
        self, group_ids: Sequence[str]
    ) -> dict[str, dict[TopicPartition, int] | ConnectctlError]:
        """``committed`` of each group, ``NotAuthorized`` of those that may not be described."""

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit ``offsets`` for the group. Raises ``Refused`` where it has members; what is not
        named stays.
        """

    def delete(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        """Delete what the group has committed of ``partitions``. Raises as ``commit`` does."""


class Clients(Protocol):
    """The clients and settings of one command; ``connectctl.cli.session.Session`` opens each when
    it is first used.
    """

    @property
    def settings(self) -> Settings:
        """Flags, environment and context, merged."""

    @property
    def timeout(self) -> float:
        """Seconds to wait for a broker, a worker, or a state."""

    @property
    def group_id(self) -> str:
        """The workers' ``group.id``. Raises ``BadInput`` if it is not given."""

    @property
    def named_topics(self) -> dict[str, str | None]:
        """The internal topics that are given, by role."""

    @property
    def kafka(self) -> KafkaReads:
        """The Kafka cluster of the workers."""

    @property
    def transactions(self) -> TransactionCalls:
        """Its transaction coordinators and partition leaders."""

    @property
    def transaction_log(self) -> TransactionLogReads:
        """Its ``__transaction_state``."""

    @property
    def own_rights(self) -> RightsReads:
        """The rights of the principal in use."""

    @property
    def group_offsets(self) -> GroupOffsetWrites:
        """The committed offsets of its groups."""

    def group(self, patience: float = ...) -> ConnectGroup:
        """The workers' group, once it is stable or ``patience`` is over."""

    def connect_to(self, group: ConnectGroup | None) -> ConnectCalls:
        """A client of the workers of ``group``, or of those in the settings."""

    @property
    def brokers(self) -> BrokerReads:
        """The brokers of the workers' Kafka cluster."""

    def other_brokers(self, bootstrap: str, overrides: Mapping[str, str]) -> BrokerReads:
        """The brokers of another Kafka cluster."""

    def other_transactions(self, bootstrap: str, overrides: Mapping[str, str]) -> TransactionCalls:
        """The coordinators of another Kafka cluster, one that a connector writes to."""

    def is_own_cluster(self, bootstrap: str) -> bool:
        """Return whether these servers are those of ``kafka``."""

    def other_kafka(self, bootstrap: str, overrides: Mapping[str, str]) -> KafkaReads:
        """Another Kafka cluster, one that a connector writes to."""

    def in_context(self, context: str) -> Clients:
        """The clients of another context."""

    def offsets_engine(self, kafka: KafkaReads, offsets_topic: str) -> Any:
        """The ``ops.operations.offsets.engine.Engine`` that reads the offsets topics."""

    @property
    def cluster_lock(self) -> ClusterLock:
        """The lock of the Connect cluster."""

    def driver(self) -> WorkerDriver:
        """The driver of the workers."""

    def application(self, name: str) -> tuple[WorkerDriver, list[str]]:
        """The driver of a stream application's instances, and their names. Raises ``BadInput`` for
        an unknown one.
        """

    @property
    def client_groups(self) -> GroupReads:
        """The consumer groups of the workers' Kafka cluster."""

    @property
    def acls(self) -> AclReads:
        """The ACLs of the workers' Kafka cluster."""

    def other_acls(self, bootstrap: str, overrides: Mapping[str, str]) -> AclReads:
        """The ACLs of another Kafka cluster."""

    @property
    def spark_log(self) -> Path:
        """The file of Spark's log."""

    def note(self, line: str) -> None:
        """Print a line for users while the command waits."""

    def journal(self, *, read_only: bool = False) -> Journal:
        """The user's journal. Raises ``ConnectctlError`` if it is damaged or cannot be written."""

    def reveal(self, name: str, value: Any) -> Any:
        """The secret that ``value`` refers to; ``value`` itself if it is not a reference."""

"""What exactly-once needs of the brokers: the rules BROKER001 to BROKER016, with their stories; see ``brokers.rules``."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

_LOG = "KIP-98, Transaction coordinator and transaction log"
_TIMEOUT = "TransactionCoordinator.handleInitProducerId"

TOO_OLD = Rule(
    "BROKER001",
    Severity.ERROR,
    "A broker is too old for exactly-once source support",
    "Workers that are preparing or enabled cannot write to the config topic, and their source tasks fail",
    "KIP-618, Admin API to Fence out Transactional Producers; TopicAdmin.endOffsets",
    """
    Exactly-once source support takes two things of the brokers: transactions, that is InitProducerId and its fellows, and
    the end offsets of a topic by the admin client. Both came with 0.11.

    A broker without them cannot coordinate the transactional id of the leader or of a task. The worker's own message for
    the second one begins with "Enabling exactly-once support for source connectors requires a Kafka broker version".

    Upgrade the brokers. Clients from 4.0 on want 2.1 at least in any case.
    """,
)
MIXED = Rule(
    "BROKER002",
    Severity.WARNING,
    "Brokers are of different releases",
    "What transactions guarantee depends on which broker coordinates them, and features of the newer release stay off",
    "KIP-584, Feature versioning",
    """
    During an upgrade of the brokers this is as it should be. Longer than that it is an accident: half of an id's requests
    may be answered by a broker that has the protections of its release, the others by one that has not.

    Releases are told apart by the requests that a broker knows, so that two patches of one release look the same.

    Finish the upgrade before the first worker is changed: two changes at once are hard to tell apart when something fails.
    """,
)
UNVERIFIED = Rule(
    "BROKER003",
    Severity.WARNING,
    "Brokers do not verify that a transaction is open before they append to it",
    "A delayed write can leave a hanging transaction behind, and read_committed readers stop there for good",
    "KIP-890, Part 1",
    """
    A write of a fenced or restarted producer may reach a partition after its transaction was ended. A broker that does not
    ask the coordinator takes it, and the partition then has a transaction that nobody will ever end. On an offsets topic
    that stops source tasks from starting, on any other topic it stops its read_committed readers.

    Brokers ask since 3.6. They can be told not to, with transaction.partition.verification.enable=false.

    Upgrade the brokers, or set the property to true: it can be changed while they run. Until then, look for such
    transactions with connectctl transactions hanging, and end them with connectctl transactions abort.
    """,
)
OLD_PROTOCOL = Rule(
    "BROKER004",
    Severity.WARNING,
    "The feature transaction.version is below 2",
    "A delayed request of one transaction can still end up in the producer's next one, which doubles or loses records",
    "KIP-890, Part 2",
    """
    With transaction.version 2, which brokers from 4.0 on know, each transaction has a producer epoch of its own. What
    was sent for an earlier transaction is then refused, however late it arrives. Below that, a task's producer keeps its
    epoch, and a delayed request to end a transaction can end the next one half-way.

    New clusters of 4.0 and later have it. Clusters that were upgraded keep their old level until somebody raises it, with
    kafka-features.sh. Workers from 4.0 on then use it by themselves; older ones go on as before.

    It is a warning where the brokers could do better by a command. Where brokers or workers are too old it is only an
    information: nothing is wrong, and an upgrade brings more safety.
    """,
)
CANNOT_BE_CREATED = Rule(
    "BROKER005",
    Severity.ERROR,
    "__transaction_state does not exist, and cannot be created or written as the brokers are set",
    "No transaction can begin: the leader cannot write to the config topic, and no source task starts",
    _LOG,
    """
    Brokers create the topic __transaction_state when somebody uses the first transactional id, with
    transaction.state.log.replication.factor replicas, 3 by default, and with transaction.state.log.min.isr as its
    min.insync.replicas, 2 by default.

    On a cluster with fewer brokers than replicas the creation fails again and again, and producers wait for a coordinator
    that never comes. With more min.isr than replicas it is created, and brokers before 3.7 never acknowledge a write to
    it; newer ones want no more in sync than there are (KAFKA-15583).

    Set both in the brokers' properties, and restart the brokers. On a single broker both are 1.
    """,
)
NO_LEADER = Rule(
    "BROKER006",
    Severity.ERROR,
    "Partitions of __transaction_state have no leader",
    "Transactional ids that belong there can neither be used nor fenced, and their open transactions are not ended",
    _LOG,
    """
    Each transactional id belongs to one partition of __transaction_state, by its name, and the leader of that partition is
    its coordinator. A partition without a leader has no coordinator for any of its ids.

    Tasks with such an id wait when they start, and fail when they commit. Their open transactions stay open until there
    is a leader again, and hold read_committed readers back for as long.

    Bring the brokers back that hold its replicas.
    """,
)
TOO_FEW_IN_SYNC = Rule(
    "BROKER007",
    Severity.ERROR,
    "Partitions of __transaction_state have fewer replicas in sync than min.insync.replicas",
    "Transactions that are coordinated there can be neither begun nor committed",
    _LOG,
    """
    A coordinator acknowledges nothing before as many replicas have it as min.insync.replicas of __transaction_state says.
    With fewer in sync it answers that the coordinator is not available. Producers ask again until their time is over, and
    then the task fails.

    Brokers write transaction.state.log.min.isr into the topic when they create it. A change of that property does not
    change a topic that exists. Brokers before 3.7 want as many even where there are not so many replicas.

    Bring the brokers back that hold its replicas.
    """,
)
BEHIND = Rule(
    "BROKER008",
    Severity.WARNING,
    "Partitions of __transaction_state are under-replicated",
    "Transactions work, with less to spare when another broker goes away",
    _LOG,
    """
    Some replicas are not in sync: a broker is down or behind. As long as min.insync.replicas are in sync coordinators go
    on as always.

    It is no time to begin a rolling upgrade of the workers: one more broker away, and source tasks cannot commit.
    """,
)
ONE_COPY = Rule(
    "BROKER009",
    Severity.WARNING,
    "__transaction_state has one replica on a cluster of several brokers",
    "When that broker is away its ids cannot be used, and if its disk is lost so are open transactions and epochs",
    _LOG,
    """
    The topic is spread over the brokers. With one replica each broker that goes away takes its share of the
    transactional ids with it, and a part of all source tasks stops for as long.

    If the disk is lost, so is what the coordinator knew. Transactions that were open hang on their partitions, and a
    zombie of before is no longer known to be one.

    Give the topic more replicas with kafka-reassign-partitions.sh, best 3, and set min.insync.replicas to 2.
    """,
)
ACKNOWLEDGED_ALONE = Rule(
    "BROKER010",
    Severity.WARNING,
    "__transaction_state acknowledges what one replica alone has",
    "A commit that was acknowledged can be lost with its broker, so that a transaction is committed in part",
    _LOG,
    """
    min.insync.replicas says how many replicas must have a record before it is acknowledged. With 1, a leader whose
    followers have fallen behind goes on alone. If it is lost then, so is what it acknowledged: a commit that only some
    partitions have seen, or the epoch that fenced a zombie.

    With three replicas, set min.insync.replicas of the topic to 2. One broker may then be away without anybody noticing.
    """,
)
UNCLEAN = Rule(
    "BROKER011",
    Severity.WARNING,
    "__transaction_state allows unclean leader election",
    "A replica that lacks acknowledged commits may become coordinator, and end transactions the other way",
    "KIP-106; KIP-98",
    """
    With unclean.leader.election.enable=true a partition without any replica in sync is led by one that is not, so that it
    is available again sooner. For the log of transactions that means forgetting: commits half done, and epochs that had
    fenced somebody.

    Brokers create the topic without it. Somebody has altered it; take it back.
    """,
)
STOPS_WITH_ONE = Rule(
    "BROKER012",
    Severity.WARNING,
    "min.insync.replicas of __transaction_state leaves no replica to spare",
    "Source tasks cannot commit while any one broker is away, as in every rolling restart of the brokers",
    _LOG,
    """
    Where every replica must be in sync, none may be away. Tasks then wait for their coordinator. If that lasts longer than
    the transaction timeout their transactions are aborted, and they fail.

    Give the topic one replica more than min.insync.replicas asks for: 3 and 2.
    """,
)
TIMEOUT_REFUSED = Rule(
    "BROKER013",
    Severity.ERROR,
    "A connector's transaction.timeout.ms is above what the brokers allow",
    "InitProducerId is refused with INVALID_TRANSACTION_TIMEOUT, and every task of the connector fails at its start",
    _TIMEOUT,
    """
    With exactly-once support enabled, each task of a source connector has a transactional producer. Its
    transaction.timeout.ms is 60000 unless producer.override.transaction.timeout.ms of the connector, or
    producer.transaction.timeout.ms of the worker, says otherwise.

    Brokers refuse any timeout above their transaction.max.timeout.ms, which is 900000 by default. No part of the worker's
    validation looks at it: the connector is created, and its tasks are FAILED with the message that the transaction timeout
    is larger than the maximum value allowed by the broker.

    Lower the one or raise the other. The broker's property takes effect when the brokers are restarted. Where brokers
    differ, it depends on the coordinator of the id which of the tasks fail.
    """,
)
LEADER_REFUSED = Rule(
    "BROKER014",
    Severity.ERROR,
    "The leader's transaction.timeout.ms is above what the brokers allow",
    "The leader cannot claim its write privileges: connectors can be neither created nor changed",
    f"KIP-618, Leader access to config topic; {_TIMEOUT}",
    """
    From preparing on, the leader writes to the config topic with a transactional producer, whose timeout is 60000 unless
    transaction.timeout.ms stands in the worker's properties.

    Brokers refuse it where their transaction.max.timeout.ms is lower. The leader then has no producer, and everything that
    is written to the config topic fails with 500: new connectors, new configurations, new tasks.

    Raise transaction.max.timeout.ms on the brokers, or lower transaction.timeout.ms in the workers' properties.
    """,
)
FENCING_REFUSED = Rule(
    "BROKER015",
    Severity.ERROR,
    "Workers cannot fence: they do it with a timeout of 90000 ms, which the brokers do not allow",
    "Every round of fencing fails, and with it each task that has been reconfigured",
    f"KIP-618, Zombie fencing by the leader; Worker.fenceZombies; {_TIMEOUT}",
    """
    Before tasks with new configurations start, the leader fences the ids of the old ones with Admin.fenceProducers. Since
    3.7.1 that sends the time it is given for the round, 90 seconds, as the transaction timeout of each id.

    Where transaction.max.timeout.ms of the brokers is lower they answer INVALID_TRANSACTION_TIMEOUT, and the round has
    failed. The first start of a connector needs no fencing, so that this shows later: with the first new configuration.

    Set transaction.max.timeout.ms to 90000 at least; the default is 900000. No property of workers or connectors changes
    those 90 seconds.
    """,
)
IDS_EXPIRE = Rule(
    "BROKER016",
    Severity.WARNING,
    "Brokers forget transactional ids after less than a day",
    "A task that was quiet for longer fails with INVALID_PRODUCER_ID_MAPPING at its next record",
    "KIP-98; transactional.id.expiration.ms",
    """
    An id that takes part in no transaction for transactional.id.expiration.ms, seven days by default, is forgotten. The
    producer that has it does not hear of that. Its next transaction is refused, the error is fatal to it, and the task is
    FAILED until somebody restarts it.

    A source that is quiet over night, a paused connector, or one with few changes meets that with every expiration that is
    shorter than its silence.

    Raise the property on the brokers, best to its default of 604800000.
    """,
)
RULES: tuple[Rule, ...] = (
    TOO_OLD,
    MIXED,
    UNVERIFIED,
    OLD_PROTOCOL,
    CANNOT_BE_CREATED,
    NO_LEADER,
    TOO_FEW_IN_SYNC,
    BEHIND,
    ONE_COPY,
    ACKNOWLEDGED_ALONE,
    UNCLEAN,
    STOPS_WITH_ONE,
    TIMEOUT_REFUSED,
    LEADER_REFUSED,
    FENCING_REFUSED,
    IDS_EXPIRE,
)

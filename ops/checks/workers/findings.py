"""What may be wrong with workers as a group (KIP-618, KIP-507): the rules WORKER001 to WORKER014, with their stories."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

UPGRADE = "KIP-618, Compatibility, Deprecation, and Migration Plan"
LEADER = "KIP-618, Leader access to config topic"
MIXED = "KIP-618, Heterogeneous clusters"
FOREIGN = "KIP-618, Non-worker, non-leader producer to config topic"

TOO_OLD = Rule(
    "WORKER001",
    Severity.ERROR,
    "A worker is of a release without exactly-once source support",
    "One worker that cannot be fenced out compromises the whole cluster, and does not serve the fencing endpoint",
    MIXED,
    """
    Exactly-once source support came with Kafka Connect 3.3. Older workers do not know exactly.once.source.support, read
    it over in their properties, and go on as before.

    Nothing can fence out such a worker. If it leads, tasks on newer workers cannot have zombies fenced; if it follows, its
    tasks write whatever they have.

    Upgrade every worker to 3.3 or newer first. The KIP lets the change to preparing be made in the same round.
    """,
)
COMPATIBLE = Rule(
    "WORKER002",
    Severity.WARNING,
    "The group's protocol is compatible, so that internal requests are not signed",
    "Anyone who reaches a worker's REST port can submit task configurations, and fence the tasks of any connector",
    "KIP-507; KIP-618, Fencing endpoint",
    """
    Workers send each other requests: new task configurations to the leader, and with exactly-once support the request to
    fence zombies. In a group with the protocol sessioned these are signed with a key that only workers can read. With
    compatible they are not, and are served for everybody.

    A group takes the newest protocol that all its workers offer. Sessioned has been the default since 2.4, so that one
    worker has connect.protocol=compatible in its properties, or is older.

    Remove connect.protocol from the properties of every worker and restart them one by one. The last one changes the
    protocol, and the leader then writes the first key.
    """,
)
EAGER = Rule(
    "WORKER003",
    Severity.WARNING,
    "The group's protocol is eager, so that every rebalance stops everything",
    "Each change of a connector and each restart of a worker stops all connectors and tasks of the cluster",
    "KIP-415; KIP-507",
    """
    With connect.protocol=eager every worker gives up all it runs before the group rebalances. A rolling upgrade then
    stops the whole cluster twice for each worker; with exactly-once enabled every task is fenced and started anew each
    time. Internal requests are not signed either, see WORKER002.

    Kafka's own tools call this protocol "default", for it was the first.

    Remove connect.protocol from the properties of every worker and restart them one by one.
    """,
)
LEADER_BEHIND = Rule(
    "WORKER004",
    Severity.ERROR,
    "A worker is enabled while the leader is neither preparing nor enabled",
    "A zombie leader can write to the config topic, and workers take tasks for fenced that are not",
    UPGRADE,
    """
    The first of KIP-618's two rolling upgrades makes every worker preparing, the second enables them one by one. Workers
    that are enabled rely on a leader that writes to the config topic in transactions, so that there is only one.

    This leader does not: Kafka knows no transactional id of it, or what only leaders write has been written without one.

    Set exactly.once.source.support to preparing on every worker that is not enabled, and restart it; or take the enabled
    ones back to preparing first.
    """,
)
UNPREPARED = Rule(
    "WORKER005",
    Severity.INFO,
    "Nothing shows that the leader is preparing",
    "Workers that are enabled before all are preparing cannot count on the fencing endpoint, nor on a single leader",
    UPGRADE,
    """
    Whether a worker is preparing or disabled it tells nobody. A leader shows it: from preparing on it writes to the config
    topic with the transactional id connect-cluster-<group.id>, and it gets that id when it becomes the leader.

    Kafka does not know this id, or what only leaders write has been written outside transactions since the id was last
    used. The leader is then disabled. If it became preparing within the last hour and has not written since, that is not
    seen yet; it writes a new session key every hour.

    Make all workers preparing first, and enable them in a second round. connectctl upgrade plan does both in that order.
    """,
)
UNPROVEN = Rule(
    "WORKER006",
    Severity.INFO,
    "Unknown whether every other worker is preparing",
    "One that is still disabled when others become enabled compromises the guarantee until it is restarted",
    UPGRADE,
    """
    The leader is preparing or enabled, and that is proven. Of a worker that does not lead, and is not enabled, nobody can
    tell from outside whether it is preparing or disabled: no request and no metric says it.

    Look at the properties of these workers, or at the line exactly.once.source.support in the log of their start.
    connectctl upgrade plan reads them where the context's workers section says how.
    """,
)
NO_ID = Rule(
    "WORKER007",
    Severity.ERROR,
    "The leader is enabled and has no transactional id",
    "It cannot write to the config topic: connectors cannot be created, changed or fenced",
    LEADER,
    """
    An enabled leader takes the transactional id connect-cluster-<group.id> when it becomes the leader, and writes to the
    config topic with no other producer. Kafka does not know that id.

    Most often the worker's principal may not use it: it needs Write and Describe on that transactional id. The leader's
    log says "Unable to claim write privileges". Requests that change something end with 500 and "Failed to write to config
    topic".

    connectctl preflight --emit kafka-acls prints the right that is missing; the leader tries again by itself.
    """,
)
LEADER_OPEN = Rule(
    "WORKER008",
    Severity.WARNING,
    "The leader's transaction is open for long",
    "Nothing behind it in the config topic is read, so that changes of connectors do not reach the workers",
    LEADER,
    """
    A leader's transactions are as short as one write. One that is open for more than a minute belongs to a leader that
    hangs, or has died and whose transaction timeout is not over.

    Enabled workers read the config topic up to an open transaction only, and wait for its end when they start tasks.

    The coordinator aborts it when its time-out is over. connectctl transactions abort ends it at once.
    """,
)
ID_ELSEWHERE = Rule(
    "WORKER009",
    Severity.ERROR,
    "The leader's transactional id is used for another topic",
    "Whoever uses the id fences the leader, and the leader fences them: writes of both fail by turns",
    LEADER,
    """
    The transactional id connect-cluster-<group.id> is for writing to the config topic and for nothing else. Its open
    transaction has other partitions in it: some other application uses the same id.

    A leader that was fenced fails its next write, takes the id again, and succeeds; the other one has then been fenced.

    Give the other application an id of its own, and the right to use this one only to the workers' principal.
    """,
)
OTHER_WRITER = Rule(
    "WORKER010",
    Severity.WARNING,
    "Something besides the leader writes to the config topic",
    "Workers cannot tell what it writes from what the leader wrote, and may start tasks whose zombies were not fenced",
    FOREIGN,
    """
    The partition of the config topic remembers for a day which producers with an id wrote to it. Workers write target
    states and log levels with plain producers, which have none; the leader has its transactional id. Any other producer is
    no worker of this group.

    If its transactional id is connect-cluster-… of another group, a second Connect cluster has the same
    config.storage.topic. That is an error: the two overwrite each other's connectors.

    A producer whose transactional id is not known is idempotent only, or its id has expired. Plain producers leave no
    trace here; see WORKER011. Let only the workers' principal write to the topic.
    """,
)
OUTSIDE = Rule(
    "WORKER011",
    Severity.WARNING,
    "What only the leader writes was written outside a transaction",
    "An enabled leader writes in transactions only, so that this was a worker of another mode or no worker at all",
    FOREIGN,
    """
    Task counts, commits of tasks, session keys and restart requests are written by the leader alone. An enabled leader
    sends each in a transaction, behind which there is a marker and therefore no record. Behind this one there is a record,
    or the end of the topic, and it is newer than all that the leader's own producer wrote.

    Either a worker that is disabled led for a while, or something wrote to the topic by hand. What is older, or has been
    compacted away, is not seen.

    Find out who did, and restart the connector concerned: its tasks are then fenced and started anew.
    """,
)
LISTS_DIFFER = Rule(
    "WORKER012",
    Severity.ERROR,
    "Workers of one group list different connectors",
    "They do not read the same config topic; which connectors run depends on which of them leads",
    MIXED,
    """
    All workers of a group must have the same config.storage.topic, and the same Kafka cluster. These were asked several
    times, and list different connectors all the same.

    What is created through one of them is unknown to the others. If the leader is the one that is wrong, it assigns what
    its own topic says, and the rest never runs.

    Compare config.storage.topic in the properties of the workers, and correct those that are wrong.
    """,
)
SHARED_CONFIG = Rule(
    "WORKER013",
    Severity.ERROR,
    "Another group of workers uses the same config topic",
    "Every connector runs twice, and two leaders write to one topic; exactly-once cannot hold",
    MIXED,
    """
    Workers form one cluster by their group.id. Two groups with one config.storage.topic are two clusters that run the same
    connectors: each record is written twice, and the offsets of one overwrite those of the other.

    The other group runs connectors of this config topic only, and no other topic fits it. It has another group.id by
    mistake, or was made from a copy of the properties. Where nothing more is seen this is a warning, because a principal
    that may not read all topics may not see the right one. It is certain, and an error, where the other leader writes to
    this topic, or its workers write to the same status topic.

    Give its workers this group.id, or topics of their own.
    """,
)
SHARED_STATUS = Rule(
    "WORKER014",
    Severity.WARNING,
    "Another group of workers writes to the same status topic",
    "The connector and task states that workers report are those of two clusters",
    MIXED,
    """
    The status topic has states that a worker of another group wrote, for connectors that the same worker runs there now.
    Where both groups have a connector of one name, its state is that of whoever wrote last: FAILED may be the other's.

    A worker that was moved to another group with its connectors leaves such states behind, too. They go away when the
    leader cleans up after the next rebalance.

    Give each cluster a status.storage.topic of its own.
    """,
)
RULES: tuple[Rule, ...] = (
    TOO_OLD,
    COMPATIBLE,
    EAGER,
    LEADER_BEHIND,
    UNPREPARED,
    UNPROVEN,
    NO_ID,
    LEADER_OPEN,
    ID_ELSEWHERE,
    OTHER_WRITER,
    OUTSIDE,
    LISTS_DIFFER,
    SHARED_CONFIG,
    SHARED_STATUS,
)

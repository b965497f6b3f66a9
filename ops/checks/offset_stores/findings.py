"""The rules about offset stores with their stories; ``stores`` decides when they apply."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

LOSES_ITS_PLACE = Rule(
    "STORE001",
    Severity.ERROR,
    "A connector loses its offsets, because its dedicated offsets topic is not seeded",
    "Workers do not fall back to the global topic as the proposal has it, and the source is read from the beginning",
    "KIP-618, Smooth migration; ConnectorOffsetBackingStore.get",
    """
    A source connector can have an offsets topic of its own: because offsets.storage.topic names one, or, with exactly-once
    enabled, because its producer has other bootstrap servers than the workers. KIP-618 promises that a task sees both
    topics, so that an empty dedicated one does no harm.

    No release from 3.3 to 4.3.1 keeps that promise. The dedicated store answers every key it is asked for, with a null
    where it has nothing, and that null is laid over the offset of the global topic. The task starts its source partitions
    over; what it then commits goes to the global topic, too, so that soon the right offset is gone from both.

    Copy the offsets before the connector starts with the new topic: connectctl offsets merge CONNECTOR --into dedicated.
    For a topic that only exactly-once brings about, name it first with offsets.storage.topic, which works in every mode,
    and seed it while the workers are as they are.
    """,
)
STALE = Rule(
    "STORE002",
    Severity.ERROR,
    "A dedicated offsets topic of earlier times wins over newer offsets when exactly-once is enabled again",
    "The dedicated topic always wins, however old it is, and the source is read again from there",
    "KIP-618, Hard downgrade",
    """
    After a downgrade workers leave a dedicated topic that came with exactly-once, and go on in the global one. The old
    topic stays as it was. With the next upgrade it is read again, and its offsets win over the newer ones.

    What the connector wrote in between is written again. The proposal says to delete such topics before an upgrade; with
    today's workers that alone loses all offsets (STORE001).

    Name the topic with offsets.storage.topic, and merge into it with the policy that takes the newer offsets:
    connectctl offsets merge CONNECTOR --into dedicated shows every difference before it writes.
    """,
)
CANNOT_BE_CREATED = Rule(
    "STORE003",
    Severity.ERROR,
    "A dedicated offsets topic does not exist, and its Kafka cluster has too few brokers for it",
    "The connector and its tasks fail at their next start",
    "KIP-618, Per-connector offsets topics",
    """
    Workers create a connector's offsets topic with their own offset.storage.replication.factor, 3 by default, wherever
    it is. A Kafka cluster with fewer brokers refuses that, and the connector fails.

    How many replicas the workers want is read off the global topic, which they created with the same setting. If that
    was changed since, so is the answer.

    Create the topic by hand, with cleanup.policy=compact and as many replicas as there are brokers. Workers take a topic
    that exists as it is, if its clean-up policy is nothing but compact.
    """,
)
WILL_BE_CREATED = Rule(
    "STORE004",
    Severity.INFO,
    "A dedicated offsets topic does not exist yet, and will be created by the connector's admin client",
    "Without the right to create it the connector fails at its start",
    "KIP-618, Per-connector offsets topics",
    """
    The workers have no offsets of this connector, so that a new topic loses none. It is created when the connector or
    one of its tasks starts, with the connector's admin client, and with partitions and replicas as the workers' own.

    The admin client's principal needs Create on the topic, or on the cluster. Without it the connector fails.
    """,
)
TWO_SPELLINGS = Rule(
    "STORE005",
    Severity.WARNING,
    "Two spellings of the same bootstrap servers make a needless second offset store",
    "Offsets are written again outside of the transaction, late writes of a zombie among them",
    "Worker.sameOffsetTopicAsWorker",
    """
    With exactly-once enabled a worker decides by text whether a connector writes to the workers' own Kafka cluster: the
    set of bootstrap servers of its producer against the set of the worker's. localhost for 127.0.0.1, one broker more or
    less, a final dot: each makes it another cluster to Connect. Another order does not.

    Then the same topic has two stores. The task commits its offsets in the transaction, and afterwards the worker writes
    them once more with a producer that knows no transactions and that no round of fencing stops. Such a write that is
    late overwrites what a newer task has committed.

    Remove producer.override.bootstrap.servers where it names the workers' own cluster, or spell it as they do.
    """,
)
INTERNAL_TOPIC = Rule(
    "STORE006",
    Severity.ERROR,
    "A dedicated offsets topic is the workers' config or status topic",
    "Source offsets are mixed into what the whole Connect cluster lives on",
    "KafkaConfigBackingStore, KafkaStatusBackingStore",
    """
    Any compacted topic is taken for an offsets topic without a look at what is in it. The config topic has one partition,
    and workers discard records whose keys they do not know, so that it even seems to work.

    But the connector's principal can then write to it, and with exactly-once every open transaction of a task keeps all
    workers from reading their configuration to its end.

    Give the connector a topic of its own, and bring its offsets there: connectctl offsets copy.
    """,
)
CLIENTS_APART = Rule(
    "STORE007",
    Severity.ERROR,
    "A connector's producer connects to another Kafka cluster than its consumer or its admin client",
    "Offsets are written where they are not read, and zombies are fenced where they do not write",
    "Worker.offsetStoreForExactlyOnceSourceTask, Worker.fenceZombies",
    """
    With a separate offset store, or with exactly-once, a connector's own clients do what the workers' did before: the
    producer writes offsets, the consumer reads them, the admin client creates the topic and fences older producers. Each
    has its own override of bootstrap.servers, and nothing makes them agree.

    Where only the producer is sent elsewhere, its offsets go to the other cluster, the consumer reads an empty topic of
    the same name here, and a round of fencing bumps epochs on a cluster that no zombie writes to.

    Set producer.override.bootstrap.servers, consumer.override.bootstrap.servers and admin.override.bootstrap.servers to
    the same.
    """,
)
OWN_TARGET = Rule(
    "STORE008",
    Severity.ERROR,
    "A connector writes its records to the topic in which its offsets are",
    "With exactly-once its tasks fail; without, records of both kinds delete each other by compaction",
    "ExactlyOnceWorkerSourceTask.prepareToSendRecord",
    """
    A task with exactly-once that gives the worker a record for its own offsets topic fails at once: in its transaction it
    would wait for itself when it reads that topic to the end.

    Without exactly-once nothing stops it. Workers ignore records whose keys are no source offsets, but compaction does not,
    and a record that looks like an offset is one.

    Give the connector another target, or its offsets another topic.
    """,
)
IMPLICIT = Rule(
    "STORE009",
    Severity.INFO,
    "With exactly-once enabled a connector's offsets move to the Kafka cluster that it writes to",
    "A topic named like the workers' own is created there, where another Connect cluster may have one of that name",
    "KIP-618, Per-connector offsets topics",
    """
    Offsets are committed in the transaction of the records, so that they have to be on the same Kafka cluster. For a
    connector whose producer has other bootstrap servers, and without offsets.storage.topic, workers take a topic with the
    name of their own offsets topic there.

    Where another Connect cluster keeps its offsets under that name, both share it from then on. That works as long as no
    two connectors have the same name.

    Set offsets.storage.topic for a name of its own. It holds in every mode, so that nothing moves with the upgrade.
    """,
)
LEFT_BEHIND = Rule(
    "STORE010",
    Severity.WARNING,
    "A dedicated offsets topic is ahead of the global one that workers go back to",
    "Tasks start from older offsets, and write again what they have written since",
    "KIP-618, Offsets accuracy",
    """
    Workers write every committed offset a second time, to the global topic, outside of the transaction, and do not insist
    on it. So the global topic can be behind, and after a downgrade it is all that is read: at once where the dedicated
    topic came only with exactly-once, with workers before 3.3 for those that offsets.storage.topic names.

    What is younger than a minute is not counted here; the second write may be on its way.

    Stop the connector, and bring the offsets back before the downgrade: connectctl offsets merge CONNECTOR --into global.
    """,
)
SHARED = Rule(
    "STORE011",
    Severity.INFO,
    "Several connectors share one dedicated offsets topic",
    "An open transaction of one of them keeps the others from starting",
    "KIP-618, Per-connector offsets topics",
    """
    Keys in an offsets topic begin with the connector's name, so that connectors do not overwrite each other.

    But a task reads the topic to its end before it starts, and waits for every transaction that is open on it. To keep
    one connector's transactions away from another is what dedicated topics are for.
    """,
)
RESET_FAILS = Rule(
    "STORE012",
    Severity.INFO,
    "The workers' own REST API cannot reset the offsets of connectors with a dedicated topic",
    "Half of the reset is done: the global topic is empty and the dedicated one, which is read, is not",
    "ConnectorOffsetBackingStore.set; Worker.modifySourceConnectorOffsets",
    """
    Since 3.8 tombstones are written to the global topic first, and to the dedicated one when that is done. With
    exactly-once enabled the worker commits its transaction in between, and the second write finds none.

    DELETE /connectors/CONNECTOR/offsets then ends after 90 seconds with a time-out, and so does PATCH with a null.

    connectctl offsets reset writes both topics itself, in a transaction, on a stopped connector.
    """,
)
RULES: tuple[Rule, ...] = (
    LOSES_ITS_PLACE,
    STALE,
    CANNOT_BE_CREATED,
    WILL_BE_CREATED,
    TWO_SPELLINGS,
    INTERNAL_TOPIC,
    CLIENTS_APART,
    OWN_TARGET,
    IMPLICIT,
    LEFT_BEHIND,
    SHARED,
    RESET_FAILS,
)

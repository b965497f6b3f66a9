"""What an audit can find, with the long stories."""

from __future__ import annotations

from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

DUPLICATES = Rule(
    "AUDIT001",
    Severity.ERROR,
    "Source records are in the topic more than once",
    "Readers of read_committed get them twice, so that exactly-once did not hold",
    "KIP-618, Motivation",
    """
    A number of the sequence was read from committed records more than once within one source partition.

    It comes about where a task wrote its records and its offsets in different transactions, where exactly-once support was
    not enabled, where a second task started from an older offset without the first being fenced, or where a producer went
    on with a transaction after a doubt (a late EndTxn then commits half of it).

    The evidence tells both copies by topic, partition and offset. Look at which producers wrote them: connectctl audit
    --evidence DIR keeps all of them, and connectctl fence shows who else holds the transactional id.
    """,
)
GAPS = Rule(
    "AUDIT002",
    Severity.ERROR,
    "Source records are missing from the topic",
    "What the source had is not in the topic, and no reader will ever get it",
    "KIP-618, Motivation",
    """
    Numbers of the sequence between the first and the last of a source partition are nowhere among the committed records.

    It comes about where an offset was committed and its records were not (offsets outside of the transaction, a record
    dropped by a transformation or by errors.tolerance=all), where a broker lost acknowledged records (unclean leader
    election), where retention or compaction removed them, or where the sequence has holes of its own at the source.

    If the numbers need not follow each other at the source, choose another field as --sequence.
    """,
)
REORDERED = Rule(
    "AUDIT003",
    Severity.ERROR,
    "Source records are in another order than at the source",
    "Within a partition Kafka keeps the order of writing, so that whoever wrote them did not",
    "KIP-618, Public Interfaces",
    """
    In one Kafka partition a record of a source partition stands before another one that has a smaller number. Nothing is
    missing by that and nothing is twice, but a reader who relies on the order is wrong.

    It comes about where two tasks had one source partition at the same time, where retries overtook each other
    (max.in.flight.requests.per.connection above 1 without idempotence), or where a task went back in its source.

    Between Kafka partitions there is no order, and none is asked for.
    """,
)
BEYOND = Rule(
    "AUDIT004",
    Severity.ERROR,
    "Committed records lie beyond the committed source offset",
    "A task that starts now reads them from the source again, and they will be there twice",
    "KIP-618, Offset (and record) writes",
    """
    Records and source offsets belong in one transaction; then the newest record is at the offset. Here records are beyond
    it: their transaction did not carry the offset, or offsets were changed since.

    It is what at-least-once looks like between two commits of offsets, too: enable exactly-once support on all workers
    (connectctl upgrade). If nobody has started the connector since, connectctl offsets set moves its offset.
    """,
)
LOST = Rule(
    "AUDIT005",
    Severity.ERROR,
    "The committed source offset is beyond the records",
    "A task that starts now skips records that are missing",
    "KIP-618, Offset (and record) writes",
    """
    The offsets topic says that the source was read up to a record that is not among the committed ones. An offset was
    committed and its records were not, or they were removed, or the offset was set by hand.

    connectctl offsets set moves it back to the last record that is there; the source must still have the rest.
    """,
)
TORN = Rule(
    "AUDIT006",
    Severity.ERROR,
    "A transaction was committed in one partition and aborted in another",
    "Half of what belongs together can be read and half never will be",
    "KIP-98, Transactional Guarantees",
    """
    A transaction has one outcome, and its coordinator writes the same marker to every partition. Here producer, epoch and
    order of the markers prove that two partitions have different ones.

    It comes about where somebody aborted in a partition by hand (kafka-transactions.sh abort, connectctl transactions abort)
    what its coordinator then committed, or by a broker's fault. The records of the aborted part are in the log and hidden;
    the evidence tells their offsets. Write them again from the source: set its offset back to before them.
    """,
)
UNCLEAR = Rule(
    "AUDIT007",
    Severity.WARNING,
    "Two partitions end differently, of one transaction or of two",
    "If they are of one transaction, it was torn apart",
    "KIP-890, transaction version 2",
    """
    With transaction version 2 every transaction has its own epoch, and parts in different partitions are told apart. Before
    it (brokers without the feature, or clients that do not use it, librdkafka among them), one epoch holds many
    transactions. What is left is time: one transaction ends everywhere before the next begins.

    Here a part that was committed and one that was aborted overlap in time by the producer's timestamps, by more than
    clocks usually differ. That is what a torn transaction looks like, or a producer with a wrong clock, or with the
    timestamps of its source. message.timestamp.type=LogAppendTime on the topic would decide it.
    """,
)
DISAGREE = Rule(
    "AUDIT008",
    Severity.ERROR,
    "Batch headers and records do not agree on what is committed",
    "One of the two was not read completely, so nothing is proven",
    "connectctl",
    """
    The headers tell how many records of a partition are committed; a reader with read_committed was given another number.
    Both look at the same offsets, which were fixed when the audit began.

    It comes about where retention or compaction removed records in between (then audit again), where the log is damaged,
    or where a client or a broker has a fault. The finding names the partition.
    """,
)
MISSING_BATCHES = Rule(
    "AUDIT009",
    Severity.ERROR,
    "Sequence numbers of a producer are missing in the log",
    "An idempotent producer numbers all its records, and a broker takes none out of order: what is missing was lost",
    "KIP-98, Idempotent Producer Guarantees",
    """
    A batch does not follow the last one of its producer and epoch in its partition. Brokers refuse that, so that the batches
    in between were written and are gone: by an unclean leader election or a disk, most of all.

    Partitions that are compacted are not judged, nor is the first batch of a producer in a log of which retention removed
    the beginning.
    """,
)
STALE_BATCH = Rule(
    "AUDIT010",
    Severity.ERROR,
    "A batch is in the log again, or after its producer was fenced",
    "A broker should have refused it, so that fencing and idempotence did not hold",
    "KIP-98, Idempotent Producer Guarantees",
    """
    A batch has a sequence that its producer and epoch had before in this partition, or an epoch that is older than the one
    that already wrote. Brokers remember the last five batches of every producer and its epoch, and refuse both, unless
    they forgot it: producer.id.expiration.ms is shorter than the producer's pause.
    """,
)
OPEN = Rule(
    "AUDIT011",
    Severity.INFO,
    "A transaction is open",
    "Readers of read_committed get nothing that comes after its first record in its partition",
    "KIP-98, Reading committed messages",
    """
    The transaction had no marker when the audit ended. That is how it should be while a producer writes; the audit waits a
    few seconds for it. It is a warning where it is open for more than a minute.

    connectctl transactions list --open tells whose it is; connectctl transactions hanging whether anybody will end it, and
    connectctl transactions abort ends it.
    """,
)
UNREAD = Rule(
    "AUDIT012",
    Severity.WARNING,
    "Committed records lie behind an open transaction",
    "No reader gets them yet, so that they were not audited",
    "KIP-98, Reading committed messages",
    """
    Readers of read_committed get to the last stable offset, and that is where an open transaction begins. What others
    committed behind it is there by the headers, and was not looked at.

    Audit again when the transaction has ended, or end it: connectctl transactions lag.
    """,
)
NO_SEQUENCE = Rule(
    "AUDIT013",
    Severity.WARNING,
    "The order of the source's records is unknown",
    "Duplicates, gaps and reordering were not checked",
    "connectctl",
    """
    Batch headers prove that transactions are whole. Whether each record of the source is there once needs something in the
    records that counts them: --sequence '$.seq' in the value, key:$.id in the key, header:NAME in a header, or
    'text:line (\\d+)' in a value that is text; and --by for what they are counted within, the record key if nothing is said.

    --connector NAME infers both for connectors whose records are known to tell them, VerifiableSourceConnector's. Where the
    source has no such number, add one: a line number, an id of the table, an upstream offset in a header.
    """,
)
UNNUMBERED = Rule(
    "AUDIT014",
    Severity.WARNING,
    "Records have no sequence number",
    "Duplicates and gaps among them are not detected",
    "connectctl",
    """
    The way that --sequence gives leads to nothing in these records, or to something that is not a 64-bit integer: no
    such field, no JSON, a tombstone. If it is so for all records, the path is wrong.
    """,
)
NOT_COMPARED = Rule(
    "AUDIT015",
    Severity.WARNING,
    "Source offsets were not compared with the records",
    "Records beyond the offset, and offsets beyond the records, were not checked",
    "connectctl",
    """
    A source offset means what its connector says it means. It is compared where it is known to be the number of the last
    record: for VerifiableSourceConnector, and for the member that --offset-field names, if the source partition has one
    member whose value the records have as --by.
    """,
)
NO_SPARK = Rule(
    "AUDIT016",
    Severity.WARNING,
    "Records were not read",
    "Batch headers alone do not show duplicates of the source's records",
    "connectctl",
    """
    So many records are read with Spark, and it is not installed: pip install 'connectctl[spark]', and Java 17 or 21.
    --engine local reads them in this process, however long it takes. --headers-only says that headers are enough.
    """,
)
PLAIN = Rule(
    "AUDIT017",
    Severity.INFO,
    "Records were written outside of transactions",
    "They are committed at once, and cannot have been written together with their source offset",
    "KIP-618, Offset (and record) writes",
    """
    A source connector with exactly-once support writes nothing without a transaction. Records without one are of a time
    before it was enabled, of a worker on which it is not, or of somebody else.
    """,
)
REMOVED = Rule(
    "AUDIT018",
    Severity.INFO,
    "The beginning of the topic is gone",
    "What retention or compaction removed cannot be audited",
    "topic configuration, cleanup.policy",
    """
    The topic does not begin at offset 0, or is compacted. The audit holds for what is there. On a compacted topic older
    records of a key are removed by design, and count as gaps where keys are shared by several numbers.
    """,
)
LINES = Rule(
    "AUDIT019",
    Severity.ERROR,
    "The lines in the topic are not as long as the position in the file",
    "Lines are missing, or are there twice",
    "FileStreamSourceTask",
    """
    FileStreamSource keeps as its offset how many characters of the file it has read. The committed records, each with its
    line's end, add up to another number. More than the position: lines are there twice, or beyond the offset. Less: lines
    are missing, or empty ones were left out, or lines end with CR LF, which is told.

    Equal numbers prove less than a sequence does: a line that is missing and one of equal length that is there twice
    make up for each other.
    """,
)
NOTHING = Rule(
    "AUDIT020",
    Severity.ERROR,
    "There was nothing to audit",
    "An audit of no records proves nothing, whatever is wrong with the topic",
    "connectctl",
    """
    Between --since and --until, or in the topic, there is no committed record; with --headers-only, no batch at all.
    That is neither a proof that exactly-once held nor one that it did not.

    Look at the time: without a zone it is UTC, and a date alone is its first moment. connectctl audit TOPIC -o wide without
    --since and --until shows what each partition holds.
    """,
)

RULES: tuple[Rule, ...] = (
    DUPLICATES,
    GAPS,
    REORDERED,
    BEYOND,
    LOST,
    TORN,
    UNCLEAR,
    DISAGREE,
    MISSING_BATCHES,
    STALE_BATCH,
    OPEN,
    UNREAD,
    NO_SEQUENCE,
    UNNUMBERED,
    NOT_COMPARED,
    NO_SPARK,
    PLAIN,
    REMOVED,
    LINES,
    NOTHING,
)

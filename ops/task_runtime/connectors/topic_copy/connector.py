"""Topics of one cluster copied to another. Its offsets are those of Kafka's MirrorSourceConnector:
either resumes where the other stopped.

The configuration has MirrorMaker's own names; the source partition is
``{"cluster", "partition", "topic"}``, the source offset ``{"offset"}`` of the record that was
copied last, as ``MirrorSourceTask`` writes them. Partition, key, value, headers and timestamp stay
the same. Record batches are copied unopened where nothing needs their records
(``copy.batches``). With ``copy.batches: opened`` a record loses a timestamp of
1970-01-01T00:00:00Z. Remote topics are created, and get partitions, when a run starts, and each
``refresh.topics.interval.seconds``: topics and partitions that have appeared are copied from their
beginning, by a new generation of tasks.

Differences from MirrorSourceConnector, each of which ``outlook`` reports where the configuration is
made for it:

- Records alone are copied. Offset syncs, and with them checkpoints, and the sync of configurations
  and ACLs are left to MirrorMaker.
- A source consumer reads committed records only, unless ``source.consumer.isolation.level`` is
  set.
- Bytes are copied without converters. A worker without ``header.converter`` writes headers in
  base64.
- A poll takes ``records.per.transaction`` records, up to the end of their batch where batches stay
  unopened, or what comes in ``consumer.poll.timeout.ms``; it is the transaction where
  ``transaction.boundary`` is poll. With interval a transaction takes what comes in the interval,
  with ``transaction.boundary.latency.ms`` up to ``records.per.transaction`` records, within the
  promise.
- A source that has fewer records than were copied from it fails the task, and is not copied again
  from its beginning.

Where the source has lost records before they were copied, the task fails with their range, unless
``source.consumer.auto.offset.reset`` is given: earliest and latest continue without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.mirror_topics import EXCLUDED_BEFORE_4, INCLUDED
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.connectors.topic_copy import (
    mirror_offsets,
    remote_topics,
    source_clients,
)
from connectctl.ops.task_runtime.connectors.topic_copy.batch_reader import BatchReader
from connectctl.ops.task_runtime.connectors.topic_copy.remote_topics import RemoteTopics
from connectctl.ops.task_runtime.connectors.topic_copy.replication_policy import (
    JAVA,
    policy_of,
    selection_of,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source import (
    AUTO,
    UNOPENED,
    WAY,
    WAYS,
    CopiedTopics,
    TransactionLimits,
    UnopenedTopics,
    puts_together,
    stays_unopened,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source_reader import TopicReader
from connectctl.ops.task_runtime.connectors.topic_copy.source_starts import SourceCluster
from connectctl.ops.task_runtime.spi import tasks_max
from connectctl.ops.task_runtime.spi.connector import (
    ExactlyOnceSupport,
    Outlook,
    Setting,
    SourceConnector,
    SourceContext,
)
from connectctl.ops.task_runtime.spi.delivery_settings import exactly_once
from connectctl.ops.task_runtime.spi.transaction_batch import TaskRecordSource

RECORDS, POLL_TIMEOUT = "records.per.transaction", "consumer.poll.timeout.ms"
DEFAULT_RECORDS, DEFAULT_POLL_TIMEOUT = 50_000, 1000
DEFAULT_UNOPENED = 500_000
"""Records of a transaction whose batches stay unopened: what comes in a second ends it before,
where that is less.
"""
ISOLATION = "source.consumer.isolation.level"
CONVERTERS = ("key.converter", "value.converter", "header.converter")
_BYTES = ("org.apache.kafka.connect.converters.ByteArrayConverter", "ByteArrayConverter")
_THEIRS = (f"{JAVA}MirrorSourceConnector", "MirrorSourceConnector", "MirrorSource")
_LEFT = {
    "emit.offset-syncs.enabled": "offset syncs",
    "sync.topic.configs.enabled": "the sync of topic configurations",
    "sync.topic.acls.enabled": "the sync of topic ACLs",
}
"""What MirrorSourceConnector does besides copying; each is on unless it is switched off."""
_ONE_CLASS = {
    "topic.filter.class": "DefaultTopicFilter",
    "config.property.filter.class": "DefaultConfigPropertyFilter",
    "forwarding.admin.class": "ForwardingAdmin",
}
REFRESHES, REFRESH = "refresh.topics.enabled", "refresh.topics.interval.seconds"
DEFAULT_REFRESH = 600
_NUMBERS = {RECORDS: 1, POLL_TIMEOUT: 0, "replication.factor": 1, REFRESH: 1}


class TopicCopy(SourceConnector):
    """Partitions of the topics that ``topics`` selects, in turn among at most ``tasks.max``
    tasks.
    """

    converts = False
    settings = (
        Setting("source.cluster.alias", "Alias of the source cluster.", required=True),
        Setting(
            "source.cluster.bootstrap.servers",
            "Bootstrap servers of the source cluster.",
            required=True,
        ),
        Setting("target.cluster.alias", "Alias of the target cluster.", default="target"),
        Setting("topics", "Topics to copy: names and regular expressions.", default=INCLUDED),
        Setting(
            "topics.exclude",
            "Topics to exclude: names and regular expressions.",
            default=EXCLUDED_BEFORE_4,
        ),
        Setting(
            "replication.policy.class", "DefaultReplicationPolicy or IdentityReplicationPolicy."
        ),
        Setting(
            "replication.policy.separator",
            "Separator between alias and topic in the name of a remote topic.",
            default=".",
        ),
        Setting("replication.factor", "Replication factor of new remote topics."),
        Setting(
            RECORDS,
            f"Number of records after which a transaction ends; {DEFAULT_UNOPENED} where batches "
            "are copied unopened.",
            default=str(DEFAULT_RECORDS),
        ),
        Setting(
            WAY,
            "auto, unopened or opened: whether record batches are copied as they are; auto opens "
            "them where it has to.",
            default=AUTO,
        ),
        Setting(
            REFRESH,
            "Seconds between two looks for new topics and partitions.",
            default=str(DEFAULT_REFRESH),
        ),
        Setting(
            REFRESHES, "Whether new topics and partitions are copied while it runs.", default="true"
        ),
        Setting(
            POLL_TIMEOUT, "Timeout of a poll in milliseconds.", default=str(DEFAULT_POLL_TIMEOUT)
        ),
    )

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        found = super().validate(configs)
        for name, problem in (*_problems(configs), *source_clients.problems(configs)):
            found.setdefault(name, []).append(problem)
        return found

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Unless records of aborted transactions are copied, too."""
        committed = source_clients.isolation(configs) == "read_committed"
        return ExactlyOnceSupport.SUPPORTED if committed else ExactlyOnceSupport.UNSUPPORTED

    def outlook(self, configs: Mapping[str, str]) -> Outlook:
        """Raises ``ConnectctlError`` for a source that cannot be read, or that has nothing to
        copy.
        """
        source = source_clients.source_of(configs, self.context.target.timeout)
        planned = self._plan(source, configs, first=True)
        tasks = len(mirror_offsets.share(planned.topic_partitions, tasks_max.limit(configs)))
        return Outlook(planned.descriptions(), list(_notes(configs)), tasks)

    def start(self, configs: Mapping[str, str]) -> None:
        super().start(configs)
        source = source_clients.source_of(configs, self.context.target.timeout)
        self._wanted = self._plan(source, configs)
        with source_clients.unreachable(configs["source.cluster.alias"]):
            remote_topics.prepare(source, self.context.target, self._wanted, configs)

    def _plan(
        self, source: Kafka, configs: Mapping[str, str], *, first: bool = False
    ) -> RemoteTopics:
        alias = configs["source.cluster.alias"]
        servers = source_clients.java(configs, source_clients.ADMIN)["bootstrap.servers"]
        with source_clients.unreachable(alias, servers if first else None):
            source.cluster_id()
        planned = remote_topics.plan_remote_topics(
            source, self.context.target, selection_of(configs)
        )
        if not planned.topics:
            raise BadInput(
                f"No topic to copy on the source cluster {alias}",
                why=f"topics is {configs.get('topics', INCLUDED)}, "
                f"topics.exclude {configs.get('topics.exclude', EXCLUDED_BEFORE_4)}",
                next_step="Change the property topics, or create the topic first.",
                code="no-topic",
            )
        return planned

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return mirror_offsets.tasks(
            self.configs, mirror_offsets.share(self._wanted.topic_partitions, max_tasks)
        )

    def refresh_seconds(self, configs: Mapping[str, str]) -> float | None:
        """Return the interval of MirrorMaker's property."""
        if configs.get(REFRESHES, "true").strip().lower() == "false":
            return None
        return float(configs.get(REFRESH, DEFAULT_REFRESH))

    def changed_tasks(
        self, configs: Mapping[str, str], tasks: Sequence[Mapping[str, str]], max_tasks: int
    ) -> list[dict[str, str]] | None:
        """Create the remote topics and partitions of those that have appeared, and share these out
        besides.
        """
        source = source_clients.source_of(configs, self.context.target.timeout)
        planned = self._plan(source, configs)
        running = [mirror_offsets.decode(task[mirror_offsets.ASSIGNED]) for task in tasks]
        shares = mirror_offsets.share_again(running, planned.topic_partitions, max_tasks)
        if shares == running:
            return None
        with source_clients.unreachable(configs["source.cluster.alias"]):
            remote_topics.prepare(source, self.context.target, planned, configs)
        before = {partition for share in running for partition in share}
        before -= {
            partition
            for task in tasks
            for partition in mirror_offsets.decode(task.get(mirror_offsets.ADDED, ""))
        }
        return mirror_offsets.tasks(configs, shares, before)

    @classmethod
    def supply(cls, share: SourceContext) -> TaskRecordSource | None:
        configs = share.configs
        source = SourceCluster(
            configs["source.cluster.alias"],
            source_clients.client(configs, source_clients.CONSUMER),
            source_clients.client(configs),
            source_clients.isolation(configs),
            source_clients.reset(configs),
            share.timeout,
            source_clients.reset_given(configs),
            frozenset(mirror_offsets.decode(configs.get(mirror_offsets.ADDED, ""))),
        )
        unopened = stays_unopened(
            configs, source.consumer, exactly_once=share.delivery.exactly_once
        )
        reader = BatchReader(source, puts_together(configs)) if unopened else TopicReader(source)
        kind, most = (
            (UnopenedTopics, DEFAULT_UNOPENED) if unopened else (CopiedTopics, DEFAULT_RECORDS)
        )
        return kind(
            reader,
            share.connector,
            mirror_offsets.decode(configs[mirror_offsets.ASSIGNED]),
            policy_of(configs),
            share.delivery,
            TransactionLimits(
                int(configs.get(RECORDS, most)),
                int(configs.get(POLL_TIMEOUT, DEFAULT_POLL_TIMEOUT)) / 1000,
            ),
            share.offsets_topic,
            share.stats,
        )


def _problems(configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, read in (("replication.policy.class", policy_of), ("topics", selection_of)):
        try:
            read(configs)
        except BadInput as e:
            yield name, str(e)
            break
    if configs.get("enabled", "true").strip().lower() == "false":
        yield "enabled", "enabled=false: the connector is disabled"
    for name, only in _ONE_CLASS.items():
        given = configs.get(name, only)
        if given.rpartition(".")[2] != only:
            yield name, f"{name}={given} is not supported: only {only} is"
    for name, least in _NUMBERS.items():
        given = configs.get(name, str(least)).strip()
        if not given.isascii() or not given.isdigit() or int(given) < least:
            yield (
                name,
                f"Invalid value {given} for configuration {name}: must be an integer of at least "
                f"{least}",
            )
    way = configs.get(WAY, AUTO).strip().lower()
    if way not in WAYS:
        yield WAY, f"Invalid value {way} for configuration {WAY}: must be {', '.join(WAYS)}"
    if way == UNOPENED and not exactly_once(configs):
        yield (
            WAY,
            f"{WAY}=unopened needs exactly-once: only a transactional producer writes whole "
            "batches",
        )
    for name in CONVERTERS:
        if configs.get(name, _BYTES[0]) not in _BYTES:
            yield (
                name,
                f"{name} must be ByteArrayConverter or unset: records are copied byte for byte",
            )
    if (
        configs.get("exactly.once.support", "").lower() == "required"
        and source_clients.isolation(configs) != "read_committed"
    ):
        why = (
            f"{ISOLATION} must be read_committed: otherwise records of aborted transactions "
            "would be copied"
        )
        yield ISOLATION, why


def _notes(configs: Mapping[str, str]) -> Iterator[str]:
    """Yield the differences from what the configuration may lead the user to expect."""
    is_mirror = configs.get("connector.class") in _THEIRS
    left_out = [
        name for name in _LEFT if configs.get(name, str(is_mirror)).strip().lower() == "true"
    ]
    if left_out:
        text = ", ".join(f"{_LEFT[name]} ({name})" for name in left_out)
        yield f"Only records are copied; not done, unlike MirrorMaker: {text}."
    if is_mirror and not any(
        f"{prefix}isolation.level" in configs for prefix in source_clients.CONSUMER
    ):
        yield (
            f"{ISOLATION} is not set: only committed records are copied; a worker also copies "
            "the others."
        )
    missing = [name for name in CONVERTERS if name not in configs]
    if is_mirror and missing:
        verb = "is" if len(missing) == 1 else "are"
        text = f"{', '.join(missing)} {verb} not set"
        yield f"{text}: records are copied byte for byte; workers use their own default converters."
    if source_clients.isolation(configs) != "read_committed":
        yield (
            f"{ISOLATION} is read_uncommitted: records of aborted and open transactions are "
            "copied as well."
        )
    if unknown := source_clients.unknown(configs):
        yield (
            f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} ignored: librdkafka "
            "has no such property."
        )

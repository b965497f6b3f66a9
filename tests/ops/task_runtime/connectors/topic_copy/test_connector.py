"""A topic copy in MirrorMaker's terms: what is copied, to where, by whom; and each record once,
whatever is in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.connector_config.subject import SINK, SOURCE, Subject
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import Complete
from connectctl.ops.task_runtime.connectors.topic_copy import remote_topics, source_clients
from connectctl.ops.task_runtime.connectors.topic_copy.connector import TopicCopy
from connectctl.ops.task_runtime.connectors.topic_copy.mirror_offsets import (
    decode,
    encode,
    share,
    share_again,
)
from connectctl.ops.task_runtime.connectors.topic_copy.replication_policy import (
    JAVA,
    ReplicationPolicy,
    Selection,
    pattern,
    selection_of,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source import (
    CopiedTopics,
    TransactionLimits,
    stays_unopened,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source_reader import TopicBatch, TopicReader
from connectctl.ops.task_runtime.connectors.topic_copy.source_starts import LostRange
from connectctl.ops.task_runtime.spi.connector import (
    ConnectorContext,
    ExactlyOnceSupport,
    SourceContext,
)
from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings, delivery_settings
from connectctl.ops.task_runtime.spi.plugins import path_of, task_class
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    TaskResult,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.spi.validation import validated
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from fakes.snapshots import Snapshots
from hypothesis import given
from hypothesis import strategies as st

BASE = {
    "connector.class": "TopicCopy",
    "source.cluster.alias": "east",
    "target.cluster.alias": "west",
    "source.cluster.bootstrap.servers": "east:9092",
    "topics": "orders.*",
}
THEIRS = BASE | {"connector.class": f"{JAVA}MirrorSourceConnector"}
DEFAULT, IDENTITY = (
    ReplicationPolicy("east", "west"),
    ReplicationPolicy("east", "west", renames=False),
)

# --------------------------------------------------------------------------- topics and their names


@pytest.mark.parametrize(
    ("policy", "topic", "remote", "source", "upstream"),
    [
        (DEFAULT, "t", "east.t", None, None),
        (DEFAULT, "north.t", "east.north.t", "north", "t"),
        (DEFAULT, "t.", "east.t.", None, None),
        (DEFAULT, ".t", "east..t", "", "t"),
        (ReplicationPolicy("east", "west", "__"), "a__t", "east__a__t", "a", "t"),
        (IDENTITY, "north.t", "north.t", "east", "north.t"),
        (IDENTITY, "heartbeats", "east.heartbeats", None, None),
        (IDENTITY, "north.heartbeats", "east.north.heartbeats", "north", "heartbeats"),
    ],
)
def test_remote_topics_are_called_as_mirrormakers_policies_call_them(
    policy: ReplicationPolicy, topic: str, remote: str, source: str | None, upstream: str | None
) -> None:
    assert (policy.remote(topic), policy.source_of(topic), policy.upstream(topic)) == (
        remote,
        source,
        upstream,
    )


@pytest.mark.parametrize(
    ("topic", "taken"),
    [
        ("orders", True),
        ("orders-eu", True),
        ("old-orders", False),
        ("orders-internal", False),
        ("orders.replica", False),
        ("west.orders", False),
        ("north.west.orders", False),
        ("heartbeats", True),
        ("north.heartbeats", True),
        ("west.heartbeats", False),
        ("__consumer_offsets", False),
    ],
)
def test_the_topics_that_are_copied_are_those_that_mirrormaker_copies(
    topic: str, taken: bool
) -> None:
    wanted = BASE | {"topics": "orders.*, .*west\\.orders,__.*"}
    assert selection_of(wanted).includes(topic) is taken


def test_heartbeats_are_left_where_they_are_not_wanted() -> None:
    assert not selection_of(BASE | {"heartbeats.replication.enabled": "false"}).includes(
        "heartbeats"
    )


def test_nothing_is_copied_where_no_topic_is_named() -> None:
    assert pattern(" , ") is None
    assert not selection_of(
        BASE | {"topics": "", "heartbeats.replication.enabled": "false"}
    ).includes("orders")


class Cluster:
    """Topics with their partitions; what is created in it."""

    timeout = 1.0

    def __init__(self, id_: str, **topics: int):
        self.id, self.there, self.created = (
            id_,
            {k.replace("_", "."): v for k, v in topics.items()},
            dict[str, Any](),
        )

    def cluster_id(self) -> str:
        return self.id

    def topic_names(self) -> frozenset[str]:
        return frozenset(self.there)

    def existing(self, names: Sequence[str]) -> Complete[frozenset[str]]:
        return Complete(frozenset(names) & frozenset(self.there))

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        return {topic: self.there[topic] for topic in topics}


def looked(
    source: Any, target: Any, policy: ReplicationPolicy = DEFAULT
) -> remote_topics.RemoteTopics:
    return remote_topics.plan_remote_topics(
        source, target, Selection(policy, pattern("orders.*"), None, heartbeats=False)
    )


def test_remote_topics_are_created_or_grow_with_their_source() -> None:
    wanted = looked(
        Cluster("e", orders=3, orders2=2, orders3=1, other=9),
        Cluster("w", east_orders=1, east_orders3=5),
    )
    assert wanted.descriptions() == [
        "create the topic east.orders2 with 2 partitions, as for orders2 on the source cluster",
        "increase east.orders to 3 partitions, as for orders on the source cluster",
    ]
    places = [
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
        ("orders2", 0),
        ("orders2", 1),
        ("orders3", 0),
    ]
    assert wanted.topic_partitions == places


def test_a_topic_is_not_copied_into_itself() -> None:
    assert looked(Cluster("e", orders=1), Cluster("w"), IDENTITY).missing == {"orders": "orders"}
    with pytest.raises(Refused, match="orders would be copied into itself"):
        looked(Cluster("e", orders=1), Cluster("e", orders=1), IDENTITY)


# -------------------------------------------------------------------------------- tasks and offsets


def test_partitions_are_dealt_in_turn_and_read_back() -> None:
    places = [
        TopicPartition(*each) for each in (("a-b", 0), ("a-b", 1), ("c", 0), ("c", 1), ("c", 2))
    ]
    assert share(places, 2) == [[("a-b", 0), ("c", 0), ("c", 2)], [("a-b", 1), ("c", 1)]]
    assert len(share(places, 9)) == 5
    assert encode(places) == "a-b-0,a-b-1,c-0,c-1,c-2"
    assert decode(encode(places)) == places


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(st.integers(0, 4), max_size=4),
    st.integers(1, 6),
)
def test_partitions_that_appear_are_shared_out_and_all_others_stay_where_they_are(
    before: list[int], after: list[int], most: int
) -> None:
    def places(counts: list[int]) -> list[TopicPartition]:
        return [
            TopicPartition(f"t{topic}", n)
            for topic, count in enumerate(counts)
            for n in range(count)
        ]

    running, now = share(places(before), most), places(after)
    shares = share_again(running, now, most)
    assert sorted(place for each in shares for place in each) == now
    assert len(shares) == min(most, len(now))
    if len(shares) >= len(running):
        for old, new in zip(running, shares, strict=False):
            assert [place for place in old if place in now] == new[: len(set(old) & set(now))]
    assert now != places(before) or shares == running


def test_the_tasks_of_a_copy_change_with_the_topics_of_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connector, source, prepared = TopicCopy(), Cluster("e", orders=2), list[Any]()
    target: Any = Cluster("w", east_orders=2)
    connector.context = ConnectorContext(target)
    monkeypatch.setattr(source_clients, "source_of", lambda *_: source)
    monkeypatch.setattr(
        remote_topics,
        "prepare",
        lambda source, target, wanted, configs: prepared.append(wanted.topics),
    )
    connector.start(BASE)
    running = connector.task_configs(2)
    assert connector.changed_tasks(BASE, running, 2) is None
    source.there |= {"orders2": 1}
    first = connector.changed_tasks(BASE, running, 2)
    assert first is not None
    assert [(t["task.assigned.partitions"], t.get("task.added.partitions")) for t in first] == [
        ("orders-0,orders2-0", "orders2-0"),
        ("orders-1", None),
    ]
    source.there |= {"orders": 3}
    second = connector.changed_tasks(BASE, first, 2)
    assert second is not None
    assert [(t["task.assigned.partitions"], t.get("task.added.partitions")) for t in second] == [
        ("orders-0,orders2-0", "orders2-0"),
        ("orders-1,orders-2", "orders-2"),
    ]
    assert prepared == [{"orders": 2}, {"orders": 2, "orders2": 1}, {"orders": 3, "orders2": 1}]


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({}, 600.0),
        ({"refresh.topics.interval.seconds": "5"}, 5.0),
        ({"refresh.topics.enabled": "False"}, None),
    ],
)
def test_a_copy_looks_for_topics_as_often_as_mirrormaker(
    more: dict[str, str], seconds: float | None
) -> None:
    assert TopicCopy().refresh_seconds(BASE | more) == seconds


def test_task_configs_are_those_that_a_java_task_starts_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connector = TopicCopy()
    target: Any = Cluster("w", east_orders=2)
    connector.context = ConnectorContext(target)
    monkeypatch.setattr(source_clients, "source_of", lambda *_: Cluster("e", orders=2))
    monkeypatch.setattr(remote_topics, "prepare", lambda *_: None)
    connector.start(BASE | {"name": "c"})
    first, second = connector.task_configs(7)
    assert first == BASE | {"name": "c", "task.assigned.partitions": "orders-0", "task.index": "0"}
    assert (second["task.assigned.partitions"], second["task.index"]) == ("orders-1", "1")
    assert task_class(path_of("MirrorSourceConnector")) == f"{JAVA}MirrorSourceTask"


def test_a_source_without_a_topic_to_copy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    connector = TopicCopy()
    target: Any = Cluster("w")
    connector.context = ConnectorContext(target)
    monkeypatch.setattr(source_clients, "source_of", lambda *_: Cluster("e", other=2))
    with pytest.raises(
        BadInput, match=r"No topic to copy on the source cluster east: topics is orders\.\*"
    ):
        connector.outlook(BASE)


# -------------------------------------------------------------------------------- the configuration


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"source.cluster.alias": ""}, 'Missing required configuration "source.cluster.alias"'),
        (
            {"source.cluster.bootstrap.servers": ""},
            'Missing required configuration "source.cluster.bootstrap.servers"',
        ),
        ({"topics": "orders("}, "Invalid or unsupported regular expression"),
        (
            {"replication.policy.class": "com.mine.Policy"},
            "Unsupported replication policy com.mine.Policy",
        ),
        ({"topic.filter.class": "com.mine.Filter"}, "only DefaultTopicFilter is"),
        ({"forwarding.admin.class": "com.mine.Admin"}, "only ForwardingAdmin is"),
        ({"enabled": "false"}, "the connector is disabled"),
        ({"records.per.transaction": "0"}, "must be an integer of at least 1"),
        ({"consumer.poll.timeout.ms": "soon"}, "must be an integer of at least 0"),
        ({"value.converter": "JsonConverter"}, "value.converter must be ByteArrayConverter"),
        (
            {"consumer.auto.offset.reset": "by_duration:PT1H"},
            "auto.offset.reset=by_duration:pt1h is not supported",
        ),
        (
            {"source.consumer.isolation.level": "serializable"},
            "Invalid isolation level serializable",
        ),
        ({"source.cluster.ssl.truststore.location": "/t.jks"}, "configure it as PEM"),
        ({"transaction.boundary": "connector"}, "connector"),
        ({"copy.batches": "some"}, "Invalid value some for configuration copy.batches"),
        (
            {"copy.batches": "unopened", "exactly.once.source.support": "disabled"},
            "copy.batches=unopened needs exactly-once",
        ),
        (
            {"exactly.once.support": "required", "consumer.isolation.level": "read_uncommitted"},
            "records of aborted transactions would be copied",
        ),
    ],
)
def test_what_cannot_be_run_is_one_line(more: dict[str, str], says: str) -> None:
    with pytest.raises(BadInput) as caught:
        validated("c", BASE | {"name": "c"} | more, "g", "offs")
    assert says in str(caught.value)


def test_topics_make_no_sink_of_a_connector_that_is_called_a_source() -> None:
    assert Subject("c", THEIRS).kind == SOURCE
    assert Subject("c", THEIRS | {"connector.class": "S3Writer"}).kind == SINK


def test_exactly_once_is_promised_unless_aborted_records_are_copied_too() -> None:
    connector = TopicCopy()
    assert connector.exactly_once_support(BASE) is ExactlyOnceSupport.SUPPORTED
    dirty = BASE | {"source.consumer.isolation.level": "read_uncommitted"}
    assert connector.exactly_once_support(dirty) is ExactlyOnceSupport.UNSUPPORTED
    assert validated("c", BASE | {"name": "c", "exactly.once.support": "required"}, "g", "offs")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (BASE, []),
        (
            BASE | {"sync.topic.acls.enabled": "true"},
            ["the sync of topic ACLs (sync.topic.acls.enabled)"],
        ),
        (
            THEIRS,
            [
                "offset syncs (emit.offset-syncs.enabled), the sync of topic configurations",
                "isolation.level is not set",
                "key.converter, value.converter, header.converter are not set",
            ],
        ),
        (
            THEIRS
            | dict.fromkeys(("emit.offset-syncs.enabled", "sync.topic.configs.enabled"), "false")
            | dict.fromkeys(("sync.topic.acls.enabled", "refresh.topics.enabled"), "false")
            | {"consumer.isolation.level": "read_committed"}
            | dict.fromkeys(
                ("key.converter", "value.converter", "header.converter"), "ByteArrayConverter"
            ),
            [],
        ),
        (
            BASE | {"consumer.isolation.level": "read_uncommitted"},
            ["records of aborted and open transactions"],
        ),
        (
            BASE | {"source.consumer.max.poll.records": "5"},
            ["source.consumer.max.poll.records is ignored"],
        ),
    ],
)
def test_what_is_done_otherwise_than_by_a_worker_is_told(
    config: dict[str, str], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = TopicCopy()
    target: Any = Cluster("w")
    connector.context = ConnectorContext(target)
    monkeypatch.setattr(source_clients, "source_of", lambda *_: Cluster("e", orders=2))
    outlook = connector.outlook(config)
    assert outlook.steps == [
        "create the topic east.orders with 2 partitions, as for orders on the source cluster"
    ]
    assert outlook.tasks == len(range(2)[: int(config.get("tasks.max", "1"))])
    assert len(outlook.notes) == len(told)
    assert all(part in note for part, note in zip(told, outlook.notes, strict=True))


def test_source_clients_have_mirrormakers_prefixes_in_their_order() -> None:
    config = BASE | {
        "source.cluster.security.protocol": "SASL_SSL",
        "source.cluster.sasl.jaas.config": 'x.PlainLoginModule required username="u" password="p";',
        # serves no connection, and is left out by MirrorMaker
        "source.cluster.fetch.min.bytes": "7",
        "consumer.client.id": "a",
        "source.consumer.client.id": "b",
        "consumer.fetch.max.wait.ms": "9",
        "consumer.poll.timeout.ms": "500",
        "admin.client.id": "c",
        "source.consumer.auto.offset.reset": "latest",
    }
    connecting = {
        "bootstrap.servers": "east:9092",
        "security.protocol": "SASL_SSL",
        "sasl.username": "u",
        "sasl.password": "p",
    }
    assert source_clients.client(config) == connecting | {"client.id": "c"}
    consumer = source_clients.client(config, source_clients.CONSUMER)
    assert consumer == connecting | {
        "client.id": "b",
        "fetch.wait.max.ms": "9",
        "auto.offset.reset": "latest",
    }
    assert (source_clients.reset(config), source_clients.unknown(config)) == ("latest", [])


# --------------------------------------------------------------------------------------- the supply


@dataclass(frozen=True)
class Message:
    topic: str
    partition: int
    offset: int


@dataclass
class Source:
    """Partitions of one topic with so many records each, read in batches of ``most``; ``latest``
    begins at the end.
    """

    ends: list[int]
    most: int = 3
    latest: bool = False
    opened: bool = False
    lag: int | None = None
    begun: int = 0
    at: dict[TopicPartition, int] = field(default_factory=dict)
    lost: list[LostRange] = field(default_factory=list)

    def begin(self, begin: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
        self.opened, self.begun = True, self.begun + 1
        ends = {place: self.ends[place.partition] for place in begin}
        self.at = {p: at if at is not None else ends[p] * self.latest for p, at in begin.items()}
        return {p: ends[p] for p, at in begin.items() if at is None and self.latest}

    @property
    def has_more(self) -> bool:
        return any(at < self.ends[p] for (_, p), at in self.at.items())

    def read(self, most: int) -> list[TopicBatch]:
        for place, at in self.at.items():
            topic, p = place
            found = [
                Message(topic, p, n)
                for n in range(at, min(at + min(self.most, most), self.ends[p]))
            ]
            if found:
                self.at[place] = found[-1].offset + 1
                return [TopicBatch(topic, found, {p: found[-1].offset})]
        return []

    def close(self) -> None:
        self.opened = False


class Broker(Snapshots):
    """Topic and offsets of one id; the commits with the numbers ``doubts`` fail, and have happened
    where they are True.
    """

    id, timeout_ms, overdue, bumps_epoch = "g-c-0", 60_000, False, False

    def __init__(self, doubts: Mapping[int, bool] | None = None):
        super().__init__()
        self.there: list[Message] = []
        self.offsets: dict[bytes, bytes | None] = {}
        self.topics: set[str] = set()
        self.sizes: list[int] = []
        self._doubts, self._commits = doubts or {}, 0

    def initialise(self, patience: float) -> None: ...
    def open_older_transaction(self, topics: Any) -> None: ...
    def refresh(self, patience: float) -> None:
        self.looked()

    def discard(self) -> None: ...
    def abort(self, patience: float) -> None: ...
    def unusable_because(self) -> str | None:
        return None

    def begin(self) -> None:
        self._open: list[Message] = []

    def send(self, step: Any) -> None:
        self._open += [m for copies in step.copies for m in copies.messages]
        self.topics |= {copies.topic for copies in step.copies}

    def send_offsets(self, topic: str, offsets: Any) -> None:
        self._new = dict(offsets)

    def commit(self, patience: float) -> None:
        self._commits += 1
        happens = self._doubts.get(self._commits)
        if happens is not False:
            self.there += self._open
            self.offsets |= self._new
            self.wrote(*self._new)
            self.sizes.append(len(self._open))
        if happens is not None:
            raise UnknownOutcome("no answer")

    def value(self, key: bytes) -> bytes | None:
        return self.offsets.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(self.offsets)


def copying(
    source: Source,
    how: DeliverySettings | None = None,
    pace: TransactionLimits | None = None,
    topic: str = "offs",
    stats: TaskStats | None = None,
) -> CopiedTopics:
    places = [TopicPartition("orders", n) for n in range(len(source.ends))]
    pace, how = pace or TransactionLimits(7, 60.0), how or delivery_settings({})
    reader = cast("TopicReader", source)
    return CopiedTopics(reader, "c", places, DEFAULT, how, pace, topic, stats or TaskStats())


def run(supply: CopiedTopics, broker: Any, source: Source, *, strict: bool = False) -> TaskResult:
    counts = TaskStats()
    done = sum(source.ends)

    def over() -> bool:
        return len(broker.there) >= done and not source.has_more

    ledger = SourceOffsetsLedger("offs", broker)
    kernel = AttemptLoop(
        lambda: broker, ledger, lambda: None, over, 60.0, strict, counts, lambda _: None
    )
    return kernel.run(supply)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    st.dictionaries(st.integers(1, 6), st.booleans()),
    st.booleans(),
    st.integers(1, 9),
)
def test_each_record_is_there_once_and_in_order_whatever_is_in_doubt(
    ends: list[int], doubts: dict[int, bool], strict: bool, size: int
) -> None:
    source, broker = Source(ends), Broker(doubts)
    assert (
        run(
            copying(source, pace=TransactionLimits(size, 60.0)), broker, source, strict=strict
        ).reason
        is EndReason.STOPPED
    )
    for partition, end in enumerate(ends):
        found = [m.offset for m in broker.there if m.partition == partition]
        assert found == list(range(end))
        key = f'["c",{{"cluster":"east","partition":{partition},"topic":"orders"}}]'.encode()
        assert broker.offsets.get(key) == (f'{{"offset":{end - 1}}}'.encode() if end else None)


def test_a_transaction_ends_with_enough_records_or_with_the_source() -> None:
    source, broker = Source([20]), Broker()
    run(copying(source), broker, source)
    assert broker.sizes == [7, 7, 6]
    assert broker.topics == {"east.orders"}


def test_a_transaction_of_the_boundary_interval_takes_what_comes_in_it_and_ends_with_the_task() -> (
    None
):
    source, broker = Source([20]), Broker()
    supply = copying(source, DeliverySettings(Boundary.INTERVAL, 3600.0, 60_000))
    ledger = SourceOffsetsLedger("offs", broker)
    producer: Any = broker
    kernel = AttemptLoop(
        lambda: producer, ledger, stopped=lambda: not source.has_more and source.opened
    )
    assert kernel.run(supply).reason is EndReason.STOPPED
    assert broker.sizes == [20]


@pytest.mark.parametrize(
    ("promise", "sizes"), [(3600.0, [7, 7, 6]), (0.001, [3, 3, 3, 3, 3, 3, 2])]
)
def test_a_transaction_with_a_promised_latency_ends_in_time_or_with_enough_records(
    promise: float, sizes: list[int]
) -> None:
    source, broker = Source([20]), Broker()
    supply = copying(source, DeliverySettings(Boundary.POLL, 3600.0, 60_000, latency=promise))
    ledger = SourceOffsetsLedger("offs", broker)
    producer: Any = broker
    kernel = AttemptLoop(
        lambda: producer, ledger, stopped=lambda: not source.has_more and source.opened
    )
    assert kernel.run(supply).reason is EndReason.STOPPED
    assert broker.sizes == sizes


def test_reading_goes_on_over_a_new_instance_where_all_is_committed() -> None:
    source, broker = Source([20]), Broker()
    run(copying(source), broker, source, strict=True)
    assert (source.begun, len(broker.there)) == (1, 20)


def test_a_commit_that_did_not_happen_begins_again_and_one_that_did_goes_on() -> None:
    for happened, begun in ((False, 2), (True, 1)):
        source, broker = Source([20]), Broker({2: happened})
        run(copying(source), broker, source)
        assert (source.begun, [m.offset for m in broker.there]) == (begun, list(range(20)))


def test_where_latest_begins_is_committed_before_anything_is_read() -> None:
    source, broker = Source([5, 0], latest=True), Broker()
    supply = copying(source)
    supply.resume(broker)
    step = supply.next()
    assert isinstance(step, TransactionBatch)
    assert (step.size, sorted(step.offsets.values(), key=str)) == (
        0,
        [b'{"offset":-1}', b'{"offset":4}'],
    )
    supply.committed(step)
    source.ends = [7, 2]
    later = Source([9, 3], latest=True)
    again = copying(later)
    broker.offsets = dict(step.offsets)
    again.resume(broker)
    assert later.at == {("orders", 0): 5, ("orders", 1): 0}


def test_a_stored_spelling_of_a_source_partition_is_kept() -> None:
    source, broker = Source([4]), Broker()
    spelled = b'["c", {"topic":"orders","partition":0,"cluster":"east"}]'
    broker.offsets[spelled] = b'{"offset":1}'
    supply = copying(source)
    supply.resume(broker)
    step = supply.next()
    assert isinstance(step, TransactionBatch)
    assert (step.size, dict(step.offsets)) == (2, {spelled: b'{"offset":3}'})


def test_the_offsets_topic_is_no_target() -> None:
    with pytest.raises(
        ConnectctlError, match="Source tasks may not produce to their own offsets topics"
    ):
        copying(Source([1]), topic="east.orders")


@pytest.mark.parametrize(
    ("config", "consumer", "once", "whole"),
    [
        ({}, {}, True, True),
        ({"copy.batches": "AUTO"}, {}, True, True),
        ({}, {}, False, False),
        ({"copy.batches": "opened"}, {}, True, False),
        ({}, {"ssl.keystore.location": "/k.p12"}, True, False),
        ({}, {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}, True, False),
        (
            {"copy.batches": "unopened"},
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"},
            True,
            True,
        ),
    ],
)
def test_batches_stay_unopened_where_both_ends_can(
    config: dict[str, str], consumer: dict[str, str], once: bool, whole: bool
) -> None:
    assert stays_unopened(config, consumer, exactly_once=once) is whole


def test_what_the_source_had_lost_is_counted_and_told_once_however_often_it_begins() -> None:
    lost = LostRange("east", TopicPartition("orders", 0), 2, 4)
    source, broker, stats = Source([9], lost=[lost]), Broker(), TaskStats()
    supply = copying(source, stats=stats)
    supply.resume(broker)
    source.opened = False
    supply.resume(broker)
    assert stats.meter.lost == 3
    (line,) = stats.lines
    assert line.startswith("COPY001 Offsets 2 to 4 of orders-0 on east were not copied")


def test_a_task_is_made_from_its_configuration() -> None:
    config = BASE | {"task.assigned.partitions": "orders-0,orders-1", "task.index": "0"}
    supply = TopicCopy.supply(SourceContext("c", config, delivery_settings({}), "offs", 1.0))
    assert supply is not None
    # Nobody has looked yet: there may be more.
    assert (supply.lag, supply.has_more) == (None, True)
    assert "queue.buffering.max.kbytes" in supply.producer_properties
    supply.close()

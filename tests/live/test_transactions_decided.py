"""What a coordinator had decided, on a broker that really loses the marker of a commit
(KAFKA-20734).

One of its two log directories goes away while a transaction is open in it. A commit then finds the
partition without a leader, and 4.3.1 drops its marker and calls the transaction complete.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from connectctl.ops.clients.kafka_protocol.transaction_log import TransactionLog
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.rights import Name, needs_of
from connectctl.ops.kafka.acls import CLUSTER_NAME, Operation, Right
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import TOPIC, LogEntry, parse
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.sandbox.cluster import SandboxSpec, down, up
from connectctl.ops.sandbox.layout import BROKER, SandboxLayout
from fakes.acls import allow
from fakes.sandboxes import kill_broker, start_broker
from live import principals
from live.grants import Grants
from live.rawproducer import NEW_END, NEW_PRODUCE, RawProducers
from live.real import Ran, connectctl, create_topic, eventually
from live.rightsworld import AUTHORIZER, PRINCIPAL, login

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def broker() -> Iterator[Sandbox]:
    """A broker with two log directories, that notices soon when one is gone."""
    name = f"decided-{secrets.token_hex(3)}"
    home = SandboxLayout.of(name).home(BROKER)
    properties = {
        "log.dirs": f"{home / 'data'},{home / 'other'}",
        "metadata.log.dir": str(home / "data"),
        "replica.high.watermark.checkpoint.interval.ms": "300",
        # Lets a test write behind the coordinator's back, as clients and brokers with bugs have
        # done.
        "transaction.partition.verification.enable": "false",
        "broker.session.timeout.ms": "1500",
        "broker.heartbeat.interval.ms": "300",
    }
    secured = {"SECURED": "SASL_PLAINTEXT"}
    yield up(
        SandboxSpec(
            name=name,
            workers=0,
            extra_listeners=secured,
            extra_broker_properties=properties | AUTHORIZER,
        )
    )
    down(name)


@pytest.fixture
def raw(broker: Sandbox) -> Iterator[RawProducers]:
    producers = RawProducers(broker.bootstrap_servers)
    yield producers
    producers.close()


@pytest.fixture
def topic(broker: Sandbox) -> str:
    return new_topic(broker)


def new_topic(broker: Sandbox) -> str:
    """A topic that the broker itself knows of, which takes a moment more than that the controller
    does.
    """
    name = create_topic(broker.bootstrap_servers, f"orders-{secrets.token_hex(3)}", 1, "delete")
    eventually(lambda: kafka(broker).extents([name]))
    return name


def run(broker: Sandbox, *args: str) -> Ran:
    return connectctl(
        "--bootstrap-servers", broker.bootstrap_servers, "transactions", *args, "-o", "json"
    )


def seen(broker: Sandbox, what: str, *args: str) -> Any:
    """A list of what a command prints; None while the broker that comes back lets it print
    nothing.
    """
    ran = run(broker, *args)
    return ran.json[what] if ran.out else None


def kafka(broker: Sandbox) -> Kafka:
    return Kafka({"bootstrap.servers": broker.bootstrap_servers}, timeout=120)


def log(broker: Sandbox) -> TransactionLog:
    return TransactionLog({"bootstrap.servers": broker.bootstrap_servers}, timeout=120)


def ended(raw: RawProducers, id_: str) -> Transaction:
    """The id when its coordinator has nothing more to do."""

    def look() -> Transaction | None:
        found = raw.calls.describe([id_])[id_]
        return found if isinstance(found, Transaction) and not found.is_open else None

    return eventually(look)  # type: ignore[no-any-return]


def visible(broker: Sandbox, topic: str) -> list[bytes | None]:
    """What a reader with read_committed gets, and whether it gets to the end."""
    image = kafka(broker).image([topic], patience=5, superseded=True)[topic]
    assert not image.held_back
    return [record.value for record in (*image.latest, *image.superseded)]


def test_the_newest_record_of_each_id_says_what_its_coordinator_says(
    broker: Sandbox, raw: RawProducers, topic: str
) -> None:
    old, new = [f"old-{n}-{topic}" for n in range(3)], [f"new-{n}-{topic}" for n in range(3)]
    raw.init([*old, *new], timeout_ms=90_000)
    raw.begin(old, topic, [0])
    for id_ in new:
        raw.write_behind(id_, topic, version=NEW_PRODUCE)
    raw.end(old[1:2], commit=True)
    raw.end(old[2:], commit=False)
    raw.end(new[1:2], commit=True, version=NEW_END)
    raw.end(new[2:], commit=False, version=NEW_END)
    for id_ in (*old[1:], *new[1:]):
        ended(raw, id_)
    known = raw.calls.describe([*old, *new])
    newest = {e.id: e for e in map(read, log(broker).entries(None, lambda key, value: True)) if e}
    for id_ in (*old, *new):
        said, wrote = known[id_], newest[id_]
        assert isinstance(said, Transaction)
        assert (wrote.state, wrote.producer_id, wrote.epoch) == (
            said.state,
            said.producer_id,
            said.epoch,
        )
        assert (wrote.timeout_ms, wrote.topic_partitions) == (
            said.timeout_ms,
            frozenset(said.partitions),
        )
        assert wrote.started_ms == (-1 if said.started_ms is None else said.started_ms)
        assert wrote.client_version == (2 if id_ in new else 0)
    states = ["Ongoing", "CompleteCommit", "CompleteAbort"]
    assert [newest[id_].state for id_ in (*old, *new)] == states * 2
    assert newest[new[0]].topic_partitions == {TopicPartition(topic, 0)}
    raw.end([old[0]], commit=False)
    raw.end([new[0]], commit=False, version=NEW_END)


def read(record: Any) -> LogEntry | None:
    entry = parse(record.key, record.value)
    assert entry is None or isinstance(entry, LogEntry)
    return entry


def test_a_record_that_came_late_is_no_commit(
    broker: Sandbox, raw: RawProducers, topic: str
) -> None:
    id_ = f"late-{topic}"
    raw.init([id_])
    raw.begin([id_], topic, [0])
    raw.write_behind(id_, topic)
    time.sleep(0.1)
    raw.commit([id_])
    ended(raw, id_)
    raw.write_behind(id_, topic, sequence=1)
    place = ("--topic", topic, "--partition", "0")
    found = run(broker, "hanging", "--topic", topic)
    (hanging,) = found.json["hanging"]
    assert (hanging["startOffset"], hanging["decided"]) == (2, "abort"), hanging
    assert (
        hanging["decidedWhy"]
        == "its records came when no transaction had the partition, after the marker at offset 1"
    )
    refused = run(broker, "commit", *place, "--yes")
    assert refused.code == 4, refused.out + refused.err
    assert "it is to be aborted" in refused.err
    aborted = run(broker, "abort", *place, "--yes")
    assert (aborted.code, "warning" in aborted.err) == (0, False), aborted.err
    assert visible(broker, topic) == [b"ghost"]


def test_a_marker_is_found_by_its_time_whatever_times_the_records_have(
    broker: Sandbox, raw: RawProducers, topic: str
) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"times-{topic}"}
    )
    producer.init_transactions(120)
    for at in (1_000, 2_000):
        producer.begin_transaction()
        producer.produce(topic, b"old", timestamp=at)
        producer.commit_transaction(30)
    hour_ago = int(time.time() - 3600) * 1000
    place = TopicPartition(topic, 0)
    assert raw.calls.offsets([place], hour_ago) == {place: 1}
    assert raw.calls.offsets([place], hour_ago * 2) == {place: None}
    seen = PartitionProducer(
        raw.calls.listed(prefixes=[f"times-{topic}"]).seen[0].producer_id, 0, 0, 2_000, 2
    )
    preceding = log(broker).preceding(place, seen, hour_ago)
    assert (preceding.epoch, preceding.marker and preceding.marker.offset) == (0, 1)
    assert preceding.since_ms == hour_ago


@pytest.mark.drawn
@pytest.mark.parametrize("new", [False, True], ids=["version 1", "version 2"])
def test_a_commit_whose_marker_was_lost_is_committed_with_exactly_the_rows_of_the_table(
    broker: Sandbox, raw: RawProducers, new: bool, tmp_path: Path
) -> None:
    home = broker.layout.home(BROKER)
    topic = in_other_directory(broker, home)
    raw.init([f"first-{topic}"])  # makes the broker create the transaction log
    id_ = coordinated_from(home / "data", f"lost-{topic}")
    raw.init([id_])
    if new:
        raw.write_behind(id_, topic, version=NEW_PRODUCE)
    else:
        raw.begin([id_], topic, [0])
        raw.write_behind(id_, topic)
    (home / "other").rename(home / "away")
    eventually(lambda: raw.calls.bounds([TopicPartition(topic, 0)])[TopicPartition(topic, 0)] == 5)
    raw.end([id_], commit=True, version=NEW_END if new else 4)
    assert ended(raw, id_).state == "CompleteCommit"
    kill_broker(broker)
    (home / "away").rename(home / "other")
    start_broker(broker)

    # A coordinator that has not loaded its log yet lists no id, and nobody would know whose the
    # transaction is.
    eventually(lambda: seen(broker, "transactions", "list", "--prefix", id_))
    (hanging,) = eventually(lambda: seen(broker, "hanging", "hanging", "--topic", topic))
    assert (hanging["decided"], hanging["formerTransactionalId"]) == ("commit", id_), hanging
    place = ("--topic", topic, "--partition", "0")
    refused = run(broker, "abort", *place, "--yes")
    assert refused.code == 4
    assert f"transactions commit --topic {topic} --partition 0 --start-offset 0" in refused.err
    planned = run(broker, "commit", *place, "--dry-run")
    assert [step["step"] for step in planned.json["steps"]] == ["CommitHanging"]
    done = committed_with_rows_of_the_table(
        broker, topic, tmp_path, (*place, "--start-offset", "0")
    )
    assert done.code == 0, done.out + done.err
    assert run(broker, "hanging", "--topic", topic).json["hanging"] == []
    assert visible(broker, topic) == [b"ghost"]
    assert run(broker, "commit", *place, "--yes").code == 4, "nothing hangs any more"


def committed_with_rows_of_the_table(
    broker: Sandbox, topic: str, directory: Path, words: tuple[str, ...]
) -> Ran:
    """Commit as a principal with the rows of the table, after it was refused without each of
    them.
    """
    names = {Name.TARGETS: topic, Name.LOG: TOPIC, Name.CLUSTER: CLUSTER_NAME}
    needs = [need for need in needs_of("transactions commit") if need.name in names]
    rights = [Right(need.operation, need.resource, names[need.name]) for need in needs]
    context = {"bootstrap_servers": broker.listeners["SECURED"], **login(directory)}
    (directory / "contexts.yaml").write_text(json.dumps({"contexts": {"exact": context}}))
    typed = (
        "--config",
        str(directory / "contexts.yaml"),
        "--context",
        "exact",
        "transactions",
        "commit",
        *words,
    )
    grants = Grants(broker)

    def as_principal(without: Right | None = None) -> Ran:
        given = [
            allow(PRINCIPAL, r.operation, r.resource, r.name, deny=r == without) for r in rights
        ]
        with grants.given(*given):
            return connectctl(*typed, "--yes", "-o", "json")

    try:
        for need, right in zip(needs, rights, strict=True):
            ran = as_principal(without=right)
            said = f"without {right}: exit {ran.code}\n{ran.out}{ran.err}"
            assert principals.is_refusal(ran, [need]), said
            assert str(right.name) in ran.out + ran.err, said
            assert (
                right.operation.word in ran.out + ran.err or need.operation is Operation.DESCRIBE
            ), said
        return as_principal()
    finally:
        grants.close()


def in_other_directory(broker: Sandbox, home: Path) -> str:
    """A new topic that lies in the directory that can go away."""
    for _ in range(20):
        topic = new_topic(broker)
        eventually(lambda topic=topic: any(home.glob(f"*/{topic}-0")))  # type: ignore[misc]
        if (home / "other" / f"{topic}-0").is_dir():
            return topic
    raise AssertionError("no topic is put into the other directory")


def coordinated_from(data: Path, prefix: str) -> str:
    """An id whose coordinator's log stays."""
    ids = (f"{prefix}-{number}" for number in range(100))
    return next(id_ for id_ in ids if (data / f"{TOPIC}-{coordinator_partition(id_, 4)}").is_dir())

"""What every Kafka edge keeps to, be it real or made for tests: the same tests on both."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.records import ConsumerRecord
from fakes.kafkawrites import FakeKafkaWrites

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import KafkaWrites
    from connectctl.ops.sandbox.cluster import Sandbox

    Open = Callable[[], KafkaWrites]
    LeaveOpen = Callable[[str, str, bytes, bytes], None]
    """The transactional id, the topic, and key and value of a record in partition 0."""

COMPACT = {"cleanup.policy": "compact"}


class KafkaContract:
    """``kafka`` opens the same cluster each time, ``leave_open`` leaves a record of an id in an
    open transaction. Topics get names of their own, for the cluster may be shared.
    """

    @pytest.fixture
    def topic(self, kafka: Open) -> str:
        """A new compacted topic with three partitions."""
        name = f"contract-{secrets.token_hex(4)}"
        kafka().create_topic(name, 3, 1, COMPACT)
        return name

    def latest(self, kafka: Open, topic: str) -> dict[tuple[int, bytes | None], bytes | None]:
        return {
            (r.partition, r.key): r.value for r in kafka().image([topic], patience=5)[topic].latest
        }

    def test_a_new_topic_is_there_at_once_with_what_was_asked_for(self, kafka: Open) -> None:
        name, edge = f"contract-{secrets.token_hex(4)}", kafka()
        assert name not in edge.topic_names()
        edge.create_topic(name, 4, 1, COMPACT)
        facts = edge.topics([name])[name]
        assert (facts.partitions, facts.config["cleanup.policy"]) == (4, "compact")
        assert dict(edge.image([name], patience=1)[name].end_offsets) == dict.fromkeys(range(4), 0)

    def test_a_topic_that_is_there_already_is_left_as_it_is(self, kafka: Open, topic: str) -> None:
        kafka().create_topic(topic, 7, 1, COMPACT)
        assert kafka().topics([topic])[topic].partitions == 3

    def test_what_is_written_is_read_byte_for_byte_where_it_was_put(
        self, kafka: Open, topic: str
    ) -> None:
        wanted = [
            (topic, 0, b"k", b"\xff\x00"),
            (topic, 2, b"k", b""),
            (topic, 1, "é".encode(), None),
        ]
        assert kafka().transact("contract", wanted) == 3
        assert self.latest(kafka, topic) == {(p, key): value for _, p, key, value in wanted}

    def test_the_newest_record_of_a_key_on_a_partition_counts(
        self, kafka: Open, topic: str
    ) -> None:
        kafka().transact("contract", [(topic, 0, b"k", b"1"), (topic, 0, b"l", b"1")])
        kafka().transact("contract", [(topic, 0, b"k", b"2"), (topic, 0, b"l", None)])
        assert self.latest(kafka, topic) == {(0, b"k"): b"2", (0, b"l"): None}

    def test_records_know_where_and_when_they_are(self, kafka: Open, topic: str) -> None:
        kafka().transact("contract", [(topic, 1, b"k", b"1")])
        (record,) = kafka().image([topic], patience=5)[topic].latest
        assert record == ConsumerRecord(b"k", b"1", 1, 0, record.timestamp)
        assert isinstance(record.timestamp, int)

    def test_offsets_are_each_partitions_own_and_the_end_of_a_transaction_takes_one(
        self, kafka: Open, topic: str
    ) -> None:
        for value in (b"1", b"2"):
            kafka().transact(
                "contract",
                [(topic, 0, b"k", value), (topic, 0, b"l", value), (topic, 1, b"k", value)],
            )
        image = kafka().image([topic], patience=5, superseded=True)[topic]
        found = sorted((r.partition, r.offset) for r in (*image.latest, *image.superseded))
        assert found == [(0, 0), (0, 1), (0, 3), (0, 4), (1, 0), (1, 2)]
        assert dict(image.end_offsets) == {0: 6, 1: 4, 2: 0}

    def test_an_open_transaction_holds_back_what_comes_after_it_until_its_id_is_used_again(
        self, kafka: Open, topic: str, leave_open: LeaveOpen
    ) -> None:
        kafka().transact("contract", [(topic, 0, b"a", b"1"), (topic, 1, b"a", b"1")])
        leave_open(topic, topic, b"b", b"1")
        kafka().transact("contract", [(topic, 0, b"c", b"1"), (topic, 1, b"c", b"1")])
        image = kafka().image([topic], patience=1)[topic]
        assert sorted((r.partition, r.key) for r in image.latest) == [
            (0, b"a"),
            (1, b"a"),
            (1, b"c"),
        ]
        assert [(tail.partition, tail.stable) for tail in image.held_back] == [(0, 2)]
        kafka().transact(topic, [(topic, 2, b"d", b"1")])
        image = kafka().image([topic], patience=60)[topic]
        assert sorted((r.partition, r.key) for r in image.latest) == [
            (0, b"a"),
            (0, b"c"),
            (1, b"a"),
            (1, b"c"),
            (2, b"d"),
        ]
        assert image.held_back == ()

    def test_a_transaction_spans_topics(self, kafka: Open, topic: str) -> None:
        other = f"{topic}-other"
        edge = kafka()
        edge.create_topic(other, 1, 1, COMPACT)
        edge.transact("contract", [(topic, 0, b"k", b"1"), (other, 0, b"k", b"2")])
        assert (self.latest(kafka, topic), self.latest(kafka, other)) == (
            {(0, b"k"): b"1"},
            {(0, b"k"): b"2"},
        )

    def test_a_transaction_of_nothing_changes_nothing(self, kafka: Open, topic: str) -> None:
        assert kafka().transact("contract", []) == 0
        assert self.latest(kafka, topic) == {}

    def test_a_transaction_that_cannot_be_written_whole_is_not_written_at_all(
        self, kafka: Open, topic: str
    ) -> None:
        with pytest.raises(ConnectctlError):
            kafka().transact("contract", [(topic, 0, b"k", b"1"), (topic, 99, b"k", b"1")])
        assert self.latest(kafka, topic) == {}
        kafka().transact("contract", [(topic, 0, b"k", b"2")])
        assert self.latest(kafka, topic) == {(0, b"k"): b"2"}

    def test_topics_that_do_not_exist_are_left_out(self, kafka: Open, topic: str) -> None:
        assert set(kafka().image([topic, "contract-nowhere"], patience=1)) == {topic}
        assert set(kafka().topics([topic, "contract-nowhere"])) == {topic}


class TestTheFake(KafkaContract):
    @pytest.fixture
    def kafka(self) -> Open:
        fake = FakeKafkaWrites()
        return lambda: fake

    @pytest.fixture
    def leave_open(self, kafka: Open) -> LeaveOpen:
        fake = kafka()
        assert isinstance(fake, FakeKafkaWrites)
        return fake.leave_open


@pytest.mark.live
class TestTheRealOne(KafkaContract):
    @pytest.fixture
    def kafka(self, cluster: Sandbox) -> Open:
        from connectctl.ops.clients.librdkafka.client import Kafka

        return lambda: Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)

    @pytest.fixture
    def leave_open(self, cluster: Sandbox) -> Iterator[LeaveOpen]:
        from confluent_kafka import Producer

        made: list[Producer] = []

        def leave(id_: str, topic: str, key: bytes, value: bytes) -> None:
            made.append(
                Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": id_})
            )
            made[-1].init_transactions(120)
            made[-1].begin_transaction()
            made[-1].produce(topic, value, key, partition=0)
            assert made[-1].flush(300) == 0

        yield leave
        made.clear()

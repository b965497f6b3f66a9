"""What every Kafka edge keeps to, be it real or made for tests: the same tests on both."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.records import ConsumerRecord
from fakes.kafkawrites import FakeKafkaWrites

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import KafkaWrites

    Open = Callable[[], KafkaWrites]

COMPACT = {"cleanup.policy": "compact"}


class KafkaContract:
    """``kafka`` opens the same cluster each time. Topics get names of their own, for the cluster may be shared."""

    @pytest.fixture
    def topic(self, kafka: Open) -> str:
        """A new compacted topic with three partitions."""
        name = f"contract-{secrets.token_hex(4)}"
        kafka().create_topic(name, 3, 1, COMPACT)
        return name

    def latest(self, kafka: Open, topic: str) -> dict[tuple[int, bytes | None], bytes | None]:
        return {(r.partition, r.key): r.value for r in kafka().image([topic], patience=5)[topic].latest}

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

    def test_what_is_written_is_read_byte_for_byte_where_it_was_put(self, kafka: Open, topic: str) -> None:
        wanted = [(topic, 0, b"k", b"\xff\x00"), (topic, 2, b"k", b""), (topic, 1, "é".encode(), None)]
        assert kafka().transact("contract", wanted) == 3
        assert self.latest(kafka, topic) == {(p, key): value for _, p, key, value in wanted}

    def test_the_newest_record_of_a_key_on_a_partition_counts(self, kafka: Open, topic: str) -> None:
        kafka().transact("contract", [(topic, 0, b"k", b"1"), (topic, 0, b"l", b"1")])
        kafka().transact("contract", [(topic, 0, b"k", b"2"), (topic, 0, b"l", None)])
        assert self.latest(kafka, topic) == {(0, b"k"): b"2", (0, b"l"): None}

    def test_records_know_where_and_when_they_are(self, kafka: Open, topic: str) -> None:
        kafka().transact("contract", [(topic, 1, b"k", b"1")])
        (record,) = kafka().image([topic], patience=5)[topic].latest
        assert record == ConsumerRecord(b"k", b"1", 1, 0, record.timestamp)
        assert isinstance(record.timestamp, int)

    def test_a_transaction_spans_topics(self, kafka: Open, topic: str) -> None:
        other = f"{topic}-other"
        edge = kafka()
        edge.create_topic(other, 1, 1, COMPACT)
        edge.transact("contract", [(topic, 0, b"k", b"1"), (other, 0, b"k", b"2")])
        assert (self.latest(kafka, topic), self.latest(kafka, other)) == ({(0, b"k"): b"1"}, {(0, b"k"): b"2"})

    def test_a_transaction_of_nothing_changes_nothing(self, kafka: Open, topic: str) -> None:
        assert kafka().transact("contract", []) == 0
        assert self.latest(kafka, topic) == {}

    def test_a_transaction_that_cannot_be_written_whole_is_not_written_at_all(self, kafka: Open, topic: str) -> None:
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


@pytest.mark.live
class TestTheRealOne(KafkaContract):
    @pytest.fixture
    def kafka(self, cluster: Any) -> Open:
        from connectctl.ops.clients.librdkafka.client import Kafka

        return lambda: Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=20)

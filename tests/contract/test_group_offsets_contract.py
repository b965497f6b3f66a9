"""What groups keep to whose committed offsets are changed, be they real or made for tests: the same
tests on both.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.groupoffsets import FakeGroupOffsets

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import GroupOffsetWrites
    from connectctl.ops.sandbox.cluster import Sandbox


@dataclass(frozen=True)
class Stage:
    """Groups, a topic with two partitions, how to become a member, and how to leave a group's
    offset in a transaction.
    """

    groups: GroupOffsetWrites
    topic: str
    join: Callable[[str], None]
    leave_pending: Callable[[str, TopicPartition, int], None]

    def place(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)


class GroupOffsetsContract:
    """Groups and topics get names of their own, for the cluster may be shared."""

    @pytest.fixture
    def group(self) -> str:
        return f"contract-offsets-{secrets.token_hex(4)}"

    def test_a_group_that_nobody_knows_is_dead_and_has_committed_nothing(
        self, stage: Stage, group: str
    ) -> None:
        assert stage.groups.group(group).state == "Dead"
        assert stage.groups.committed(group) == stage.groups.stable(group) == {}
        assert stage.groups.committed_of([group]) == {group: {}}
        stage.groups.delete(group, [stage.place(0)])

    def test_what_is_committed_without_members_makes_a_group_and_leaves_other_partitions(
        self, stage: Stage, group: str
    ) -> None:
        stage.groups.commit(group, {stage.place(0): 3, stage.place(1): 4})
        stage.groups.commit(group, {stage.place(0): 5})
        assert stage.groups.group(group).state == "Empty"
        assert stage.groups.committed(group) == {stage.place(0): 5, stage.place(1): 4}
        stage.groups.delete(group, [stage.place(0)])
        assert stage.groups.committed(group) == {stage.place(1): 4}

    def test_a_group_with_a_member_is_not_changed(self, stage: Stage, group: str) -> None:
        stage.groups.commit(group, {stage.place(0): 3})
        stage.join(group)
        assert stage.groups.group(group).state == "Stable"
        with pytest.raises(Refused) as refused:
            stage.groups.commit(group, {stage.place(0): 5})
        with pytest.raises(Refused) as kept:
            stage.groups.delete(group, [stage.place(0)])
        assert (refused.value.code, kept.value.code) == ("in-use", "in-use")
        assert stage.groups.committed(group) == {stage.place(0): 3}

    def test_an_offset_of_a_topic_that_is_not_there_is_refused_and_the_others_are_committed(
        self, stage: Stage, group: str
    ) -> None:
        with pytest.raises(BadInput) as refused:
            stage.groups.commit(
                group, {stage.place(0): 3, TopicPartition(f"{stage.topic}-gone", 0): 3}
            )
        assert refused.value.code == "no-topic"
        assert stage.groups.committed(group) == {stage.place(0): 3}

    def test_an_offset_in_an_open_transaction_is_pending_and_not_committed(
        self, stage: Stage, group: str
    ) -> None:
        stage.groups.commit(group, {stage.place(0): 3})
        stage.leave_pending(group, stage.place(0), 9)
        with pytest.raises(Refused) as refused:
            stage.groups.stable(group)
        assert refused.value.code == "pending"
        assert stage.groups.committed(group) == {stage.place(0): 3}


class TestFakeGroupOffsets(GroupOffsetsContract):
    """The groups that other tests believe in."""

    @pytest.fixture
    def stage(self) -> Stage:
        fake = FakeGroupOffsets(gone={"orders-gone"})

        def join(group: str) -> None:
            fake.members[group] = ["somebody"]

        return Stage(
            fake, "orders", join, lambda group, place, offset: fake.pending_groups.add(group)
        )


@pytest.mark.live
class TestRealGroupOffsets(GroupOffsetsContract):
    """The same on a real broker, with members of the old protocol and of KIP-848."""

    @pytest.fixture(params=["classic", "consumer"])
    def stage(self, cluster: Sandbox, request: pytest.FixtureRequest) -> Iterator[Stage]:
        from confluent_kafka import Producer
        from confluent_kafka import TopicPartition as Position
        from connectctl.ops.clients.librdkafka.client import Kafka
        from connectctl.ops.clients.librdkafka.consumer_groups import GroupOffsetClient
        from live.consumers import Consumers

        made: list[Producer] = []
        with Consumers(cluster.bootstrap_servers, request.param) as consumers:
            topic = consumers.new_topic("contract-offsets")

            def leave_pending(group: str, place: TopicPartition, offset: int) -> None:
                metadata = consumers.open(group, group_protocol="classic").consumer_group_metadata()
                made.append(
                    Producer(
                        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": group}
                    )
                )
                made[-1].init_transactions(120)
                made[-1].begin_transaction()
                made[-1].send_offsets_to_transaction([Position(*place, offset)], metadata, 60)

            def join(group: str) -> None:
                consumers.join(group, topic, "somebody")

            groups = GroupOffsetClient(
                Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
            )
            yield Stage(groups, topic, join, leave_pending)
            for producer in made:
                producer.abort_transaction(60)

"""What the brokers' edge keeps to, be it real or made for tests: the same tests on both."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.kafka.brokers import TRANSACTION_VERSION, BrokerVersion
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.brokers import FakeBrokers

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import BrokerReads
    from connectctl.ops.sandbox.cluster import Sandbox


@dataclass(frozen=True)
class Stage:
    """Brokers, a topic on them, how to commit an offset for a group, and how to become a member of
    one.
    """

    reads: BrokerReads
    topic: str
    commit: Callable[[str, TopicPartition, int], None]
    join: Callable[[str, str, str], None]


class BrokersContract:
    """Groups and topics get names of their own, for the cluster may be shared."""

    @pytest.fixture
    def group(self) -> str:
        return f"contract-readers-{secrets.token_hex(4)}"

    def test_every_broker_tells_what_it_speaks_and_what_was_agreed_on(self, stage: Stage) -> None:
        for id_, seen in stage.reads.versions().items():
            assert isinstance(seen, BrokerVersion)
            assert (seen.id, seen.release >= (3, 3)) == (id_, True)
            assert seen.supported[TRANSACTION_VERSION] >= seen.finalized[TRANSACTION_VERSION]

    def test_settings_are_told_by_the_same_brokers_and_unknown_ones_left_out(
        self, stage: Stage
    ) -> None:
        told = stage.reads.settings(["transaction.max.timeout.ms", "no.such.setting"])
        assert told.keys() == stage.reads.versions().keys()
        assert all(
            settings == {"transaction.max.timeout.ms": "900000"} for settings in told.values()
        )

    def test_no_topic_is_hidden_from_who_may_see_all(self, stage: Stage) -> None:
        assert stage.reads.hidden([stage.topic, "contract-no-such-topic"]) == frozenset()
        assert stage.reads.hidden([]) == frozenset()

    def test_a_group_that_committed_is_a_reader_and_is_not_active(
        self, stage: Stage, group: str
    ) -> None:
        stage.commit(group, TopicPartition(stage.topic, 0), 3)
        stage.commit(group, TopicPartition(stage.topic, 1), 0)
        seen = stage.reads.readers()
        (found,) = [each for each in seen.groups if each.id == group]
        assert found.committed == {
            TopicPartition(stage.topic, 0): 3,
            TopicPartition(stage.topic, 1): 0,
        }
        assert (found.topics, found.active, found.problem) == (
            frozenset({stage.topic}),
            False,
            None,
        )
        assert (seen.complete, seen.problems) == (True, {})

    def test_a_member_shows_what_a_group_reads_before_it_commits(
        self, stage: Stage, group: str
    ) -> None:
        stage.join(group, stage.topic, "somebody")
        (found,) = [each for each in stage.reads.readers().groups if each.id == group]
        assert [(member.client_id, member.topics) for member in found.members] == [
            ("somebody", frozenset({stage.topic}))
        ]
        assert (dict(found.committed), found.topics, found.active) == (
            {},
            frozenset({stage.topic}),
            True,
        )


class TestFakeBrokers(BrokersContract):
    """The brokers that other tests believe in."""

    @pytest.fixture
    def stage(self) -> Stage:
        fake = FakeBrokers()
        return Stage(fake, "orders", fake.commit, fake.join)


@pytest.mark.live
class TestRealBrokers(BrokersContract):
    """The same on a real broker, for groups of the old protocol and of KIP-848."""

    @pytest.fixture(params=["classic", "consumer"])
    def stage(self, cluster: Sandbox, request: pytest.FixtureRequest) -> Iterator[Stage]:
        from connectctl.ops.clients.kafka_protocol.brokers import Brokers
        from live.consumers import Consumers

        with Consumers(cluster.bootstrap_servers, request.param) as consumers:
            reads = Brokers({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
            yield Stage(
                reads, consumers.new_topic("contract-readers"), consumers.commit, consumers.join
            )
            reads.close()

    def test_the_workers_own_group_is_no_reader(self, stage: Stage, cluster: Sandbox) -> None:
        assert cluster.spec.group_id not in {group.id for group in stage.reads.readers().groups}

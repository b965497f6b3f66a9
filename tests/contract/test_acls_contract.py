"""What reading ACLs keeps to, be the brokers real or made for tests: the same tests on both.

The brokers with an authorizer are those of tests/live/test_preflight_acls.py, which runs
``GuardedContract`` on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from contract.guarded_acls import BINDINGS, GuardedContract
from fakes.acls import FakeAcls

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import AclReads
    from connectctl.ops.sandbox.cluster import Sandbox


class OpenContract:
    """Brokers without an authorizer; ``topic`` is one of theirs."""

    def test_there_are_no_acls_where_nothing_asks_for_them(self, reads: AclReads) -> None:
        assert reads.bindings() is None
        assert reads.authorizer().class_name == ""

    def test_the_cluster_and_its_topics_are_told(self, reads: AclReads, topic: str) -> None:
        assert topic in reads.topic_names()
        assert reads.cluster_id()
        assert reads.bootstrap
        assert not reads.wants_idempotent_write()


class TestFakeOpen(OpenContract):
    @pytest.fixture
    def topic(self) -> str:
        return "t"

    @pytest.fixture
    def reads(self, topic: str) -> AclReads:
        return FakeAcls(None, topics={topic})


class TestFakeGuarded(GuardedContract):
    @pytest.fixture
    def reads(self) -> AclReads:
        fake = FakeAcls(list(BINDINGS))
        fake.settings = type(fake.settings)(fake.settings.class_name, None, False)
        return fake


@pytest.mark.live
class TestRealOpen(OpenContract):
    @pytest.fixture
    def topic(self, cluster: Sandbox) -> str:
        return cluster.topics["config"]

    @pytest.fixture
    def reads(self, cluster: Sandbox) -> Iterator[AclReads]:
        from connectctl.ops.clients.kafka_protocol.acls import AclReader

        acls = AclReader({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
        yield acls
        acls.close()

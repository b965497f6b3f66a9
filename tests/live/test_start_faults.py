"""A start of tasks of which any one request is performed and not answered: it comes through, and is
told of in two lines.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.task_runtime.dataframe import api as dataframe_api
from connectctl.ops.task_runtime.dataframe.api import Target
from connectctl.ops.task_runtime.job.generation import Leader
from connectctl.ops.task_runtime.task.generation_check import GenerationCheck
from connectctl.ops.task_runtime.task.retries import RetryPolicy
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from fakes.faultproxy import FaultProxy
from live.brokerfeatures import set_feature
from live.real import create_topic

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.task_runtime.job.config_topic_records import Generation

pytestmark = pytest.mark.live
TIMEOUT = 20.0
PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, INIT, ADD_PARTITIONS, END_TXN = (
    0,
    1,
    2,
    3,
    10,
    22,
    24,
    26,
)
"""AddPartitionsToTxn is only sent to brokers without transaction version 2."""
DESCRIBE_GROUPS = 15
OF_A_START = (PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, INIT, END_TXN)
TASKS = 2


class Place:
    """A group whose driver reaches Kafka through a proxy, and a connector whose tasks are started
    again and again.
    """

    def __init__(self, cluster: Sandbox):
        self.group = f"start-{secrets.token_hex(4)}"
        self.topic = create_topic(cluster.bootstrap_servers, f"{self.group}-configs", 1)
        self.straight = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=TIMEOUT)
        for n in range(TASKS):  # each id has a producer to fence
            handle = TaskProducer(self.straight, task_id(self.group, "c", n), timeout_ms=10_000)
            handle.initialise(TIMEOUT)
            handle.discard()
        self.proxy = FaultProxy(cluster.bootstrap_servers)
        self.told: list[str] = []

    def begun(self) -> Generation:
        """The generation of a call of ``write_exactly_once``, in a process that has just begun."""
        client = {"bootstrap.servers": self.proxy.bootstrap}
        target = Target(
            client, self.group, "c", "rows", f"{self.group}-offsets", "shop", "id", patience=TIMEOUT
        )
        dataframe_api.forget(target)
        return dataframe_api.generation_of(
            target, [("shop", "string"), ("id", "bigint"), ("value", "string")]
        )

    def start(self) -> Generation:
        """A start of a driver that has just begun: with new connections."""
        client = {"bootstrap.servers": self.proxy.bootstrap}
        kafka = Kafka(client, timeout=TIMEOUT)
        kafka.cluster_id()
        with closing(TransactionClient(client, timeout=TIMEOUT)) as calls:
            leader = Leader(
                kafka, calls, self.group, self.topic, 20.0, RetryPolicy(60.0, self.told.append)
            )
            return leader.start(
                "c", {"name": "c"}, lambda before: [{"n": str(n)} for n in range(TASKS)]
            )

    def stale(self, generation: Generation) -> str | None:
        return GenerationCheck(self.straight, generation, TIMEOUT).stale_because()

    def withstands(
        self, api: int, skip: int = 0, start: Callable[[Place], Generation] | None = None
    ) -> bool:
        """A start comes through, although the answer to this one of its requests is lost; whether
        it sent that at all.
        """
        start = start or Place.start
        older = start(self)
        self.told.clear()
        fault = self.proxy.lose(api, skip)
        made = start(self)
        assert self.stale(made) is None
        assert self.stale(older)
        assert len(self.told) in (0, 2), self.told
        return not self.proxy.withdraw(fault)


@pytest.fixture(scope="module")
def place(cluster: Sandbox) -> Iterator[Place]:
    place = Place(cluster)
    yield place
    place.proxy.close()


@pytest.mark.parametrize("api", OF_A_START)
def test_a_start_comes_through_where_the_first_answer_of_a_kind_is_lost(
    place: Place, api: int
) -> None:
    assert place.withstands(api)


@pytest.fixture
def before_version_2(state_home: Path) -> Iterator[Place]:
    """The same on a broker whose ``transaction.version`` is 1."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    broker = up(SandboxSpec(name="startfaults", workers=0))
    set_feature(broker.bootstrap_servers, 1, 2)
    place = Place(broker)
    yield place
    place.proxy.close()
    down("startfaults")


def test_a_start_without_version_2_comes_through_where_the_answer_about_its_partitions_is_lost(
    before_version_2: Place,
) -> None:
    assert before_version_2.withstands(ADD_PARTITIONS)


def test_write_exactly_once_begins_where_the_answer_about_its_group_is_lost(place: Place) -> None:
    assert place.withstands(DESCRIBE_GROUPS, start=Place.begun)


@pytest.mark.slow
@pytest.mark.parametrize("start", [Place.start, Place.begun])
def test_a_start_comes_through_whichever_answer_is_lost(
    place: Place, start: Callable[[Place], Generation]
) -> None:
    start(place)
    place.proxy.seen.clear()
    start(place)
    kinds = Counter(place.proxy.seen)
    caught = sum(
        place.withstands(api, skip, start) for api, count in kinds.items() for skip in range(count)
    )
    print(f"{caught} answers lost of {kinds}")
    assert caught > kinds.total() * 0.8

"""A new topic has the replicas that it is to have for ever, or it is not created while a broker is
away.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.librdkafka import write
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.task_runtime.task.retries import is_retriable


class Cluster:
    """Brokers that are ``live``, and those to which topics have ``assigned`` replicas. KRaft
    assigns replicas to brokers that are away, ``older`` brokers do not.
    """

    timeout = 1.0

    def __init__(self, live: Sequence[int], assigned: Sequence[int] = (), *, older: bool = False):
        self.live, self.admin, self.made = live, self, list[int]()
        self.usable = len(live) if older else len({*live, *assigned})
        self.topics = {"other": self._topic(assigned)}

    def _topic(self, replicas: Sequence[int]) -> Any:
        return SimpleNamespace(
            error=None, partitions={0: SimpleNamespace(leader=self.live[0], replicas=replicas)}
        )

    def ask(self, doing: str, call: Any) -> Any:
        return call()

    def admin_request(self, request: Any, *, repeats: bool) -> dict[str, Any]:
        assert not repeats, "a topic would be created twice"
        return dict(request(self, self.timeout))

    def create_topics(self, new: Sequence[Any], request_timeout: float) -> dict[str, Any]:
        (topic,) = new

        def result() -> None:
            if topic.replication_factor > self.usable:
                raise ConnectctlError(
                    "Could not create the topic", why="too few", code="INVALID_REPLICATION_FACTOR"
                )
            self.made.append(topic.replication_factor)
            self.topics[topic.topic] = self._topic(self.live)

        return {topic.topic: SimpleNamespace(result=result)}

    def list_topics(self, topic: str | None = None, timeout: float = 0.0) -> Any:
        return SimpleNamespace(topics=self.topics, brokers=dict.fromkeys(self.live))


def created(cluster: Cluster, replicas: int, *, exactly: bool = False) -> list[int]:
    kafka: Any = cluster
    write.create_topic(kafka, "t", 1, replicas, {}, exactly=exactly)
    return cluster.made


@pytest.mark.parametrize(
    ("cluster", "replicas"),
    [
        (Cluster([1, 2, 3]), 3),
        (Cluster([1, 2], [1, 2, 3]), 3),
        (Cluster([1]), 1),
        (Cluster([1], [1, 2]), 2),
        (Cluster([1, 2], older=True), 2),
        (Cluster([1, 2, 3, 4], older=True), 3),
    ],
)
def test_a_topic_has_three_replicas_or_one_on_each_broker_of_a_smaller_cluster(
    cluster: Cluster, replicas: int
) -> None:
    assert created(cluster, 3) == [replicas]


@pytest.mark.parametrize(
    ("live", "assigned", "says"),
    [
        ([1, 2], [1, 2, 3], "The topic t is to have 3 replicas, and broker 3 is away"),
        ([1], [1, 2], "The topic t is to have 2 replicas, and broker 2 is away"),
        ([1], [1, 2, 3, 4], "The topic t is to have 3 replicas, and brokers 2, 3, 4 are away"),
    ],
)
def test_brokers_that_assign_no_replicas_to_those_that_are_away_are_waited_for(
    live: list[int], assigned: list[int], says: str
) -> None:
    cluster = Cluster(live, assigned, older=True)
    with pytest.raises(TimedOut) as refused:
        created(cluster, 3)
    assert (refused.value.what, refused.value.code, cluster.made) == (says, "brokers-away", [])
    assert is_retriable(refused.value)


def test_a_replication_factor_that_somebody_chose_is_never_made_smaller() -> None:
    with pytest.raises(ConnectctlError, match="too few"):
        created(Cluster([1]), 3, exactly=True)

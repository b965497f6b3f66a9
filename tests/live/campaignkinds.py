"""What tasks of a campaign are: sources that count, or transforms that copy what is written
meanwhile.

Both go through the same faults; a kind has its topics, what is held back of its requests, and how
its topics are judged.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import Producer
from connectctl.ops.clients.kafka_protocol.group_coordinator import coordinated
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.job.group_members import TaskMembers
from connectctl.ops.task_runtime.spi.subscription import subscription
from fakes.faultproxy import ADD_OFFSETS, ADD_PARTITIONS, END_TXN, PRODUCE, TXN_OFFSET_COMMIT
from live.campaignprocesses import PATIENCE
from live.campaigntransform import configs_of
from live.oracle import Verdict, judge, judge_group, open_partitions
from live.real import create_topic

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

GROUP = "g"
"""Of the workers, whose name is in transactional ids."""
SOURCES = 6
"""Source partitions, or partitions of the input."""
LEASE_ENDS, MEMBER_REMOVED = "the leases end", "a member is removed"
_HELD = {"a held Produce": PRODUCE, "held AddPartitions": ADD_PARTITIONS, "a held EndTxn": END_TXN}


class Kind(Protocol):
    """``topic`` is what the tasks write; ``held`` are the requests that may be held back,
    ``faults`` more that may happen, and ``watched`` the topics in which a broker may lose a marker.
    ``lease`` is in seconds.
    """

    topic: str
    held: Mapping[str, int]
    faults: tuple[str, ...]
    watched: list[str]
    lease: float

    def fields(self, task: int, count: int) -> dict[str, Any]:
        """What an attempt of one of ``count`` tasks is given, beside what all are."""
        ...

    def settle(self, active: Collection[int]) -> None:
        """What the driver does before the tasks ``active`` begin."""
        ...

    def remove(self, task: int) -> None:
        """The group loses the member of a task, as when its session times out."""
        ...

    def finish(self) -> None:
        """Nothing more is to come."""
        ...

    def is_settled(self) -> bool:
        """Whether all that there is is carried over."""
        ...

    def is_open(self) -> list[str]:
        """Where a transaction is open."""
        ...

    def judge(self) -> Verdict:
        """What the topics say in the end."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Sources:
    """Tasks that count, each a part of the ``SOURCES`` source partitions up, without end."""

    held: Mapping[str, int] = _HELD
    faults: tuple[str, ...] = ()
    lease = PATIENCE

    def __init__(self, kafka: Kafka, bootstrap: str, connector: str, replicas: int):
        self._kafka, self._connector = kafka, connector
        self.topic = create_topic(bootstrap, f"{connector}-data", 4, "delete", replicas)
        self._offsets = create_topic(bootstrap, f"{connector}-offsets", replicas=replicas)
        self.watched = [self.topic, self._offsets]

    def fields(self, task: int, count: int) -> dict[str, Any]:
        return {
            "offsets": self._offsets,
            "sources": [n for n in range(SOURCES) if n % count == task],
        }

    def settle(self, active: Collection[int]) -> None:
        pass

    def remove(self, task: int) -> None:
        pass

    def finish(self) -> None:
        pass

    def is_settled(self) -> bool:
        return True

    def is_open(self) -> list[str]:
        return [str(place) for place in open_partitions(self._kafka, *self.watched)]

    def judge(self) -> Verdict:
        return judge(self._kafka, self.topic, self._offsets, self._connector, whose)

    def close(self) -> None:
        pass


class Transforms:
    """Tasks of one consumer group that copy a topic of ``SOURCES`` partitions while it is
    written.
    """

    held: Mapping[str, int] = {
        **_HELD,
        "held AddOffsetsToTxn": ADD_OFFSETS,
        "held TxnOffsetCommit": TXN_OFFSET_COMMIT,
    }
    faults: tuple[str, ...] = (LEASE_ENDS, MEMBER_REMOVED)
    lease = 12.0
    """Behind it partitions are assigned that nobody has; see ``TaskMembers``."""

    def __init__(self, kafka: Kafka, bootstrap: str, connector: str, replicas: int):
        self._kafka = kafka
        self._input = create_topic(bootstrap, f"{connector}-in", SOURCES, "delete", replicas)
        self.topic = create_topic(bootstrap, f"{connector}-data", 4, "delete", replicas)
        self.watched = [self.topic, "__consumer_offsets"]
        self._reads = subscription(connector, configs_of(connector, self._input, self.topic))
        self.notes: list[str] = []
        self._members = TaskMembers(kafka, GROUP, connector, self._reads, self.notes.append)
        self._feed = Feed(bootstrap, self._input)

    def fields(self, task: int, count: int) -> dict[str, Any]:
        return {"kind": "transform", "input": self._input, "tasks": count}

    def settle(self, active: Collection[int]) -> None:
        self._members.settle(active)

    def remove(self, task: int) -> None:
        self._members.remove([task])

    def finish(self) -> None:
        self._feed.close()

    def _committed(self) -> dict[bytes, int]:
        found = coordinated(
            self._kafka, self._reads.consumer.group, lambda c: c.committed(stable=True)
        )
        return {str(number).encode(): offset for (_, number), offset in found.items()}

    def _ends(self) -> dict[bytes, int]:
        return {
            str(n).encode(): extent.end
            for n, extent in self._kafka.extents([self._input])[self._input].items()
        }

    def is_settled(self) -> bool:
        try:
            return self._committed() == self._ends()
        except ConnectctlError:
            return False  # the broker is on its way, or a transaction has offsets pending

    def is_open(self) -> list[str]:
        pending = [] if self.is_settled() else ["offsets of the group"]
        return [*map(str, open_partitions(self._kafka, self.topic)), *pending]

    def judge(self) -> Verdict:
        return judge_group(self._kafka, self.topic, self._ends(), self._committed())

    def close(self) -> None:
        self._feed.close()


class Feed:
    """Writes numbers to each partition of ``topic``, without end, a few in a moment."""

    def __init__(self, bootstrap: str, topic: str):
        self._bootstrap, self._topic = bootstrap, topic
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )
        number = 0
        while not self._end.wait(0.05):
            for partition in range(SOURCES):
                producer.produce(self._topic, b"%d" % number, partition=partition)
            number += 1
            producer.poll(0)
        assert producer.flush(PATIENCE) == 0

    def close(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)


def whose(partition: dict[str, Any]) -> bytes:
    """The record key of a source partition."""
    return str(partition["source"]).encode()

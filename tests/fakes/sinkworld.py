"""The cluster of ``offsetworld`` with a sink connector, its group, and a group without a
connector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.kafkareads import connect_group
from fakes.offsetworld import World
from fakes.workers import FakeConnector

SINK = {"connector.class": "x.y.Sink", "topics": "lines"}
GROUP, ALONE = "connect-archive", "connect-transform"
WAS = {TopicPartition("lines", 0): 5, TopicPartition("lines", 1): 3}
TARGET_STATE = b'{"state.v2":"STOPPED"}'


@dataclass
class SinkWorld(World):
    """``archive`` is a stopped sink of ``lines``, which has ten records in each of three
    partitions.
    """

    stopped: bool = True
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kafka.partitions["lines"] = 3
        self.kafka.records["lines"] = [ConsumerRecord(b"k", b"v", n % 3, n // 3) for n in range(30)]
        own, tasks = ("STOPPED", []) if self.stopped else ("RUNNING", ["RUNNING"])
        self.workers.connectors["archive"] = FakeConnector(
            own=own, tasks=tasks, config=SINK | self.more
        )
        self._configure("archive", SINK | self.more)
        parts = [("archive", -1)] if self.stopped else [("archive", -1), ("archive", 0)]
        owners = [("plain", -1), ("plain", 0), ("moved", -1), ("moved", 0), *parts]
        self.kafka.groups["connect"] = connect_group("connect", one=owners)
        if self.stopped:
            self.kafka.append("cfg", b"target-state-archive", TARGET_STATE)
            self.kafka.append("cfg", b"commit-archive", b'{"tasks":0}')
        else:
            self.kafka.append("cfg", b"commit-archive", b'{"tasks":1}')
            self.groups.members[GROUP] = ["connector-consumer-archive-0"]
            self.workers.commanded = self._command(self.workers.commanded)
        self.groups.offsets |= {GROUP: dict(WAS), ALONE: dict(WAS)}

    def _command(self, before: Any) -> Any:
        def command(name: str, verb: str) -> None:
            before(name, verb)
            if name == "archive":
                self.groups.leaving[GROUP] = 2

        return command

    def _alter(self, name: str, method: str, body: Any) -> None:
        """What a worker does for a sink: the group's offsets, by its own admin client."""
        if name != "archive":
            super()._alter(name, method, body)
            return
        if method == "DELETE":
            self.groups.delete(GROUP, list(self.groups.offsets[GROUP]))
            return
        for entry in body["offsets"]:
            place = TopicPartition(
                entry["partition"]["kafka_topic"], entry["partition"]["kafka_partition"]
            )
            if entry["offset"] is None:
                self.groups.delete(GROUP, [place])
            else:
                self.groups.commit(GROUP, {place: entry["offset"]["kafka_offset"]})

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """What the sink's group has committed."""
        return self.groups.offsets[GROUP]

"""Topics of four partitions that tests read, and a transform of one, with what went through it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient
from live import countingplugin
from live.real import create_topic, write
from live.rundirectory import Place

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox


PLUGIN = """
from connectctl.ops.task_runtime.spi.transform import Record, Transform


class Shout(Transform):
    def process(self, records):
        return [Record(r.value.upper(), r.key, headers=[("from", str(r.partition).encode())]) for r in records]


def evens(frame):
    return frame[frame.value.str.decode("utf-8").str.slice(start=5).astype(int) % 2 == 0]
"""


class FourPartitions(Place):
    """A topic of four partitions, ``source``, that is read instead of the file."""

    def __init__(self, cluster: Sandbox, directory: Path):
        super().__init__(cluster, directory)
        self.source = create_topic(cluster.bootstrap_servers, f"{self.name}-in", 4, "delete")

    def append(self, count: int) -> None:
        numbers = range(self.written, self.written + count)
        for partition in range(4):
            some = [(f"{n}", f"line {n}") for n in numbers if n % 4 == partition]
            write(self.cluster.bootstrap_servers, self.source, *some, partition=partition)
        self.written += count


class Piped(FourPartitions):
    """A topic of four partitions that a transform reads, and one that it writes to."""

    def __init__(self, cluster: Sandbox, directory: Path, what: str, **more: str):
        super().__init__(cluster, directory)
        archive, path = countingplugin.as_zip(directory, PLUGIN, what)
        self.plugins = [archive]
        self.config = {
            "connector.class": path,
            "topics": self.source,
            "topic": self.topic,
            "tasks.max": "2",
        } | more

    def each_once(self, *, of: int | None = None) -> None:
        seen = self.seen()
        for partition in range(4):  # and in the order of each partition
            assert [line for line in seen if int(line.split()[1]) % 4 == partition] == [
                f"LINE {n}" for n in range(partition, self.written if of is None else of, 4)
            ]

    def committed(self) -> int:
        admin = AdminClient(self.kafka.client)
        from confluent_kafka import ConsumerGroupTopicPartitions

        group = f"connect-{self.name}"
        found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[
            group
        ].result()
        return sum(1 for each in found.topic_partitions if each.offset >= 0)

    def members(self) -> list[Any]:
        admin = AdminClient(self.kafka.client)
        group = f"connect-{self.name}"
        return list(admin.describe_consumer_groups([group])[group].result().members)

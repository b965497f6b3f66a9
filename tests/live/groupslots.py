"""Task slots of one consumer group on a real broker, without Spark: each a thread that runs the
loop of a transform.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka.admin import NewPartitions
from connectctl.ops.clients.kafka_protocol.group_coordinator import Coordinator, coordinated
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupEvent, Polled
from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings, consumer_settings
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.group.member import TaskMember
from connectctl.ops.task_runtime.group.stable_offsets import StableOffsets
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult
from connectctl.ops.task_runtime.spi.transform import Record, Records, Transform
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from connectctl.ops.task_runtime.task.transform_output import OutputSettings
from connectctl.ops.task_runtime.task.transform_source import TransformSource
from live.real import create_topic, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

PATIENCE = 120.0
LONG = 3600.0
"""Seconds between two commits of a slot that only commits when it has to."""


@dataclass(frozen=True)
class DynamicSettings(ConsumerSettings):
    """Members of the classic protocol without ``group.instance.id``, which no job can ask for."""

    @property
    def dynamic(self) -> bool:
        return True


class Generation:
    """A consumer of which a producer knows the group's metadata, and nothing else."""

    def __init__(self, metadata: bytes):
        self.metadata = metadata

    @classmethod
    def of(cls, group: str, member: str, generation: int) -> Self:
        """As ``rd_kafka_consumer_group_metadata_write`` has it, without an instance id."""
        return cls(
            b"CGMDv2:"
            + generation.to_bytes(4, "little", signed=True)
            + f"{group}\0{member}\0".encode()
            + b"\1"
        )

    @property
    def number(self) -> int:
        return int.from_bytes(self.metadata[7:11], "little", signed=True)


class Slots:
    """One transform ``t``, with an input of ``partitions`` and an output of one; its slots and
    members end with the test.
    """

    def __init__(self, bootstrap: str, name: str, settings: ConsumerSettings, partitions: int = 4):
        self.bootstrap, self.name, self.settings, self.partitions = (
            bootstrap,
            name,
            settings,
            partitions,
        )
        self.kafka = Kafka({"bootstrap.servers": bootstrap}, timeout=PATIENCE)
        self.source, self.target = f"{name}-in", f"{name}-out"
        self.waits: list[str] = []
        self._open: list[Any] = []
        self._written = 0

    @classmethod
    def new(cls, cluster: Sandbox, partitions: int = 4, **overrides: str) -> Self:
        name = f"t-{secrets.token_hex(4)}"
        config = {f"consumer.override.{k.replace('_', '.')}": v for k, v in overrides.items()}
        made = cls(cluster.bootstrap_servers, name, consumer_settings(name, config), partitions)
        create_topic(made.bootstrap, made.source, partitions, "delete")
        create_topic(made.bootstrap, made.target, 1, "delete")
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._open:
            each.close()

    @property
    def places(self) -> frozenset[TopicPartition]:
        return frozenset(TopicPartition(self.source, n) for n in range(self.partitions))

    def id_of(self, number: int) -> str:
        return f"g-{self.name}-{number}"

    def write(self, each: int = 5) -> None:
        """So many new records to each partition."""
        for partition in range(self.partitions):
            numbers = range(self._written, self._written + each)
            write(
                self.bootstrap,
                self.source,
                *((None, f"{partition}:{n}") for n in numbers),
                partition=partition,
            )
        self._written += each

    @property
    def each_once(self) -> list[str]:
        return sorted(f"{p}:{n}" for p in range(self.partitions) for n in range(self._written))

    def seen(self) -> list[str]:
        """The output as readers with read_committed see it, sorted."""
        image = self.kafka.image([self.target], patience=2, superseded=True)[self.target]
        return sorted((r.value or b"").decode() for r in (*image.latest, *image.superseded))

    def _hear(self, text: str, endless: bool = False) -> None:
        self.waits.append(text)

    def stable(
        self, candidates: Sequence[int] = (), kind: type[StableOffsets] = StableOffsets
    ) -> StableOffsets:
        return kind(
            self.kafka, self.settings.group, [self.id_of(n) for n in candidates], self._hear
        )

    def member(
        self, number: int, candidates: Sequence[int] = (), kind: type[StableOffsets] = StableOffsets
    ) -> TaskMember:
        stable = self.stable(candidates, kind)
        opened = TaskMember(
            self.kafka,
            self.settings,
            [self.source],
            self.id_of(number),
            stable,
            patience=PATIENCE,
        )
        self._open.append(opened)
        return opened

    def joined(self, number: int) -> TaskMember:
        member = self.member(number)
        member.join()
        return member

    def producer(self, number: int, timeout_ms: int = 10_000) -> TaskProducer:
        return TaskProducer(self.kafka, self.id_of(number), timeout_ms=timeout_ms)

    def slot(self, number: int, **more: Any) -> Slot:
        started = Slot(self, number, **more)
        self._open.append(started)
        started.start()
        return started

    def polling(self, *members: TaskMember) -> Polling:
        started = Polling(members)
        self._open.append(started)
        return started

    def end_of(self, member: TaskMember) -> None:
        """Its lease ends: nobody polls it any more, and it is closed."""
        for each in self._open:
            if isinstance(each, Polling) and member in each.members:
                each.close()
        member.close()

    def ask(self, what: Callable[[Coordinator], Any]) -> Any:
        return coordinated(self.kafka, self.settings.group, what)

    def committed(self) -> dict[TopicPartition, int]:
        return {TopicPartition(*place): n for place, n in self.ask(lambda c: c.committed()).items()}

    def add_partitions(self, count: int) -> None:
        self.kafka.admin.create_partitions([NewPartitions(self.source, count)])[
            self.source
        ].result()
        self.partitions = count

    def recreate_source(self) -> None:
        """Delete the input, and make it again; what was written to it is forgotten."""
        self.kafka.admin.delete_topics([self.source])[self.source].result()
        create_topic(self.bootstrap, self.source, self.partitions, "delete")
        self._written = 0

    def with_settings(self, kind: type[ConsumerSettings], **properties: str) -> None:
        given = {k.replace("_", "."): v for k, v in properties.items()}
        self.settings = kind(
            **(vars(replace(self.settings, properties={**self.settings.properties, **given})))
        )


class Polling:
    """Members that are polled on a thread, as tasks do, until the test ends."""

    def __init__(self, members: Sequence[TaskMember]):
        self.members = members
        self.error: Exception | None = None
        self.changes = defaultdict[TaskMember, list[GroupEvent]](list)
        self.generations: dict[TaskMember, int] = {}
        """Asked on the thread that polls: asked by another one meanwhile, confluent-kafka may wait
        for ever.
        """
        self.assignments = defaultdict[TaskMember, frozenset[TopicPartition]](frozenset)
        """Those of which all changes and the generation are there. The member has its partitions
        earlier: while it still polls.
        """
        self.records = defaultdict[TaskMember, int](int)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        try:
            while not self._end.is_set():
                for member in self.members:
                    event = member.poll(0.05, 100)
                    self.generations[member] = Generation(member.metadata).number
                    if isinstance(event, Polled):  # a member has no other event left
                        self.records[member] += len(event.messages)
                        self.assignments[member] = member.assignment
                    else:
                        self.changes[member].append(event)
        except Exception as e:  # noqa: BLE001 - for the test to look at
            self.error = e

    def close(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)


class Copying(Transform):
    """Gives what it reads, and notes it."""

    def __init__(self, read: list[str], each: Callable[[list[str]], None]):
        self._read, self._each = read, each

    def process(self, records: Records) -> Any:
        values = [(r.value or b"").decode() for r in records]
        self._read += values
        self._each(values)
        return [Record(r.value) for r in records]


class CopyingColumns(Copying):
    """The same with tables."""

    columnar = True

    def process(self, records: Records) -> Any:
        super().process(records)
        return records.arrow


class Slot:
    """An attempt of a slot on a thread of its own. It commits every ``interval`` seconds; ``each``
    hears what it reads. Where it is ``columnar``, its transform gives tables.
    """

    def __init__(
        self,
        slots: Slots,
        number: int,
        interval: float = 0.1,
        each: Callable[[list[str]], None] = lambda values: None,
        open_producer: Callable[[], TaskProducer] | None = None,
        columnar: bool = False,
        source: type[TransformSource] = TransformSource,
        stable: type[StableOffsets] = StableOffsets,
    ):
        self._stable, self._source = stable, source
        self.columnar = columnar
        self.slots, self.number, self.interval, self.each = slots, number, interval, each
        self.open_producer = open_producer or (lambda: slots.producer(number))
        self.read: list[str] = []
        self.members: list[TaskMember] = []
        self.result: TaskResult | None = None
        self.error: Exception | None = None
        self._end = threading.Event()
        self.ledger = GroupLedger(self._opened, PATIENCE)
        self.task = AttemptLoop(
            self.open_producer, self.ledger, stopped=self._end.is_set, patience=PATIENCE
        )
        self._thread = threading.Thread(target=self.run, daemon=True)

    def _opened(self) -> TaskMember:
        self.members.append(self.slots.member(self.number, kind=self._stable))
        return self.members[-1]

    def start(self) -> None:
        self._thread.start()

    def run(self) -> None:
        output = OutputSettings(self.slots.target, columnar=self.columnar)
        kind = CopyingColumns if self.columnar else Copying
        opened = lambda: kind(self.read, self.each)  # noqa: E731
        source = self._source(opened, {}, output, self.interval, 100, TaskMeter())
        try:
            self.result = self.task.run(source)
        except Exception as e:  # noqa: BLE001 - for the test to look at
            self.error = e
        finally:
            source.close()
            self.ledger.close()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self.members[-1].assignment if self.members else frozenset()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def close(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)
        assert self.ended


def took(what: str, began: float) -> None:
    """Print for people how long something took."""
    print(f"{what}: {time.monotonic() - began:.2f} s")

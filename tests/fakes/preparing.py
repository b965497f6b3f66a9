"""What a run’s preparation meets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from connectctl.ops.connect.connect_protocol import ConnectGroup, Member
from connectctl.ops.kafka.brokers import BrokerVersion
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Complete
from connectctl.ops.task_runtime.connectors.filestream import FileStreamTask
from connectctl.ops.task_runtime.job.config_topic_records import KeyValue
from connectctl.ops.task_runtime.job.internal_topics import RunClients
from connectctl.ops.task_runtime.job.job_file import Job
from connectctl.ops.task_runtime.job.prepare import PreparedJob, prepare_job
from connectctl.ops.task_runtime.spi.connector import Outlook, SourceConnector

FILE = {"connector.class": "FileStreamSource", "file": "/in", "topic": "t"}


NEW = BrokerVersion(1, (3, 6), {24: 4, 28: 3, 9: 8})


@dataclass
class World:
    """One Kafka cluster: topics with their partitions and clean-up policy, a config topic, brokers,
    coordinators.
    """

    there: dict[str, tuple[int, str]] = field(default_factory=dict)
    configs: list[KeyValue] = field(default_factory=list)
    known: frozenset[str] = frozenset()
    broker: Any = NEW
    live: int = 0
    named: Mapping[str, str | None] = field(default_factory=dict)
    bootstrap: str = "here:1"
    creates: str = "true"

    def topic_names(self) -> frozenset[str]:
        return frozenset(self.there)

    def existing(self, names: Sequence[str]) -> Complete[frozenset[str]]:
        return Complete(frozenset(names) & frozenset(self.there))

    def topics(self, names: Sequence[str]) -> dict[str, TopicFacts]:
        found = {n: self.there[n] for n in names if n in self.there}
        return {
            n: TopicFacts(n, count, {}, {}, {"cleanup.policy": how})
            for n, (count, how) in found.items()
        }

    def image(self, topics: Sequence[str], *, patience: float) -> dict[str, TopicImage]:
        records = tuple(ConsumerRecord(k, v, 0, n) for n, (k, v) in enumerate(self.configs))
        return {topics[0]: TopicImage(topics[0], len(records), records, {0: len(records)})}

    def describe(self, ids: Sequence[str]) -> dict[str, Any]:
        return {
            i: Transaction(i, "Empty", 1, 1) if i in self.known else Code.TRANSACTIONAL_ID_NOT_FOUND
            for i in ids
        }

    def versions(self) -> dict[int, Any]:
        return {1: self.broker}

    def settings(self, names: Sequence[str]) -> dict[int, Any]:
        return {1: {"auto.create.topics.enable": self.creates}}

    def cluster_id(self) -> str:
        return "id"

    def look(self, job: Job | None = None, *, take_over: bool = False) -> PreparedJob:
        return prepare_job(
            self.scene(), job or Job("c", {"name": "c", **FILE}), take_over=take_over
        )

    def scene(self) -> RunClients:
        us: Any = self
        members = tuple(Member(f"w{n}", "w", "h", "http://h:1", 1, None) for n in range(self.live))
        group = ConnectGroup("g", "Stable" if members else "Dead", "", members)
        return RunClients(us, us, us, (us,), group, self.named, us if members else None)


class Many(SourceConnector):
    """Has as many tasks as ``wanted``, whatever ``tasks.max`` says; ``calls`` are those of all of
    its kind.
    """

    task = FileStreamTask
    calls: ClassVar[list[str]] = []

    def outlook(self, configs: Mapping[str, str]) -> Outlook:
        tasks = configs.get("foretold")
        return Outlook(
            ["create a queue"] if "creates" in configs else (), tasks=int(tasks) if tasks else None
        )

    def start(self, configs: Mapping[str, str]) -> None:
        self.calls.append("start")
        super().start(configs)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        self.calls.append(f"tasks {max_tasks}")
        return [{} for _ in range(int(self.configs["wanted"]))]

    def stop(self) -> None:
        self.calls.append("stop")

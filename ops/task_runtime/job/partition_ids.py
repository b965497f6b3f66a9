"""The transactional ids that producers for input partitions of a transform may have, which a new generation fences, too.

A generation with one producer for each task, or of fewer inputs, does not initialise them: only fencing ends what an older
task left open by them. Which there are is listed by their prefix; where the configuration has producers for partitions,
those of its inputs are named besides, because a principal is not shown ids that it may not describe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.connect.transactional_ids import TransactionalIdIndex, partition_id
from connectctl.ops.task_runtime.spi.delivery_settings import PER_PARTITION
from connectctl.ops.task_runtime.spi.subscription import REGEX, input_topics
from connectctl.ops.task_runtime.spi.transform import GUARANTEE

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.clients.protocols import TransactionCalls


def per_partition(config: Mapping[str, str]) -> bool:
    """Whether a transform of this configuration has a producer for each input partition."""
    return config.get(GUARANTEE) == PER_PARTITION


@dataclass(frozen=True)
class PartitionIds:
    """The ids of the transform ``name`` in ``group``, on its one cluster; ``note`` gets what could not be seen."""

    kafka: Kafka
    calls: TransactionCalls
    group: str
    name: str
    note: Callable[[str], None] = lambda line: None

    def __call__(self, configs: Sequence[Mapping[str, str]]) -> list[str]:
        """Those for inputs of ``configs``, its configuration of before and its new one. Raises ``Unreachable``."""
        listed = self.calls.listed(prefixes=[f"{self.group}-{self.name}-"])
        index = TransactionalIdIndex({self.group: frozenset((self.name,))})
        found = [each.id for each in listed.seen if self._is_input(index, each.id, configs)]
        for config in configs:
            found += self._named(config) if per_partition(config) else ()
        if per_partition(configs[0]) and listed.gaps:
            self.note(
                f"warning: transactional ids of topics that {self.name} read before may not all be fenced: not all ids "
                f"could be read ({listed.gaps[0].why})"
            )
        return list(dict.fromkeys(found))

    def _is_input(self, index: TransactionalIdIndex, id_: str, configs: Sequence[Mapping[str, str]]) -> bool:
        inputs = [owner.input.rpartition("-")[0] for owner in index.owners(id_) if owner.input is not None]
        return any(_reads(config, topic) for topic in inputs for config in configs)

    def _named(self, config: Mapping[str, str]) -> Iterator[str]:
        topics = sorted(topic for topic in self.kafka.topic_names() if _reads(config, topic))
        for topic, count in self.kafka.partition_counts(topics).items():
            for partition in range(count):
                yield partition_id(self.group, self.name, topic, partition)


def _reads(config: Mapping[str, str], topic: str) -> bool:
    regex = config.get(REGEX, "").strip()
    return topic in input_topics(config) or (bool(regex) and re.fullmatch(regex, topic) is not None)

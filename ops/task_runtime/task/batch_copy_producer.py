"""An instance of a task's producer that sends batches of another topic as they are, but for their
headers.

A batch that its topic would not take, or that is to be compressed otherwise there, is opened and
made anew. The guarantees are those of ``ColumnarProducer``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.batch_rewrite import LARGEST, TargetTopic
from connectctl.ops.task_runtime.task.columnar_producer import ColumnarProducer

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.kafka.copied_records import CopiedRecords, SentBatch
    from connectctl.ops.task_runtime.spi.transaction_batch import CopiedBatches, TransactionBatch

_PRODUCERS_OWN = "producer"


class BatchCopyProducer(ColumnarProducer):
    """See ``ColumnarProducer``. Without ``compression.type`` in ``properties`` batches stay
    compressed as they came.
    """

    def __init__(
        self,
        kafka: Kafka,
        id_: str,
        *,
        timeout_ms: int,
        properties: Mapping[str, Any] | None = None,
    ):
        super().__init__(kafka, id_, timeout_ms=timeout_ms, properties=properties)
        whole = kafka.client | dict(properties or {})
        given = whole.get("compression.type") or whole.get("compression.codec")
        self._wanted_codec = str(given) if given else None
        self._targets: dict[str, TargetTopic] = {}

    def send(self, batch: TransactionBatch) -> None:
        super().send(batch)
        for copied in batch.copied_batches:
            self._call("write its records", partial(self._copy, copied))

    def _copy(self, copied: CopiedBatches) -> None:
        target = self._target(copied.topic)
        for place, some in self._writer.ready(
            copied.topic, [(each.partition, each) for each in copied.batches]
        ):
            name = partial(copied.describe_record, some.partition)
            # called at once
            sent = _made(some, target, lambda: name(some.offset_of(0)))  # noqa: B023
            for each in sent:
                self._producer.send(
                    place, each.records, each.encode, partial(_named, name, some, each)
                )
            copied.count(all(each.unopened for each in sent), some.batches)

    def _target(self, topic: str) -> TargetTopic:
        """What ``topic`` takes, as far as it may be seen."""
        if topic not in self._targets:
            config = self._kafka.topic_configs([topic]).get(topic, {})
            codec = config.get("compression.type", _PRODUCERS_OWN)
            largest = config.get("max.message.bytes", "")
            self._targets[topic] = TargetTopic(
                int(largest) if largest.isdigit() else LARGEST,
                config.get("message.timestamp.type") == "LogAppendTime",
                self._wanted_codec
                if codec == _PRODUCERS_OWN
                else {"uncompressed": "none"}.get(codec, codec),
            )
        return self._targets[topic]


def _made(some: CopiedRecords, target: TargetTopic, name: Callable[[], str]) -> list[SentBatch]:
    try:
        return some.sent_to(target)
    except (ValueError, OSError) as e:
        raise ConnectctlError(
            f"{name()} is in a batch that cannot be read", why=str(e), code="garbled"
        ) from e


def _named(name: Callable[[int], str], some: CopiedRecords, sent: SentBatch, record: int) -> str:
    """Which record of the source a record of a sent batch is."""
    return name(some.offset_of(sent.first + record))

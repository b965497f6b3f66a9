"""The global offsets topic behind a connector's dedicated one: written second, and outside the task's transaction.

``ConnectorOffsetBackingStore``'s order: tombstones go here first and have to arrive, everything else goes here after the
primary topic has it, and need not. What is lost here costs nothing: readers prefer the primary topic.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import TimedOut

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets


class GlobalOffsetsWriter:
    """The global offsets topic ``topic`` of the workers' cluster; ``patience`` in seconds for tombstones to arrive."""

    def __init__(self, kafka: Kafka, topic: str, patience: float):
        from confluent_kafka import Producer

        properties = kafka.properties(partitioner="murmur2_random", linger__ms=5)
        self._producer: Any = kafka.ask("open a producer", lambda: Producer(properties))
        self._patience = patience
        self.topic = topic

    def write_tombstones(self, offsets: Offsets) -> None:
        """Write the tombstones of ``offsets``. Raises ``TimedOut`` unless all have arrived."""
        from confluent_kafka import KafkaException

        failed: list[str] = []
        keys = [key for key, value in offsets.items() if value is None]
        left = 0
        try:
            for key in keys:
                self._producer.produce(
                    self.topic, None, key, on_delivery=lambda error, _: failed.append(error.str()) if error else None
                )
            left = self._producer.flush(self._patience) if keys else 0
        except (BufferError, KafkaException) as e:
            failed.append(str(e))
        if left or failed:
            raise TimedOut(
                f"Could not write a tombstone to {self.topic}",
                why="; ".join(sorted(set(failed))) or "timed out",
            )

    def write_values(self, offsets: Offsets) -> None:
        """Write everything but the tombstones, in the background."""
        from confluent_kafka import KafkaException

        for key, value in offsets.items():
            if value is not None:
                # Best effort, as the workers': the primary topic has it.
                with suppress(BufferError, KafkaException):
                    self._producer.poll(0)
                    self._producer.produce(self.topic, value, key)

    def close(self) -> None:
        """Give what is in the queue a last moment."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self._producer.flush(self._patience)

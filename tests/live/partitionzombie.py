"""A slot with a producer for each partition, in a process of its own that stops itself (SIGSTOP) before it commits."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings
from connectctl.ops.task_runtime.task.columnar_producer import ColumnarProducer
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from live.groupslots import Slot, Slots

TIMEOUT_MS = 120_000
"""Of its transactions: whoever waits for their end by a time-out waits for longer than the test."""
_stopped = threading.Event()


class Stopping(TaskProducer):
    """Stops the process before the first commit, with records and offsets in its transactions."""

    def commit(self, *given: Any) -> None:
        if not _stopped.is_set():
            _stopped.set()
            os.kill(os.getpid(), signal.SIGSTOP)
        super().commit(*given)


class StoppingBatches(ColumnarProducer):
    """The same of batches, which are there before the commit here."""

    def commit(self, *given: Any) -> None:
        if not _stopped.is_set():
            _stopped.set()
            self._send(everything=True)
            self._producer.flush()
            os.kill(os.getpid(), signal.SIGSTOP)
        super().commit(*given)


KINDS = {"librdkafka": Stopping, "batches": StoppingBatches}


def main(bootstrap: str, name: str, properties: str, partitions: str, kind: str) -> None:
    settings = ConsumerSettings(f"connect-{name}", properties=json.loads(properties))
    with Slots(bootstrap, name, settings, int(partitions)) as slots:
        slot = Slot(slots, 0, partition_producer=KINDS[kind], timeout_ms=TIMEOUT_MS)
        slot.start()
        sys.stdin.read()
        slot.close()
        print(json.dumps({"doubts": slot.task.stats.doubts, "error": slot.error and str(slot.error)}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A slot in a process of its own that stops itself (SIGSTOP) behind the records and before the
offsets of a transaction.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from live.groupslots import DynamicSettings, Slot, Slots

TIMEOUT_MS = 120_000
"""Of its transaction: only its generation may stand in its way, and no time-out."""
_stopped = threading.Event()


class Stopping(TaskProducer):
    """Stops the process before it sends the offsets of its first transaction."""

    def send_group_offsets(self, *given: Any) -> None:
        if not _stopped.is_set():
            _stopped.set()
            os.kill(os.getpid(), signal.SIGSTOP)
        super().send_group_offsets(*given)


def main(
    bootstrap: str, name: str, dynamic: str, columnar: str, properties: str, partitions: str
) -> None:
    kind = DynamicSettings if dynamic == "True" else ConsumerSettings
    with Slots(
        bootstrap, name, kind(f"connect-{name}", properties=json.loads(properties)), int(partitions)
    ) as slots:
        opened = lambda: Stopping(slots.kafka, slots.id_of(0), timeout_ms=TIMEOUT_MS)  # noqa: E731
        slot = Slot(slots, 0, open_producer=opened, columnar=columnar == "True")
        slot.start()
        sys.stdin.read()
        slot.close()
        print(
            json.dumps({"doubts": slot.task.stats.doubts, "error": slot.error and str(slot.error)})
        )


if __name__ == "__main__":
    main(*sys.argv[1:])

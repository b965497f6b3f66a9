"""Writes offsets of a dedicated topic also to the global one: second, and outside the task's
transaction.

``ConnectorOffsetBackingStore``'s order: tombstones go here first and have to arrive, everything
else goes here after the primary topic has it. KIP-618 has that retried without end, on a thread of
its own, so that the task neither waits for it nor fails of it. Of each key only the newest value
counts: what an outage leaves unwritten is one value for each source partition, and never more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import TimedOut

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, StoredOffsets

MOST_IN_FLIGHT = 1000
"""Records in flight; beyond that, newer values replace older ones."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds before a rejected record is sent again, doubled each time."""
CLOSING = 10.0
"""Seconds to wait at the end for records in flight, unless the topic rejects them."""
WAIT = 0.1


class GlobalOffsetsWriter:
    """The global offsets topic ``topic`` of the workers' cluster; ``patience`` in seconds for
    tombstones to arrive.

    ``unwritten`` are keys that an earlier lease could not write: ``settle`` writes their newest
    offsets.
    """

    def __init__(self, kafka: Kafka, topic: str, patience: float, unwritten: Iterable[bytes] = ()):
        from confluent_kafka import Producer

        # One request at a time keeps the order of a key where librdkafka repeats one, which it does
        # without end.
        safe = {"message.timeout.ms": 0, "max.in.flight.requests.per.connection": 1}
        properties = kafka.properties(partitioner="murmur2_random", linger__ms=5) | safe
        self._producer: Any = kafka.ask("open a producer", lambda: Producer(properties))
        self._patience = patience
        self.topic = topic
        self.failures = 0
        """The number of rejected records; each is sent again, unless a newer one is in flight."""
        self.problem: str | None = None
        """Why the last record was rejected, None after one was accepted."""
        self._undecided = set(unwritten)
        self._due: dict[bytes, bytes | None] = {}
        self._sent: dict[bytes, int] = {}
        self._refused: set[bytes] = set()
        self._number = self._in_flight = 0
        self._pause, self._resume_at = FIRST_PAUSE, 0.0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="global-offsets", daemon=True)
        self._thread.start()

    @property
    def unwritten(self) -> frozenset[bytes]:
        """The keys whose newest value may not be in the topic."""
        with self._changed:
            return frozenset(self._undecided | self._due.keys() | self._sent.keys())

    def write_tombstones(self, offsets: Offsets) -> None:
        """Write the tombstones of ``offsets``, which are about to be committed. Raises ``TimedOut``
        unless all arrive.
        """
        keys = {key for key, value in offsets.items() if value is None}
        with self._changed:
            self._undecided |= offsets.keys()
            self._refused.clear()
            self._due |= dict.fromkeys(keys)
            if keys:
                self._send()
                self._changed.notify_all()
                arrived = self._changed.wait_for(
                    lambda: self._refused & keys or not self._pending(keys), self._patience
                )
                if self._refused & keys or not arrived:
                    for key in keys:  # the next attempt reads their offsets
                        self._due.pop(key, None)
                    why = self.problem if self._refused & keys else None
                    raise TimedOut(
                        f"Could not write a tombstone to {self.topic}", why=why or "timed out"
                    )

    def write_values(self, offsets: Offsets) -> None:
        """Write everything but the tombstones, in the background: ``offsets`` are committed."""
        with self._changed:
            self._undecided -= offsets.keys()
            self._due |= {key: value for key, value in offsets.items() if value is not None}
            self._send_due()
            self._changed.notify_all()

    def settle(self, stored: StoredOffsets) -> None:
        """Write what the keys stand at of which that was not known: their transaction was in doubt,
        or a lease ended.
        """
        with self._changed:
            self.write_values({key: stored.value(key) for key in self._undecided})

    def close(self) -> None:
        """Wait for records in flight; ``unwritten`` has those that did not arrive."""
        with self._changed:
            self._refused.clear()
            self._send()
            self._changed.wait_for(
                lambda: self._refused or not (self._due or self._sent), min(self._patience, CLOSING)
            )
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._producer.purge()  # else the client lives on for what it may never deliver
        self._producer.flush(WAIT)

    # --------------------------------------------------------------------------- with the lock held

    def _pending(self, keys: set[bytes]) -> bool:
        return not keys.isdisjoint(self._due) or not keys.isdisjoint(self._sent)

    def _send_due(self) -> None:
        if time.monotonic() >= self._resume_at:
            self._send()

    def _send(self) -> None:
        from confluent_kafka import KafkaException

        for key in list(self._due):
            if self._in_flight >= MOST_IN_FLIGHT:
                return
            self._number += 1
            value, number = self._due[key], self._number
            try:
                self._producer.produce(
                    self.topic, value, key, on_delivery=partial(self._delivered, key, value, number)
                )
            except BufferError:
                return
            except KafkaException as e:
                self._refuse(key, e.args[0].str())
                if value is None:
                    del self._due[key]
                continue
            del self._due[key]
            self._sent[key] = number
            self._in_flight += 1

    def _refuse(self, key: bytes, why: str) -> None:
        self.failures += 1
        self.problem = why
        self._refused.add(key)
        self._resume_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    # -------------------------------------------------------------------------- on the thread's own

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._due or self._sent)
                if self._closed:
                    return
                self._send_due()
            self._producer.poll(WAIT)

    def _delivered(
        self, key: bytes, value: bytes | None, number: int, error: Any, _message: Any
    ) -> None:
        with self._changed:
            if self._closed:
                return
            self._in_flight -= 1
            newest = self._sent.get(key) == number
            if newest:
                del self._sent[key]
            if error is None:
                self.problem, self._pause = None, FIRST_PAUSE
            else:
                self._refuse(key, error.str())
                # a tombstone's commit has failed: the next attempt decides anew
                if newest and value is not None:
                    self._due.setdefault(key, value)
            self._changed.notify_all()

"""Slots with a producer for each partition on a real broker, without Spark: what frees a partition and who is fenced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from connectctl.ops.task_runtime.group.consumer_settings import ConsumerSettings
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from connectctl.ops.task_runtime.task.columnar_producer import ColumnarProducer
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from live.groupslots import PATIENCE, Slots
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
KINDS: dict[str, type[TaskProducer]] = {"librdkafka": TaskProducer, "batches": ColumnarProducer}
each_kind = pytest.mark.parametrize("kind", KINDS)
SESSION = {"session_timeout_ms": "6000", "heartbeat_interval_ms": "1500"}


@contextmanager
def zombie(slots: Slots, kind: str) -> Iterator[subprocess.Popen[str]]:
    """Slot 0, which has stopped itself with a transaction open for each partition that it has read."""
    given = [slots.bootstrap, slots.name, json.dumps(slots.settings.properties), str(slots.partitions), kind]
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    command, pipe = [sys.executable, "-m", "live.partitionzombie", *given], subprocess.PIPE
    with subprocess.Popen(command, text=True, env=environ, stdin=pipe, stdout=pipe) as process:
        try:
            eventually(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@pytest.mark.drawn
@each_kind
def test_a_zombie_is_fenced_in_every_partition_that_it_lost_and_joins_again(cluster: Sandbox, kind: str) -> None:
    with Slots.new(cluster) as slots:
        slots.with_settings(ConsumerSettings, **SESSION)
        slots.write()
        with zombie(slots, kind) as process:
            successor = slots.slot(1, partition_producer=KINDS[kind])
            # Its transactions have a time-out of two minutes: the same ids are what ends them.
            eventually(lambda: slots.seen() == slots.each_once)
            # A member that a slow machine kept from its heartbeats for six seconds comes back by itself.
            eventually(lambda: successor.assignment == slots.places)
            assert not slots.waits
            process.send_signal(signal.SIGCONT)
            eventually(lambda: len(successor.assignment) == slots.partitions // 2)
            slots.write()
            eventually(lambda: slots.seen() == slots.each_once)
            said = json.loads(process.communicate(timeout=PATIENCE)[0])
        assert (said["error"], successor.error) == (None, None)
        assert said["doubts"]
        assert slots.seen() == slots.each_once


@pytest.mark.drawn
@each_kind
def test_a_newer_attempt_of_the_slot_takes_what_was_pending_at_once_and_ends_the_older(
    cluster: Sandbox, kind: str
) -> None:
    with Slots.new(cluster) as slots:
        slots.write()
        with zombie(slots, kind) as process:
            newer = slots.slot(0, partition_producer=KINDS[kind])
            eventually(lambda: slots.seen() == slots.each_once)
            assert not slots.waits
            process.send_signal(signal.SIGCONT)
            slots.write()
            eventually(lambda: slots.seen() == slots.each_once)
            said = json.loads(process.communicate(timeout=PATIENCE)[0])
        assert (said["doubts"], said["error"], newer.error) == ([], None, None)
        assert not newer.ended


@pytest.mark.drawn
@each_kind
def test_partitions_move_between_slots_with_their_producers(cluster: Sandbox, kind: str) -> None:
    with Slots.new(cluster) as slots:
        first = slots.slot(0, partition_producer=KINDS[kind])
        eventually(lambda: first.assignment == slots.places)
        second = slots.slot(1, partition_producer=KINDS[kind])
        for _ in range(5):
            slots.write()
        eventually(lambda: len(second.assignment) == slots.partitions // 2)
        slots.write()
        eventually(lambda: slots.seen() == slots.each_once)
        assert (first.task.stats.doubts, second.task.stats.doubts) == ([], [])
        second.close()
        assert second.result is not None
        assert second.result.reason is EndReason.STOPPED
        assert slots.seen() == slots.each_once

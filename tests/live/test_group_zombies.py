"""KIP-447's zombies: a task that sleeps past its session with a transaction open, and then wants to
commit it.
"""

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
from live.groupslots import PATIENCE, DynamicSettings, Slots
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SESSION = {"session_timeout_ms": "6000", "heartbeat_interval_ms": "1500"}
KINDS = {
    "classic static": (ConsumerSettings, SESSION),
    "classic dynamic": (
        DynamicSettings,
        {**SESSION, "partition_assignment_strategy": "cooperative-sticky"},
    ),
    "KIP-848": (ConsumerSettings, {"group_protocol": "consumer"}),
}


@contextmanager
def zombie(slots: Slots, *, columnar: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A slot that has stopped itself."""
    settings = slots.settings
    given = [slots.bootstrap, slots.name, str(isinstance(settings, DynamicSettings)), str(columnar)]
    command = [
        sys.executable,
        "-m",
        "live.zombieslot",
        *given,
        json.dumps(settings.properties),
        str(slots.partitions),
    ]
    path = str(Path(__file__).parent.parent)
    environ = os.environ | {"PYTHONPATH": path}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, env=environ, stdin=pipe, stdout=pipe) as process:
        try:
            eventually(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@pytest.mark.parametrize(
    ("kind", "columnar"),
    [
        ("classic static", False),
        ("classic dynamic", False),
        ("classic dynamic", True),
        # the brokers' session time-out of 45 s
        pytest.param("KIP-848", False, marks=pytest.mark.slow),
        pytest.param("KIP-848", True, marks=pytest.mark.slow),
    ],
)
def test_a_zombie_that_sleeps_past_its_session_writes_nothing_that_readers_see(
    cluster: Sandbox, kind: str, columnar: bool
) -> None:
    with Slots.new(cluster) as slots:
        settings, properties = KINDS[kind]
        slots.with_settings(settings, **properties)
        slots.write()
        with zombie(slots, columnar=columnar) as process:
            successor = slots.slot(1)
            eventually(lambda: successor.assignment == slots.places)
            # of all that the zombie has read
            eventually(lambda: len(slots.committed()) == slots.partitions)
            process.send_signal(signal.SIGCONT)
            eventually(lambda: slots.seen() == slots.each_once)
            slots.write()
            eventually(lambda: slots.seen() == slots.each_once)
            said = json.loads(process.communicate(timeout=PATIENCE)[0])
        print(kind, columnar, said)
        assert (said["error"], successor.error) == (None, None)
        assert said["doubts"]
        assert slots.seen() == slots.each_once

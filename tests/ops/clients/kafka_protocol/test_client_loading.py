from __future__ import annotations

import subprocess
import sys

MANY_AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Barrier
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient

together = Barrier(6)
modules = ("kafka.net.manager", "kafka.protocol.metadata", "kafka.protocol.admin") * 2

def load(name):
    together.wait()
    KafkaProtocolClient({}, timeout=1)
    import_module(name)

with ThreadPoolExecutor(6) as pool:
    list(pool.map(load, modules))
print("loaded")
"""


def test_many_threads_may_open_edges_at_once() -> None:
    # kafka-python's modules import each other in circles, and two threads that load them get stuck
    # on each other.
    ran = subprocess.run(
        [sys.executable, "-c", MANY_AT_ONCE],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("loaded\n", 0), ran.stderr

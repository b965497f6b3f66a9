"""Runs a connector in a unit test, without a cluster: by the loop of a real task, with Kafka in
memory.

``run_source``, ``run_sink`` and ``run_transform`` take the class, its configuration, and what is
there before: offsets, and the records of topics. They give every commit with its records and
offsets. ``fail_at`` asks for failures: a crash before or after a commit, a commit that is not
answered, a poll to be repeated, a rebalance. ``check_exactly_once`` asks for each of them at each
occasion, and compares what was committed. How to: docs/how-to/test-connectors.md.

Records are encoded and partitioned by the producer of a real task, and decoded for who reads them.

What is in memory has one task at a time and no network: no other producer fences the task, no
request takes time, and topics are neither created nor refused. ``connectctl sandbox up`` is the
real thing.
"""

from __future__ import annotations

from connectctl.ops.task_runtime.spi.transform import Record
from connectctl.ops.task_runtime.testing.exactly_once import check_exactly_once
from connectctl.ops.task_runtime.testing.faults import Fault
from connectctl.ops.task_runtime.testing.results import Commit, GroupRun, SinkRun, SourceRun
from connectctl.ops.task_runtime.testing.sink import run_sink
from connectctl.ops.task_runtime.testing.source import run_source
from connectctl.ops.task_runtime.testing.transform import run_transform

__all__ = [
    "Commit",
    "Fault",
    "GroupRun",
    "Record",
    "SinkRun",
    "SourceRun",
    "check_exactly_once",
    "run_sink",
    "run_source",
    "run_transform",
]

"""The work of a task’s attempt."""

from __future__ import annotations

from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.job.config_topic_records import Generation
from connectctl.ops.task_runtime.spi.delivery_settings import delivery_settings


def work(path: str) -> TaskSpec:
    client = {"bootstrap.servers": "127.0.0.1:1"}
    return TaskSpec(
        "g",
        "c",
        path,
        {},
        Generation("t", "c", 0),
        client,
        client,
        "offs",
        None,
        delivery_settings({}),
        1.0,
        1.0,
    )

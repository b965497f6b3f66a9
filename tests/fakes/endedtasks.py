"""Runs of jobs without Spark: their tasks end at once. All else of a run is the real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from connectctl.ops.task_runtime.attempt.task_attempt import TaskReport
from connectctl.ops.task_runtime.job.generation import Leader, read_config_topic
from connectctl.ops.task_runtime.job.job_context import SparkJobContext
from connectctl.ops.task_runtime.job.job_file import Until
from connectctl.ops.task_runtime.job.planned_run import PlannedRun
from connectctl.ops.task_runtime.job.runner import JobResult, JobRunner
from connectctl.ops.task_runtime.job.scheduler import FinalStatus, JobRun
from connectctl.ops.task_runtime.job.worker_takeover import await_stopped

NOTHING: Any = None


class EndedTasks(JobRunner):
    """Tasks that end as soon as they are run; the connector of workers is stopped before."""

    def start(self) -> Any:
        if self.ready.take_over:
            await_stopped(self)

    def run(self) -> JobResult:
        self.start()
        self.own_tasks = 1
        made = JobRun({0: {}}, Until(), NOTHING)
        made.totals[0].add(TaskReport(0, "ended"))
        return JobResult(FinalStatus.ENDED, made, 1.0, None)


def without_spark(patch: pytest.MonkeyPatch, timeout: float = 1.0) -> list[PlannedRun]:
    """Runs of jobs open no Spark, and wait for ``timeout`` seconds; returns those that were
    opened.
    """
    found: list[PlannedRun] = []

    @contextmanager
    def opened(context: SparkJobContext) -> Iterator[None]:
        run = context.planned
        found.append(run)
        note = run.access.clients.note
        context.runner = EndedTasks(run.scene, run.job, NOTHING, timeout, note=note)
        yield

    patch.setattr(SparkJobContext, "opened", opened)
    patch.setattr(
        Leader,
        "_read_state",
        lambda self, name: read_config_topic(self.kafka, self.topic, name, timeout),
    )
    return found

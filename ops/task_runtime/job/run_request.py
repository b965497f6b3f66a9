"""What a run is asked for, and what it is made from: enough to plan the same run again from a saved
plan.

A saved plan names files and has their SHA-256, never what is in them: job files may hold passwords.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.task_runtime.job.local_plugin import sources_of

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.job_file import Job

CONTEXT_CONF = "spark.conf of the context"
"""The name in ``made_from`` of what the context gives Spark."""
WORKERS_CONFIG = "the configuration on the workers"
"""The name in ``made_from`` of the configuration that a job takes from its connector on the
workers.
"""
LEASE = 3600.0
"""Seconds that a Spark task of a run lasts at most, where nothing else is asked for."""


@dataclass(frozen=True)
class RunRequest:
    """The options of ``connectctl run``. ``job`` is the path of the job file; ``lease`` and
    ``patience`` are in seconds.

    None is what was not given: ``master`` and ``patience`` are the job file's or the context's
    then. ``metrics`` is the path of the file for metrics.
    """

    job: str
    master: str | None = None
    take_over: bool = False
    lease: float = LEASE
    patience: float | None = None
    metrics: str | None = None

    def absolute(self) -> RunRequest:
        """The same from any working directory."""
        metrics = str(Path(self.metrics).absolute()) if self.metrics is not None else None
        return replace(self, job=str(Path(self.job).absolute()), metrics=metrics)


def files_of(request: RunRequest, job: Job, module: str) -> dict[str, str]:
    """The SHA-256 of the job file, of its plugins, and of the files of ``module`` beside it, by
    absolute path.
    """
    found = {request.absolute().job: job.sha256 or ""}
    beside = sources_of(module, job.directory) if module and job.directory is not None else ()
    return found | {str(path): sha256_of(path.read_bytes()) for path in (*job.plugins, *beside)}


def settings_of(job: Job, config: Mapping[str, str], conf: Mapping[str, object]) -> dict[str, str]:
    """The SHA-256 of what is in no file: of ``config`` where the job has it from the workers, of
    the context's ``conf``.

    A secret that the context only refers to counts as the reference.
    """
    found: dict[str, Mapping[str, object]] = {CONTEXT_CONF: conf} if conf else {}
    if config != job.config:
        found[WORKERS_CONFIG] = config
    return {name: sha256_of(_text(values).encode()) for name, values in found.items()}


def _text(values: Mapping[str, object]) -> str:
    return json.dumps({name: str(value) for name, value in values.items()}, sort_keys=True)


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

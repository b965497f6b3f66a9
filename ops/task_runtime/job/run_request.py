"""Defines the request of a run, and hashes its inputs, so that a saved plan can be planned again.

A saved plan contains the paths and the SHA-256 of files, never their content: job files may contain
passwords.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.task_runtime.job.local_plugin import sources_of

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.job_file import Job

CONTEXT_CONF = "spark.conf of the context"
"""The name in ``made_from`` of the context's Spark configuration."""
WORKERS_CONFIG = "the configuration on the workers"
"""The name in ``made_from`` of the connector's configuration on the workers, if the job uses it."""
LEASE = 3600.0
"""The default of the longest time of a Spark task of a run, in seconds."""


@dataclass(frozen=True)
class RunRequest:
    """The options of ``connectctl run``. ``job`` is the path of the job file; ``lease`` and
    ``patience`` are in seconds.

    ``master`` and ``patience`` are None if they were not given: then those of the job file or the
    context apply. ``metrics`` is the path of the file for metrics.
    """

    job: str
    master: str | None = None
    take_over: bool = False
    lease: float = LEASE
    patience: float | None = None
    metrics: str | None = None

    def absolute(self) -> RunRequest:
        """Return the request with absolute paths."""
        metrics = str(Path(self.metrics).absolute()) if self.metrics is not None else None
        return replace(self, job=str(Path(self.job).absolute()), metrics=metrics)


def files_of(request: RunRequest, job: Job, modules: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of the job file, of its plugins, and of the files of ``modules`` in its
    directory, by absolute path.
    """
    found = {request.absolute().job: job.sha256 or ""}
    directory = job.directory
    beside = [f for m in modules for f in sources_of(m, directory)] if directory is not None else []
    return found | {str(path): sha256_of(path.read_bytes()) for path in (*job.plugins, *beside)}


def settings_of(job: Job, config: Mapping[str, str], conf: Mapping[str, object]) -> dict[str, str]:
    """Return the SHA-256 of inputs that are not in files: of ``config`` if it is that of the
    workers, and of the context's ``conf``.

    A secret that the context refers to is hashed as the reference.
    """
    found: dict[str, Mapping[str, object]] = {CONTEXT_CONF: conf} if conf else {}
    if config != job.config:
        found[WORKERS_CONFIG] = config
    return {name: sha256_of(_text(values).encode()) for name, values in found.items()}


def _text(values: Mapping[str, object]) -> str:
    return json.dumps({name: str(value) for name, value in values.items()}, sort_keys=True)


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""Sends plugins to the executors of a Spark session."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.clients.spark.executors import kept_directory
from connectctl.ops.task_runtime.job.local_plugin import archive_of
from connectctl.ops.task_runtime.spi.converters import converter_modules

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.job_file import Job
    from pyspark.sql import SparkSession


def plugin_archives(job: Job, path: str) -> tuple[Path, ...]:
    """Return the archives with the module of ``path`` (``module:Class``) and those of the job's
    converters, of modules in the directory of the job file.
    """
    if job.directory is None:
        return ()
    modules = dict.fromkeys([path.partition(":")[0], *converter_modules(job.config)])
    made = (archive_of(module, job.directory, kept_directory()) for module in modules)
    return tuple(archive for archive in made if archive is not None)


def ship(spark: SparkSession, archives: Sequence[Path]) -> None:
    """Send wheels and zips to all executors for imports. Spark accepts a wheel only with the suffix
    ``.zip``.
    """
    for archive in archives:
        path = archive
        if archive.suffix == ".whl":
            path = kept_directory() / f"{archive.stem}.zip"
            shutil.copyfile(archive, path)
        spark.addArtifacts(str(path), pyfile=True)

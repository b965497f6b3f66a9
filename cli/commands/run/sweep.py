"""``connectctl run JOB --sweep``: find orphans of an archive, plan, confirm, and remove them as a
run of the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli import flow
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.connectors.parquet_archive.connector import (
    DIRECTORY,
    ParquetArchive,
)
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_operation import Sweep
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import ArchiveLocation
from connectctl.ops.task_runtime.job import job_file
from connectctl.ops.task_runtime.job.local_plugin import import_from
from connectctl.ops.task_runtime.spi.delivery_settings import target_cluster
from connectctl.ops.task_runtime.spi.plugins import connector_class, importable, path_of
from connectctl.ops.task_runtime.spi.subscription import subscription

if TYPE_CHECKING:
    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.session import Session


def sweep_job(
    session: Session, path: Path, given: Mapping[str, Any], options: ApplyOptions
) -> None:
    """Remove the orphans of the job's archive. ``given`` are options of a run, which have no effect
    here.

    Raises ``BadInput`` for those and for a job that is not an archive, and what
    ``ArchiveSweeper.orphans`` raises.
    """
    if unused := [name for name, value in given.items() if value]:
        raise BadInput(f"{unused[0]} has no effect with --sweep", next_step=f"Remove {unused[0]}.")
    flow.perform(session, Sweep(), _location(path, session.kafka), options)


def _location(path: Path, kafka: Any) -> ArchiveLocation:
    job = job_file.read(path)
    importable(job.plugins)
    if job.directory is not None:
        import_from(job.directory)
    kind = path_of(job.config.get("connector.class", ""))
    connector = connector_class(kind, job.directory)
    if not issubclass(connector, ParquetArchive):
        raise BadInput(
            f"--sweep requires a ParquetArchive, and {job.name} is not one",
            why=f"connector.class is {job.config['connector.class']}",
            next_step="Give the job file of a ParquetArchive.",
        )
    if problems := connector().validate(job.config):
        raise BadInput(next(iter(problems.values()))[0], next_step=f"Correct {path}.")
    if target_cluster(job.config, str(kafka.bootstrap)):
        raise BadInput(
            f"The manifest of {job.name} is in another Kafka cluster",
            why="producer.override names it",
            next_step="Give the context of that cluster, and a job file without that override.",
        )
    group = subscription(job.name, job.config).consumer.group
    return ArchiveLocation(job.name, job.config[DIRECTORY], group)

"""``connectctl run JOB --sweep``: find orphans of an archive, plan, confirm, and remove them as a run of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.cli.plan_file import check_fresh
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.saved_plan import check_where
from connectctl.ops.task_runtime.connectors.parquet_archive.connector import DIRECTORY, ParquetArchive
from connectctl.ops.task_runtime.connectors.parquet_archive.orphans import ArchiveSweeper
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import (
    SHOWN,
    ArchiveLocation,
    RemoveOrphans,
    SweepContext,
    plan_sweep,
)
from connectctl.ops.task_runtime.job import job_file
from connectctl.ops.task_runtime.job.local_plugin import import_from
from connectctl.ops.task_runtime.spi.delivery_settings import target_cluster
from connectctl.ops.task_runtime.spi.plugins import connector_class, importable, path_of
from connectctl.ops.task_runtime.spi.subscription import subscription

if TYPE_CHECKING:
    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.session import Session
    from connectctl.ops.core.plan import Plan


def sweep_job(session: Session, path: Path, given: Mapping[str, Any], options: ApplyOptions) -> None:
    """Remove the orphans of the job's archive. ``given`` are options of a run, which have no effect here.

    Raises ``BadInput`` for those and for a job that is not an archive, and what ``ArchiveSweeper.orphans`` raises.
    """
    if unused := [name for name, value in given.items() if value]:
        raise BadInput(f"{unused[0]} has no effect with --sweep", next_step=f"Remove {unused[0]}.")
    sweeper = _sweeper(session, _location(path, session.kafka))
    plan = _planned(sweeper)
    _perform(session, sweeper, plan, options)


def sweep_saved(session: Session, saved: Plan, options: ApplyOptions) -> None:
    """Execute a plan that a dry run printed. Raises ``Refused`` if it would be different now."""
    check_where((saved.cluster_id, saved.group_id), (session.kafka.cluster_id(), session.group_id))
    if not saved.steps:
        apply.apply(session, saved, None, options)
        return
    sweeper = _sweeper(session, _location_in(saved))
    check_fresh(saved, _planned(sweeper))
    _perform(session, sweeper, saved, options)


def sweep_again(session: Session, plan: Plan) -> tuple[SweepContext, str, str]:
    """Return the step context of an interrupted sweep, with the ids of Kafka cluster and Connect group."""
    return _context(_sweeper(session, _location_in(plan))), session.kafka.cluster_id(), session.group_id


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


def _location_in(plan: Plan) -> ArchiveLocation:
    step = plan.steps[0]
    assert isinstance(step, RemoveOrphans)
    return step.location


def _sweeper(session: Session, location: ArchiveLocation) -> ArchiveSweeper:
    return ArchiveSweeper(location, session.group_id, session.kafka, session.group_offsets)


def _planned(sweeper: ArchiveSweeper) -> Plan:
    return plan_sweep(sweeper.kafka.cluster_id(), sweeper.group_id, sweeper.location, sweeper.orphans())


def _context(sweeper: ArchiveSweeper) -> SweepContext:
    return SweepContext(find=sweeper.names, remove=sweeper.remove)


def _perform(session: Session, sweeper: ArchiveSweeper, plan: Plan, options: ApplyOptions) -> None:
    apply.apply(session, plan, _context(sweeper), options)
    if options.dry_run and options.output.for_people:
        files = [each for step in plan.steps if isinstance(step, RemoveOrphans) for each in step.files]
        for each in files[:SHOWN]:
            terminal.say(f"     {each.name} ({each.bytes:,} bytes)")
        if len(files) > SHOWN:
            terminal.say(f"     … and {len(files) - SHOWN:,} more; --dry-run -o json has them all.")

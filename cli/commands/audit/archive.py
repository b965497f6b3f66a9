"""``connectctl audit --archive DIR --manifest TOPIC``: audits the archive with its group and its
inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.cli.views import audit_archive as view
from connectctl.ops.audit.archive import ArchiveAudit, archive_partitions, to_read
from connectctl.ops.audit.archive_findings import findings_of_archive
from connectctl.ops.audit.verdict import AuditVerdict, verdict_of
from connectctl.ops.clients.kafka_protocol.settled_positions import positions
from connectctl.ops.clients.spark.session import job_failures, require
from connectctl.ops.connect.internal_topics import MANIFEST
from connectctl.ops.connect.sink_group import sink_group
from connectctl.ops.core.errors import BadInput
from connectctl.ops.jobs import audit_archive as jobs
from connectctl.ops.jobs.audit import Cluster
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.cluster.open_transactions import settled
from connectctl.ops.task_runtime.connectors.parquet_archive.files import NAME, ArchiveDirectory
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import (
    ArchivedFile,
    described,
    newest_records,
)


def audit_archive(
    session: Session,
    directory: str | None,
    manifest: str | None,
    group: str | None,
    inputs: Sequence[str],
    others: Mapping[str, Any],
    *,
    patience: float,
    output: Output,
) -> None:
    """Print the audit; exits with 1 if it did not pass. ``others`` are options and arguments that
    exclude it.

    Raises ``BadInput`` for those, and the errors of reading the manifest, the directory and the
    topics.
    """
    if directory is None:
        raise BadInput("--manifest requires --archive", next_step="Give --archive DIR.")
    if given := [name for name, value in others.items() if value]:
        raise BadInput(
            f"{given[0]} cannot be combined with --archive", next_step=f"Leave out {given[0]}."
        )
    if not manifest:
        raise BadInput(
            "--archive requires --manifest", next_step="Give --manifest CONNECTOR-archive."
        )
    if group is None and not manifest.endswith(MANIFEST):
        raise BadInput(
            f"The consumer group of the archive {manifest} is unknown",
            next_step="Give --group GROUP.",
        )
    require()
    group = group or sink_group(manifest.removesuffix(MANIFEST), {})
    found = _observe(session, directory, manifest, group, inputs, patience)
    findings = findings_of_archive(found)
    verdict = verdict_of(findings)
    data = view.as_json(found, verdict, findings)
    terminal.emit("ArchiveAudit", data, output, lambda wide: view.show(found, verdict), findings)
    if verdict is not AuditVerdict.EXACTLY_ONCE:
        raise typer.Exit(1)


def _observe(
    session: Session,
    directory: str,
    manifest: str,
    group: str,
    inputs: Sequence[str],
    patience: float,
) -> ArchiveAudit:
    kafka: Any = session.kafka
    topics = sorted({*inputs, *(each.topic for each in _files(kafka, manifest, patience))})
    existing = those_that_exist(kafka, *topics) if topics else ()
    if unknown := [name for name in inputs if name not in existing]:
        raise BadInput(
            f"Topic not found: {unknown[0]}", next_step="Check --from.", code="unknown-topic"
        )
    # Offsets committed before the manifest is read are in it: both are written in one transaction.
    before = positions(kafka, group, sorted(existing), patience)
    files = _files(kafka, manifest, patience)
    after = positions(kafka, group, sorted(existing), patience)
    _, extents = settled(lambda: kafka.extents(existing), patience) if existing else ({}, {})
    partitions = archive_partitions(files, extents, before, after)
    listed = {name: facts.size for name, facts in ArchiveDirectory(directory).listed()}
    sizes = {each.name: listed[each.name] for each in files if each.name in listed}
    strays = [size for name, size in listed.items() if name not in sizes and NAME.fullmatch(name)]
    cluster = Cluster(session.client_properties, session.timeout)
    with job_failures("audit the archive", session.spark_log):
        spark = session.spark_session
        rows = jobs.row_frame(spark, directory, [each for each in files if each.name in sizes])
        contents = jobs.contents(rows)
        missing = jobs.missing(spark, cluster, list(to_read(partitions, contents)), rows)
    found = (partitions, sizes, contents, missing, (len(strays), sum(strays)))
    return ArchiveAudit(kafka.cluster_id(), directory, manifest, group, *found)


def _files(kafka: Any, manifest: str, patience: float) -> tuple[ArchivedFile, ...]:
    return described(newest_records(kafka, manifest, max(patience, kafka.timeout)))

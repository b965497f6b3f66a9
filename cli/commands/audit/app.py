"""``connectctl audit``: proves that exactly-once held, or reports the violations."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli import completed_names, html_file
from connectctl.cli.options import HtmlOption, OutputOption, PatienceOption
from connectctl.cli.output import terminal
from connectctl.cli.output.progress_bar import progress
from connectctl.cli.output.terminal import Output
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.wait import OPEN_TRANSACTIONS_PATIENCE
from connectctl.ops.operations.offsets.engine_choice import AUDIT_THRESHOLD, Choice

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.audit.plan import AuditRequest

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def audit(
    ctx: typer.Context,
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC...",
            help="Topics to audit; none with --archive.",
            autocompletion=completed_names.topics,
        ),
    ] = None,
    sequence: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Sequence number of the source's records: '$.seq', 'key:$.seq', header:NAME, or "
            "text:REGEX with a group.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Scope of the sequence: the same forms, key, or partition.  [default: key]",
        ),
    ] = None,
    converters: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Configuration with value.converter or key.converter: records in Avro, Protobuf "
            "or JSON Schema.",
        ),
    ] = None,
    connector: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Connector that wrote the records: infers both, and checks its committed offsets.",
            autocompletion=completed_names.connectors,
        ),
    ] = None,
    offset_field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Field of its source offset that holds the number of the last record.",
        ),
    ] = None,
    first: Annotated[
        int | None, typer.Option(metavar="N", help="First number of each source partition.")
    ] = None,
    together: Annotated[
        bool,
        typer.Option(
            "--together", help="Treat the topics as one stream instead of one stream each."
        ),
    ] = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="TOPIC",
            help="Input topics of the transform that wrote TOPIC.",
            autocompletion=completed_names.topics,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="Group of the transform; inputs count up to its committed offsets.",
        ),
    ] = None,
    archive: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Audit the ParquetArchive in this directory, a path or a URI; on Spark.",
        ),
    ] = None,
    manifest: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help="Manifest topic of --archive: CONNECTOR-archive."),
    ] = None,
    subset: Annotated[
        bool,
        typer.Option(
            "--subset", help="The transform may drop records: only duplicates are errors."
        ),
    ] = False,
    headers_only: Annotated[
        bool, typer.Option("--headers-only", help="Check transactions only; read no records.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start of the audit: a time, or offset:N.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the audit: a time, or offset:N.")
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for all violations, as Parquet files."),
    ] = None,
    html: HtmlOption = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Violations of each kind to show.")
    ] = 20,
    patience: PatienceOption = OPEN_TRANSACTIONS_PATIENCE,
    engine: Annotated[
        Choice,
        typer.Option(
            metavar="ENGINE",
            help=f"local, spark, or auto: spark from {AUDIT_THRESHOLD:,} records on.",
        ),
    ] = Choice.AUTO,
    output: OutputOption = Output.TABLE,
) -> None:
    """Prove from the topics that every source record is present, once and in order, or show which
    records are not.

    \b
    Examples:
      connectctl audit orders --sequence '$.seq'                    counted within the record key
      connectctl audit orders --sequence '$.seq' --by '$.task' --first 0
      connectctl audit orders --sequence '$.seq' --converters orders.yaml   values of a Schema Registry
      connectctl audit verifiable --connector verifiable            both inferred; its source offsets compared
      connectctl audit clean --from orders --group connect-cleaner   a transform: each key as often as in the inputs
      connectctl audit --archive /data/archive --manifest orders-archive   files, rows and offsets of a ParquetArchive
      connectctl audit orders --headers-only                        transactions, markers and producers alone
      connectctl audit orders --sequence header:seq --evidence bad --html orders.html

    Two reads must agree: batch headers show which transactions were committed, aborted, left open,
    or ended differently in different partitions, and whether batches are missing; committed records
    show duplicates, gaps and order. It does not matter which application wrote them. The audit
    covers the topics up to their end when it began, and waits up to --patience for transactions
    that were open then. Exit code 0: exactly once and in order. 1: not so, or undecided (a finding
    says why). With --headers-only records are not checked, and 0 means that the headers are in
    order.
    """
    names = tuple(dict.fromkeys(name for some in inputs or () for name in some.split(",") if name))
    session: Session = ctx.obj
    if archive is not None or manifest is not None:
        from connectctl.cli.commands.audit.archive import audit_archive

        others = {
            "TOPIC": topics,
            "--sequence": sequence,
            "--by": by,
            "--converters": converters,
            "--connector": connector,
            "--offset-field": offset_field,
            "--first": first is not None,
            "--together": together,
            "--subset": subset,
            "--headers-only": headers_only,
            "--since": since,
            "--until": until,
            "--evidence": evidence,
            "--html": html,
            "--engine local": engine is Choice.LOCAL,
        }
        audit_archive(
            session, archive, manifest, group, names, others, patience=patience, output=output
        )
        return
    if not topics:
        raise BadInput(
            "No topic was given",
            next_step="Name the topics to audit, or give --archive and --manifest.",
        )
    from connectctl.ops.audit import field_extractor, plan

    request = plan.AuditRequest(
        topics=tuple(dict.fromkeys(topics)),
        sequence=field_extractor.sequence_spec(sequence) if sequence else None,
        by=field_extractor.by_spec(by) if by else None,
        together=together,
        first=first,
        connector=connector,
        offset_field=offset_field,
        headers_only=headers_only,
        since=plan.bound(since, "--since") if since else None,
        until=plan.bound(until, "--until") if until else None,
        shown=limit,
        inputs=names,
        group=group,
        subset=subset,
        converters=_converters_in(converters) if converters else {},
    )
    plan.check(request)
    _check(evidence)
    _audit(session, request, engine, patience, evidence, html, output)


def _audit(
    session: Session,
    request: AuditRequest,
    engine: Choice,
    patience: float,
    evidence: Path | None,
    html: Path | None,
    output: Output,
) -> None:
    from connectctl.cli.views import audit as audit_view
    from connectctl.ops.audit.to_json import as_json
    from connectctl.ops.jobs.audit_execution import AuditAccess, audit_topics
    from connectctl.ops.operations.offsets.sources import sources_of

    html_file.check(html)
    began = time.time()
    kafka: Any = session.kafka
    access = AuditAccess(
        kafka,
        session.client_properties,
        session.timeout,
        lambda: sources_of(session, 5.0)[0],
        lambda: session.spark_session,
        session.spark_log,
        progress,
    )
    found = audit_topics(access, request, engine, patience, evidence)
    if html:
        from connectctl.cli.views import audit_html, html_origin

        html_file.write(
            html, audit_html.page(found, html_origin.origin(session, began, found.cluster_id))
        )
    terminal.emit(
        "Audit", as_json(found), output, lambda wide: audit_view.show(found, wide), found.findings
    )
    if not found.passed:
        raise typer.Exit(1)


def _converters_in(file: Path) -> dict[str, str]:
    from connectctl.ops.clients.secrets import reveal
    from connectctl.ops.jobs.audit_converters import converters_in

    return converters_in(file, reveal)


def _check(evidence: Path | None) -> None:
    """Raise ``BadInput`` for a directory that cannot be used, before connecting."""
    if evidence is not None and evidence.exists() and not evidence.is_dir():
        raise BadInput(f"--evidence {evidence} is not a directory", next_step="Name a directory.")
    if evidence is not None and evidence.is_dir() and any(evidence.iterdir()):
        raise BadInput(
            f"--evidence {evidence} is not empty",
            next_step="Name an empty directory, or a new one.",
        )

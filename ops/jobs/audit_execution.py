"""An audit of topics: observe topics and offsets, run the jobs here or on Spark, evaluate."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from connectctl.ops.audit import plan
from connectctl.ops.audit.duplicate_ranges import resolve
from connectctl.ops.audit.input_partitions import InputPartition, input_partitions
from connectctl.ops.audit.offset_positions import (
    Inferred,
    Offsets,
    Pair,
    compared,
    inferred,
    positions,
)
from connectctl.ops.audit.plan import AuditRequest
from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.verdict import Audit, findings_of, matching, unseen
from connectctl.ops.clients.kafka_protocol import settled_positions
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.partition_offsets import offsets_at
from connectctl.ops.clients.spark import session as spark_session
from connectctl.ops.clients.spark.session import job_failures
from connectctl.ops.core.errors import BadInput, did_you_mean
from connectctl.ops.jobs.audit import Cluster, reader
from connectctl.ops.jobs.audit_inputs import Comparison
from connectctl.ops.jobs.audit_runner import AuditWork, locally, on_spark
from connectctl.ops.jobs.audit_sequences import Wanted
from connectctl.ops.kafka.group_positions import GroupPositions
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.cluster.open_transactions import settled
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.engine_choice import AUDIT_THRESHOLD, Choice
from connectctl.ops.operations.offsets.incomplete import check_findings
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery


@dataclass(frozen=True)
class AuditAccess:
    """The clients of an audit. ``sources`` and ``spark`` open what only some audits need;
    ``progress`` draws a bar.
    """

    kafka: Kafka
    properties: dict[str, Any]
    timeout: float
    sources: Callable[[], Sources]
    spark: Callable[[], Any]
    spark_log: Path
    progress: Callable[[str], AbstractContextManager[Callable[[float, float], None]]]


def audit_topics(
    access: AuditAccess,
    request: AuditRequest,
    engine: Choice,
    patience: float,
    evidence: Path | None = None,
) -> Audit:
    """Return the audit of ``request``: read topics and offsets, run the jobs, evaluate."""
    kafka = access.kafka
    _known(kafka, request)
    config, before = _offsets(access, request)
    guess = inferred(config) if request.connector else None
    positions_before = _group_positions(kafka, request, patience)
    spans = _spans(kafka, request, patience)
    inputs = _inputs(kafka, request, spans, positions_before, patience)
    _, after = _offsets(access, request) if request.connector else (None, before)
    compared = _compared(request, guess, before, after)
    if guess is not None and not request.headers_only:
        request = replace(
            request, sequence=request.sequence or guess.sequence, by=request.by or guess.by
        )
    work, unread = _work(
        Cluster(access.properties, access.timeout),
        request,
        spans,
        compared,
        guess,
        engine,
        evidence,
        inputs,
    )
    summary = _run(access, work, engine)
    wanted = work.comparison.wanted if work.comparison else work.wanted
    if wanted is not None and wanted.sequence is not None:
        resolve(summary, reader(work.cluster, wanted))
    if compared is not None and work.wanted and request.sequence is not None:
        compared = matching(summary, compared)
        if all(span.start == 0 for span in spans):
            for totals in unseen(summary, compared, request.first):
                summary.add(totals)

    found = Audit(
        cluster_id=kafka.cluster_id(),
        request=request,
        summary=summary,
        now=time.time(),
        offsets=compared,
        why_no_sequence=guess.why if guess else None,
        unread=unread,
        positions=positions(before, after) if guess and guess.lines and _whole(request) else None,
        inputs=inputs.partitions if inputs else None,
    )
    return replace(found, findings=findings_of(found))


def _known(kafka: Kafka, request: AuditRequest) -> None:
    topics = (*request.topics, *request.inputs)
    existing = those_that_exist(kafka, *topics)
    for topic in topics:
        if topic not in existing:
            unseen = "Check its name, and that this principal has Describe on it."
            hint = did_you_mean(topic, kafka.topic_names(), unseen)
            raise BadInput(f"Topic not found: {topic}", next_step=hint, code="unknown-topic")


def _offsets(
    access: AuditAccess, request: AuditRequest
) -> tuple[dict[str, str] | None, list[Pair]]:
    """Return the connector's configuration, and its source partitions with their effective offsets."""
    if not request.connector:
        return None, []
    sources = access.sources()
    snapshot = observe(sources, OffsetsQuery((request.connector,)))
    found = assemble(snapshot, OffsetsQuery((request.connector,)))
    check_findings(
        (each for each in found.findings if each.id != "OFFSETS009"), snapshot, request.connector
    )
    configured = snapshot.configs.connectors.get(request.connector) if snapshot.configs else None
    pairs: list[Pair] = [
        (each.key.partition, each.effective)
        for one in found.connectors
        for each in one.offsets
        if each.effective
    ]
    return (dict(configured.config) if configured else None), pairs


def _compared(
    request: AuditRequest, guess: Inferred | None, before: list[Pair], after: list[Pair]
) -> Offsets | None:
    if guess is None or request.headers_only:
        return None
    if guess.lines and request.offset_field is None:
        return Offsets()  # compared by their length
    if not _whole(request):
        return Offsets(why="only a part of the topics is audited")
    return compared(before, after, request.offset_field or guess.member)


def _whole(request: AuditRequest) -> bool:
    return request.since is None and request.until is None


def _spans(kafka: Kafka, request: AuditRequest, patience: float) -> list[PartitionRange]:
    """Return the spans to audit, after open transactions had ``patience`` seconds to end."""

    def offsets(bound: plan.Bound | None) -> plan.Offsets | None:
        if bound is None:
            return None
        if bound.timestamp is not None:
            return offsets_at(kafka, request.topics, bound.timestamp)
        return {
            topic: dict.fromkeys(topic_partitions, bound.offset or 0)
            for topic, topic_partitions in began.items()
        }

    began, now = settled(lambda: kafka.extents(request.topics), patience)
    return plan.spans(
        began, now, _policies(kafka, request.topics), offsets(request.since), offsets(request.until)
    )


def _work(
    cluster: Cluster,
    request: AuditRequest,
    spans: list[PartitionRange],
    compared: Offsets | None,
    guess: Inferred | None,
    engine: Choice,
    evidence: Path | None,
    inputs: _Inputs | None = None,
) -> tuple[AuditWork, str | None]:
    """Return the work of the jobs, and the reason why they do not read records if they should."""
    comparison = inputs.comparison if inputs else None
    size = sum(span.size for span in (comparison.ranges if comparison else spans))
    wanted = None
    unread = None
    if (
        engine is Choice.AUTO
        and size >= AUDIT_THRESHOLD
        and not spark_session.installed()
        and not request.headers_only
    ):
        unread = (
            f"{size:,} records are read with Spark, which is not installed: pip install "
            "'connectctl[spark]'"
        )
        comparison = None
    elif comparison is None and not request.headers_only:
        wanted = Wanted(
            request.sequence,
            request.source,
            request.together,
            measure=bool(guess and guess.lines),
            converters=request.converters,
        )
    numbers = compared.numbers if compared else {}
    return AuditWork(
        cluster, spans, wanted, request.first, numbers, request.shown, evidence, comparison
    ), unread


def _run(access: AuditAccess, work: AuditWork, engine: Choice) -> Summary:
    chosen = engine is Choice.SPARK or (
        engine is Choice.AUTO and work.size >= AUDIT_THRESHOLD and spark_session.installed()
    )
    with access.progress("Auditing") as advance:
        if not chosen:
            return locally(work, advance)
        with job_failures("audit the topics", access.spark_log):
            return on_spark(access.spark(), work, advance)


@dataclass(frozen=True)
class _Inputs:
    """The partitions of the inputs, and the comparison of their records with those of the
    output.
    """

    partitions: tuple[InputPartition, ...]
    comparison: Comparison


def _group_positions(kafka: Kafka, request: AuditRequest, patience: float) -> GroupPositions | None:
    """Return the group's committed offsets of the inputs; None if no inputs are compared."""
    if not request.inputs:
        return None
    return settled_positions.positions(kafka, str(request.group), request.inputs, patience)


def _inputs(
    kafka: Kafka,
    request: AuditRequest,
    output: Sequence[PartitionRange],
    before: GroupPositions | None,
    patience: float,
) -> _Inputs | None:
    """Return the inputs to compare ``output`` with. ``before`` was read before its end was
    determined; offsets are read again here, before the end of the inputs is determined. So the
    input of each record in the output is below that end.
    """
    if before is None:
        return None
    after = _group_positions(kafka, request, patience)
    assert after is not None
    spans = plan.spans(
        *settled(lambda: kafka.extents(request.inputs), patience), _policies(kafka, request.inputs)
    )
    partitions = tuple(input_partitions(spans, before, after))
    ranges = [each for partition in partitions for each in partition.ranges()]
    comparison = Comparison(
        (*output, *ranges),
        Wanted(request.sequence, request.source, together=True, converters=request.converters),
        subset=request.subset,
        inputs_whole=all(span.whole for span in spans),
        output_whole=all(span.whole and span.stable >= span.until for span in output),
    )
    return _Inputs(partitions, comparison)


def _policies(kafka: Kafka, topics: Sequence[str]) -> dict[str, str]:
    """Return the ``cleanup.policy`` of topics."""
    return {
        name: facts.config.get("cleanup.policy", "") for name, facts in kafka.topics(topics).items()
    }

"""The request of an audit, and the spans of partitions that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.field_extractor import Spec
from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.ops.kafka.topics import OffsetRange

Ranges = Mapping[str, Mapping[int, "OffsetRange"]]
Offsets = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Bound:
    """The beginning or the end of an audit: an offset of every partition, or a time in milliseconds
    since the epoch.
    """

    offset: int | None = None
    timestamp: int | None = None


@dataclass(frozen=True)
class AuditRequest:
    """A requested audit. ``first`` is the first number of every source partition.

    ``headers_only``: records are left out on purpose. ``shown`` is the number of violations of a
    kind that are shown. ``converters`` are properties that name how keys and values are read.
    ``inputs`` are the topics of a transform whose output is compared with the
    records that ``group`` has committed; with ``subset`` the output may leave records out.
    """

    topics: tuple[str, ...]
    sequence: Spec | None = None
    by: Spec | None = None
    together: bool = False
    first: int | None = None
    connector: str | None = None
    offset_field: str | None = None
    headers_only: bool = False
    since: Bound | None = None
    until: Bound | None = None
    shown: int = 20
    inputs: tuple[str, ...] = ()
    group: str | None = None
    subset: bool = False
    converters: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def source(self) -> Spec:
        return self.by or field_extractor.BY_KEY


def bound(text: str, option: str) -> Bound:
    """Return ``offset:N``, a time as ISO 8601 writes it, or milliseconds since the epoch. Raises
    ``BadInput``.
    """
    head, _, number = text.partition(":")
    if head == "offset" and number.isdigit() and int(number) < 1 << 63:
        return Bound(offset=int(number))
    if text.isdigit():
        if int(text) >= 1 << 63:
            raise BadInput(f"{option} {text} is later than Kafka's latest time")
        return Bound(timestamp=int(text))
    try:
        when = datetime.fromisoformat(text)
    except ValueError as e:
        hint = "Use 2026-01-31T12:00:00Z, milliseconds since the epoch, or offset:N."
        raise BadInput(f"{option} {text} is not a valid time or offset", next_step=hint) from e
    return Bound(
        timestamp=int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    )


def check(request: AuditRequest) -> None:
    """Raises ``BadInput`` for what does not go together. Times and offsets are compared by the
    broker only.
    """
    since, until = request.since, request.until
    bounds = (
        ((since.offset, until.offset), (since.timestamp, until.timestamp))
        if since and until
        else ()
    )
    for begin, end in bounds:
        if begin is not None and end is not None and begin >= end:
            raise BadInput(
                "Nothing to audit: --since is not before --until", next_step="Use a later --until."
            )
    _check_inputs(request)
    of_records = (request.sequence, request.by, request.converters or None, request.first)
    if request.headers_only and any(each is not None for each in of_records):
        raise BadInput(
            "--headers-only reads no records",
            next_step="Leave it out, or --sequence, --by, --converters and --first.",
        )
    if request.offset_field and not request.connector:
        raise BadInput("--offset-field requires --connector", next_step="Give --connector NAME.")


def _check_inputs(request: AuditRequest) -> None:
    """Raises ``BadInput`` for what does not go with ``--from``, or not without it."""
    if not request.inputs:
        if request.group or request.subset:
            option = "--group" if request.group else "--subset"
            raise BadInput(f"{option} requires --from", next_step="Give --from TOPIC.")
        return
    if not request.group:
        hint = "Give --group GROUP; a transform's is connect-NAME, unless its job names another."
        raise BadInput(
            "--from requires --group, the group that commits the offsets of the inputs",
            next_step=hint,
        )
    if both := set(request.inputs) & set(request.topics):
        raise BadInput(f"{min(both)} is an input and an output", next_step="Name each topic once.")
    others = {
        "--connector": request.connector,
        "--headers-only": request.headers_only or None,
        "--first": request.first,
        "--together": request.together or None,
        "--since": request.since,
        "--until": request.until,
    }
    for option, value in others.items():
        if value is not None:
            raise BadInput(
                f"{option} cannot be combined with --from",
                why="whole topics are compared",
                next_step="Leave it out.",
            )


def spans(
    began: Ranges,
    now: Ranges,
    policies: Mapping[str, str],
    since: Offsets | None = None,
    until: Offsets | None = None,
) -> list[PartitionRange]:
    """Return the spans of all partitions: up to the ends when the audit ``began``, and to where
    readers can read ``now``.

    Between the two, open transactions had time to end; the records of new ones are left out.
    ``since`` and ``until`` are offsets by topic and partition.
    """
    found = []
    for topic, ranges in sorted(began.items()):
        compacted = "compact" in policies.get(topic, "")
        for partition, extent in sorted(ranges.items()):
            latest = now[topic][partition]
            first = max(extent.first, latest.first)
            start = max(first, _of(since, topic, partition, first))
            end = max(start, min(extent.end, _of(until, topic, partition, extent.end)))
            complete = start == 0 and not compacted
            found.append(
                PartitionRange(
                    topic,
                    partition,
                    start,
                    end,
                    min(end, latest.stable),
                    latest.end,
                    complete,
                    compacted,
                )
            )
    return found


def _of(offsets: Offsets | None, topic: str, partition: int, default: int) -> int:
    return default if offsets is None else offsets[topic].get(partition, default)

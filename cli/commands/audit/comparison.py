"""The inputs of an audit with ``--from``: where the group is, and which records are to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.audit import plan
from connectctl.ops.audit.input_partitions import InputPartition, input_partitions
from connectctl.ops.clients.kafka_protocol.settled_positions import positions
from connectctl.ops.jobs.audit_inputs import Comparison
from connectctl.ops.jobs.audit_sequences import Wanted
from connectctl.ops.operations.cluster.open_transactions import settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectctl.ops.audit.plan import AuditRequest
    from connectctl.ops.audit.scan import PartitionRange
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.kafka.group_positions import GroupPositions


@dataclass(frozen=True)
class Inputs:
    """The partitions of the inputs, and the comparison of their records with those of the output."""

    partitions: tuple[InputPartition, ...]
    comparison: Comparison


def group_positions(kafka: Kafka, request: AuditRequest, patience: float) -> GroupPositions | None:
    """What the group has committed of the inputs; None where no inputs are compared."""
    if not request.inputs:
        return None
    return positions(kafka, str(request.group), request.inputs, patience)


def inputs_of(
    kafka: Kafka,
    request: AuditRequest,
    output: Sequence[PartitionRange],
    before: GroupPositions | None,
    patience: float,
) -> Inputs | None:
    """What to compare ``output`` with. ``before`` was read before its end was fixed, and offsets are read again here, before
    the end of the inputs is: a record in the output is then in what is read of the inputs.
    """
    if before is None:
        return None
    after = group_positions(kafka, request, patience)
    assert after is not None
    spans = plan.spans(*settled(lambda: kafka.extents(request.inputs), patience), policies(kafka, request.inputs))
    partitions = tuple(input_partitions(spans, before, after))
    ranges = [each for partition in partitions for each in partition.ranges()]
    comparison = Comparison(
        (*output, *ranges),
        Wanted(request.sequence, request.source, together=True),
        subset=request.subset,
        inputs_whole=all(span.whole for span in spans),
        output_whole=all(span.whole and span.stable >= span.until for span in output),
    )
    return Inputs(partitions, comparison)


def policies(kafka: Kafka, topics: Sequence[str]) -> dict[str, str]:
    """The ``cleanup.policy`` of topics."""
    return {name: facts.config.get("cleanup.policy", "") for name, facts in kafka.topics(topics).items()}

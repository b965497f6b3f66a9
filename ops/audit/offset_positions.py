"""A connector's offsets in the offsets topic, as numbers to compare records with, where that is
sound.

The meaning of a source offset is the connector's. It is compared only if it is known to be the
number of the last record: of Kafka's ``VerifiableSourceConnector``, or of a member that the user
names. All other offsets are undecided.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.field_extractor import RecordPart, Spec
from connectctl.ops.audit.sequences import Committed
from connectctl.ops.connect.stream_source_partitions import is_stream_state

Pair = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
"""A source partition and its source offset, None for one that was deleted."""


@dataclass(frozen=True)
class Inferred:
    """What the connector's class determines: sequence, source partition, member of the offset; else
    the reason ``why`` it does not.

    ``lines``: its records are lines of a file, and its offset counts their characters.
    """

    sequence: Spec | None = None
    by: Spec | None = None
    member: str | None = None
    why: str | None = None
    lines: bool = False


@dataclass(frozen=True)
class Offsets:
    """Source offsets by the name of the source partition in records; ``shown`` are both as the
    connector writes them.

    ``why`` is the reason why they are not compared.
    """

    numbers: Mapping[str, Committed] = field(default_factory=dict)
    shown: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    why: str | None = None


def inferred(config: Mapping[str, str] | None) -> Inferred:
    """Return what a connector's configuration determines about its records."""
    class_ = (config or {}).get("connector.class", "").rpartition(".")[2]
    if class_.startswith("VerifiableSource"):
        complete = str((config or {}).get("complete.record.data", "")).lower() == "true"
        path = ("seqno",) if complete else ()
        by = Spec(RecordPart.KEY, name="id", text="key:$")
        return Inferred(Spec(RecordPart.VALUE, path, text="$.seqno"), by, "seqno")
    if class_.startswith("FileStreamSource"):
        why = (
            "its records have no line number and its offset counts characters; use --sequence "
            "for a number in the lines"
        )
        return Inferred(why=why, lines=True)
    if class_.startswith("MirrorSource"):
        return Inferred(
            why="its records have no upstream offset; use --sequence for a number in the records"
        )
    known = (
        f"{class_} is not a supported connector class" if class_ else "its configuration is unknown"
    )
    return Inferred(why=f"{known}; use --sequence, --by and --offset-field")


def compared(before: Sequence[Pair], after: Sequence[Pair], member: str | None) -> Offsets:
    """Return the offsets before and after the records were read, by the value that names a source
    partition.

    A source partition is named by the value of its only member. Records may not be beyond the later
    offset, nor short of the earlier one.
    """
    if member is None:
        return Offsets(
            why="the field of the source offset with the number of the last record is unknown: "
            "use --offset-field"
        )
    numbers: dict[str, Committed] = {}
    shown: dict[str, tuple[Any, Any]] = {}
    first = {json.dumps(partition, sort_keys=True): offset for partition, offset in before}
    for partition, offset in after:
        if offset is None or is_stream_state(partition):
            continue
        if not partition or len(partition) != 1:
            return Offsets(
                why="a source partition with several fields is not identified by a single value "
                "of its records"
            )
        (value,) = partition.values()
        name = field_extractor.text_of(value) or ""
        last = field_extractor.number_of(offset.get(member))
        if last is None:
            return Offsets(why=f"the source offset {json.dumps(offset)} has no integer {member}")
        earlier = field_extractor.number_of(
            (first.get(json.dumps(partition, sort_keys=True)) or {}).get(member)
        )
        numbers[name] = Committed(last if earlier is None else min(earlier, last), last)
        shown[name] = (partition, offset)
    return Offsets(numbers, shown)


def positions(before: Sequence[Pair], after: Sequence[Pair]) -> tuple[int, int] | None:
    """Return the position of a file source that reads one file, before and after; None where there
    is none, or several files.
    """
    later = [offset for _, offset in after if offset is not None]
    if len(later) != 1:
        return None
    high = field_extractor.number_of(later[0].get("position"))
    earlier = [
        field_extractor.number_of(offset.get("position"))
        for _, offset in before
        if offset is not None
    ]
    low = 0 if not earlier else earlier[0]
    return None if high is None or low is None else (min(low, high), high)

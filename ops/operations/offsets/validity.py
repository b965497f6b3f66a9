"""Reasons against the source offsets that a change would write: for its plan, and for its execution.
Pure.

Offsets of another origin are validated with ``offset_rules``. A merge, a reset and the undo of a run
are not: they write the connector's own values, or delete. ``SetOffsets``, ``CopyOffsets`` and the
``RestoreBackup`` of a file may have values of another connector; these have ``force``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.connect.offset_patterns import OffsetPatterns
from connectctl.ops.connect.offset_rules import OffsetValidator, validator_of
from connectctl.ops.connect.offset_shapes import Pair
from connectctl.ops.connect.partition_fields import Config
from connectctl.ops.connect.source_keys import SourceKey, parse_key
from connectctl.ops.connect.source_offsets import read_offset
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.finding import counted, some_of
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.changes import (
    CopyOffsets,
    MergeOffsets,
    OffsetRequest,
    RestoreBackup,
    SetOffsets,
)
from connectctl.ops.operations.offsets.record_changes import Conflict, OffsetChanges, RecordChange
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, commits_of, stale

NAMED = 3
"""Offsets that a message names; the others are counted."""
FORCE = "Correct the offsets; --force writes them nevertheless."


def may_be_foreign(request: OffsetRequest) -> bool:
    """Return whether ``request`` may write values of another connector."""
    if isinstance(request, RestoreBackup):
        return request.run is None
    return isinstance(request, SetOffsets | CopyOffsets)


@dataclass(frozen=True)
class Validity:
    """The reason why the connector would refuse offsets, None if it would not, and a warning about
    them.
    """

    problem: str | None = None
    warning: str | None = None


def validated(
    request: OffsetRequest,
    config: Config,
    states: Sequence[OffsetsTopicState],
    writes: Collection[RecordChange],
    via: str = "kafka",
) -> Validity:
    """Return the validity of the offsets in ``writes`` for a connector with ``config`` and the
    stored offsets in ``states``.

    With ``via`` rest the connector itself validates them as well.
    """
    if not may_be_foreign(request) or next(_values(writes), None) is None:
        return Validity()
    validator = validator_of(config, _stored(states, writes))
    found = list(dict.fromkeys(_problems(validator, writes)))
    if found:
        problem = f"the connector would refuse {some_of(found, NAMED, separator='; ')}"
        forced = isinstance(request, SetOffsets | CopyOffsets | RestoreBackup) and request.force
        return Validity(warning=f"Forced: {problem}.") if forced else Validity(problem)
    return Validity(
        warning=None
        if validator.has_rules or via == "rest"
        else _unvalidated(request.connector, config)
    )


def _unvalidated(name: str, config: Config) -> str:
    class_ = config.get("connector.class")
    if class_ is None:
        return (
            f"Nothing validates the offsets of {name}: it has stored none, and no "
            "configuration of it was found."
        )
    return (
        f"Nothing validates the offsets of {name}: it has stored none, and no rule of {class_} is "
        "known. With --via rest a worker asks the connector itself."
    )


def _values(writes: Collection[RecordChange]) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each record that is not a tombstone; twice for a record of two
    topics.
    """
    return ((write.key, write.value) for write in writes if write.value is not None)


def _problems(validator: OffsetValidator, writes: Collection[RecordChange]) -> Iterator[str]:
    accepted = OffsetPatterns()
    for key, value in _values(writes):
        if accepted.match(key, value):
            continue
        if problem := _problem(validator, key, value):
            yield problem
        else:
            accepted.add(key, value)


def _problem(validator: OffsetValidator, key: bytes, value: bytes) -> str | None:
    parsed, stored = parse_key(key), read_offset(ConsumerRecord(key, value, 0, 0))
    if not isinstance(parsed, SourceKey):
        return f"{key.decode(errors='backslashreplace')}: {parsed}"
    if stored.problem:
        return f"{parsed.text}: {stored.problem}"
    return validator.problem(parsed.partition, stored.offset)


def _stored(
    states: Sequence[OffsetsTopicState], writes: Collection[RecordChange]
) -> Iterator[Pair]:
    """Yield the stored offsets that workers can read, one for each combination of members and
    types.

    ``states`` do not have all offsets of a topic that exceeds memory; those that ``writes`` replace
    are added.
    """
    learned = OffsetPatterns()
    stored = ((key, state.value(key)) for state in states for key in state.records)
    for key, value in chain(stored, ((write.key, write.before) for write in writes)):
        if value is None or learned.match(key, value):
            continue
        parsed, offset = parse_key(key), read_offset(ConsumerRecord(key, value, 0, 0)).offset
        if isinstance(parsed, SourceKey) and not parsed.nested and offset is not None:
            learned.add(key, value)
            yield parsed.partition, offset


def obstacles(
    request: OffsetRequest, states: Sequence[OffsetsTopicState], decision: OffsetChanges
) -> list[str]:
    """Return the reasons against ``decision`` on ``request``, with the number of source
    partitions.
    """
    found = list(decision.refusals)
    running = None if not isinstance(request, MergeOffsets) or request.chosen else request.running
    if running is not None and (older := stale(states, running=running, in_doubt=True)):
        found.append(f"{older} Select the correct offsets with --policy")
    if isinstance(request, RestoreBackup) and decision.moved and not request.keeps:
        found.append(
            f"{counted(decision.moved, 'source partition')} of {request.connector} moved since "
            f"the run {request.run}: its records would be written again. To set them back all the "
            f"same: connectctl offsets restore {request.connector} -f FILE --stop, with the "
            f"backup that connectctl runs show {request.run} names"
        )
    return found


def overruled(states: Sequence[OffsetsTopicState], conflicts: Sequence[Conflict]) -> str:
    """Return the number and a digest of the source partitions for which a policy overrules the
    commits of tasks.
    """
    side = commits_of(states, running=False).to
    keys = sorted(
        c.key
        for c in conflicts
        if c.taken != ((c.global_ if side is Side.GLOBAL else c.dedicated) or "deleted")
    )
    return f"{len(keys)}:{hashlib.sha256(repr(keys).encode(errors='backslashreplace')).hexdigest()[:16]}"


def refuse_invalid_offsets(
    name: str,
    config: Config,
    entries: Iterable[tuple[str, str]],
    stored: Iterable[Pair] = (),
    *,
    force: bool,
) -> None:
    """Raise ``Refused`` if the connector ``name`` with ``config`` would refuse one of ``entries``;
    ``stored`` are its current offsets.

    Workers validate the offsets of a sink.
    """
    validator = validator_of(config, stored)
    pairs = [(read_json(partition), read_json(offset)) for partition, offset in entries]
    if force or any("kafka_topic" in (partition or {}) for partition, _ in pairs):
        return
    if found := [problem for pair in pairs if (problem := validator.problem(*pair))]:
        raise Refused(
            f"{name} would refuse its offsets; nothing was changed",
            why=some_of(found, NAMED, separator="; "),
            next_step="Correct the offsets; --force sets them nevertheless.",
            code="invalid-offset",
        )

"""The two sides that ``connectctl offsets diff`` compares: topics, clusters, or a dump and a
cluster.
"""

from __future__ import annotations

from pathlib import Path

from connectctl.cli.output import terminal
from connectctl.cli.session import Session
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.connectors.observe import is_glob, matching_names
from connectctl.ops.operations.offsets import topic_dump
from connectctl.ops.operations.offsets.diff import (
    LiveValues,
    effective_values,
    live_values,
    without_equal_values,
)
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.engine import DifferingKeys
from connectctl.ops.operations.offsets.incomplete import check_complete, check_findings
from connectctl.ops.operations.offsets.observe import observe
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot, SourceOffsets
from connectctl.ops.operations.offsets.sources import PATIENCE, observe_connectors, sources_of
from connectctl.ops.operations.offsets.target import OffsetTarget
from connectctl.ops.operations.offsets.topic_state import stale


def sides(
    session: Session, wanted: tuple[str, ...], with_context: str | None, file: Path | None
) -> tuple[LiveValues, LiveValues, tuple[str, str]]:
    if with_context is None and file is None:
        return _own_sides(session, wanted)
    current = _observed(session, wanted)
    if with_context is not None:
        other_session = session.in_context(with_context)
        current, other = without_equal_values(current, _observed(other_session, wanted), wanted)
        return (
            effective_values(_whole(current, wanted)),
            effective_values(_whole(other, wanted)),
            ("here", with_context),
        )

    assert file is not None
    current, other = without_equal_values(current, _saved(session, file), wanted)
    saved = effective_values(assemble(other, OffsetsQuery()))
    query = OffsetsQuery(wanted)
    kept = {
        topic_state: value for topic_state, value in saved.items() if query.includes(topic_state[0])
    }
    return effective_values(_whole(current, wanted)), kept, ("cluster", "file")


def _saved(session: Session, file: Path) -> OffsetsSnapshot:
    """Return the offsets in ``file``, with the configurations of this cluster where it has topics
    of this cluster.
    """
    records = topic_dump.read_file(file)
    sources = sources_of(session, PATIENCE)[0]
    # the topics have been read for the other side
    observed = observe(sources, OffsetsQuery((), False, False))
    known = sources.offsets_topic
    own_topics = {known, *(store.topic for store in observed.stores.values())}
    configs = observed.configs if own_topics & records.keys() else None
    named = session.flags.get("topics.offsets") or (known if configs else None)
    return topic_dump.snapshot(records, str(file), named, OffsetsQuery(), configs=configs)


def _observed(session: Session, wanted: tuple[str, ...]) -> OffsetsSnapshot:
    return observe(sources_of(session, PATIENCE)[0], OffsetsQuery(wanted))


def _whole(snapshot: OffsetsSnapshot, wanted: tuple[str, ...]) -> SourceOffsets:
    """Return the offsets. Raises as ``check_findings`` if not all could be read."""
    found = assemble(snapshot, OffsetsQuery(wanted))
    check_findings(found.findings, snapshot)
    return found


def _own_sides(
    session: Session, wanted: tuple[str, ...]
) -> tuple[LiveValues, LiveValues, tuple[str, str]]:
    """Return the global topic and the dedicated one as sides, for the connectors that have one."""
    if any(map(is_glob, wanted)):
        wanted = tuple(dict.fromkeys(matching_names(_with_own_topic(session), wanted)))
    chosen = wanted or _with_own_topic(session)
    if not chosen:
        terminal.note(
            "Nothing was compared: no connector has a dedicated offsets topic. Compare with another "
            "cluster or a backup: --with-context CONTEXT, or -f FILE.",
            style="yellow",
        )
    _, subjects = observe_connectors(
        session, [OffsetTarget(name, None, purpose=DifferingKeys(name)) for name in chosen]
    )
    check_complete(at for subject in subjects for at in subject.topic_states)
    global_: dict[tuple[str, str], str | None] = {}
    dedicated: dict[tuple[str, str], str | None] = {}
    for subject in subjects:
        if wanted and not any(at.side is Side.DEDICATED for at in subject.topic_states):
            raise BadInput(f"{subject.name} has no dedicated topic to compare the global one with")
        if older := stale(subject.topic_states, running=subject.running):
            terminal.note(f"warning: {subject.name}: {older}", style="yellow")
        for at in subject.topic_states:
            (global_ if at.side is Side.GLOBAL else dedicated).update(live_values(subject.name, at))
    return global_, dedicated, ("global", "dedicated")


def _with_own_topic(session: Session) -> tuple[str, ...]:
    return tuple(
        sorted(observe(sources_of(session, PATIENCE)[0], OffsetsQuery((), False, False)).stores)
    )

"""The records of a backup, from one reading of the topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.operations.connectors.observe import is_glob, matching_names
from connectctl.ops.operations.offsets.effective_offsets import check_names, names_in, topics_of
from connectctl.ops.operations.offsets.incomplete import check_complete, check_findings
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot
from connectctl.ops.operations.offsets.topic_dump import backup_lines
from connectctl.ops.operations.offsets.topic_state import (
    OffsetsTopicState,
    by_connector,
    topic_states,
)


def backup_of(
    sources: Sources, names: tuple[str, ...]
) -> tuple[set[str], Iterator[str], Sequence[ConfiguredConnector]]:
    """Return the source connectors in ``names``, the lines of their backup, and the sinks in
    ``names``.

    Names may be globs; no names are all connectors. Raises as ``states_by_connector`` does.
    """
    snapshot = observe(sources, OffsetsQuery(names))
    configs = snapshot.configs.connectors if snapshot.configs else {}
    if any(map(is_glob, names)):
        stored = names_in(snapshot.global_topic.image.latest if snapshot.global_topic else ())
        names = tuple(dict.fromkeys(matching_names(sorted({*configs, *stored}), names)))
    sinks = [
        c
        for name, c in sorted(configs.items())
        if c.looks_like == "sink" and (not names or name in names)
    ]
    sink_names = {sink.name for sink in sinks}
    source_names = tuple(name for name in names if name not in sink_names)
    if names and not source_names:
        return set(), iter(()), sinks
    found = states_by_connector(sources, snapshot, source_names)
    return set(found), (line for states in found.values() for line in backup_lines(states)), sinks


def states_by_connector(
    sources: Sources, snapshot: OffsetsSnapshot, names: tuple[str, ...]
) -> dict[str, list[OffsetsTopicState]]:
    """Return the offsets topics of the connectors in ``names`` by name; of all connectors for no
    names.

    Raises ``BadInput`` for a sink and for an unknown name, ``ConnectctlError`` where offsets could
    not all be read.
    """
    found = _states(sources, snapshot, names)
    for name in names:
        configured = snapshot.configs.connectors.get(name) if snapshot.configs else None
        is_source = configured is not None and configured.looks_like != "sink"
        if not is_source and (
            configured or not any(topic_state.records for topic_state in found[name])
        ):
            check_names(name, snapshot)
    _check_complete(snapshot, found, every=not names)
    return found


def _states(
    sources: Sources, snapshot: OffsetsSnapshot, names: tuple[str, ...]
) -> dict[str, list[OffsetsTopicState]]:
    known = (
        by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) != 1 else None
    )
    configs = snapshot.configs.connectors if snapshot.configs else {}
    sources_there = {
        name for name, configured in configs.items() if configured.looks_like != "sink"
    }
    chosen = names or tuple(sorted({*(known or ()), *snapshot.dedicated, *sources_there}))
    return {name: topic_states(sources, snapshot, name, known=known) for name in chosen}


def _check_complete(
    snapshot: OffsetsSnapshot, found: dict[str, list[OffsetsTopicState]], *, every: bool
) -> None:
    check_complete(topic_state for states in found.values() for topic_state in states)
    if every:
        images = [topic.image for topic in topics_of(snapshot)]
        open_transactions = (
            f
            for image in images
            for f in offsets_findings.of_open_transactions(image.topic, image.held_back)
        )
        check_findings((*snapshot.findings, *open_transactions), snapshot)

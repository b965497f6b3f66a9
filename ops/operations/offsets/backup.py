"""The records of a backup, from one reading of the topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.operations.connectors.observe import is_glob, matching_names
from connectctl.ops.operations.offsets.backup_file import backup_lines
from connectctl.ops.operations.offsets.effective_offsets import check_names, names_in, topics_of
from connectctl.ops.operations.offsets.incomplete import check_findings, check_places
from connectctl.ops.operations.offsets.observe import Sources, observe
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, by_connector, topic_states


def saved(sources: Sources, names: tuple[str, ...]) -> tuple[set[str], Iterator[str], Sequence[ConfiguredConnector]]:
    """Return the source connectors in ``names``, the lines of their backup, and the sinks in ``names``.

    Names may be globs; no names are all connectors. Raises as ``everything`` does.
    """
    snapshot = observe(sources, OffsetsQuery(names))
    configs = snapshot.configs.connectors if snapshot.configs else {}
    if any(map(is_glob, names)):
        there = names_in(snapshot.global_topic.image.latest if snapshot.global_topic else ())
        names = tuple(dict.fromkeys(matching_names(sorted({*configs, *there}), names)))
    sinks = [c for name, c in sorted(configs.items()) if c.looks_like == "sink" and (not names or name in names)]
    apart = {sink.name for sink in sinks}
    rest = tuple(name for name in names if name not in apart)
    if names and not rest:
        return set(), iter(()), sinks
    found = everything(sources, snapshot, rest)
    return set(found), (line for places in found.values() for line in backup_lines(places)), sinks


def everything(
    sources: Sources, snapshot: OffsetsSnapshot, names: tuple[str, ...]
) -> dict[str, list[OffsetsTopicState]]:
    """Return the places of the connectors in ``names`` by name; of all connectors for no names.

    Raises ``BadInput`` for a sink and for an unknown name, ``ConnectctlError`` where not all can be seen.
    """
    found = _places(sources, snapshot, names)
    for name in names:
        configured = snapshot.configs.connectors.get(name) if snapshot.configs else None
        is_source = configured is not None and configured.looks_like != "sink"
        if not is_source and (configured or not any(topic_state.records for topic_state in found[name])):
            check_names(name, snapshot)
    _check_whole(snapshot, found, every=not names)
    return found


def _places(sources: Sources, snapshot: OffsetsSnapshot, names: tuple[str, ...]) -> dict[str, list[OffsetsTopicState]]:
    known = by_connector(snapshot.global_topic) if snapshot.global_topic and len(names) != 1 else None
    configs = snapshot.configs.connectors if snapshot.configs else {}
    sources_there = {name for name, configured in configs.items() if configured.looks_like != "sink"}
    chosen = names or tuple(sorted({*(known or ()), *snapshot.dedicated, *sources_there}))
    return {name: topic_states(sources, snapshot, name, known=known) for name in chosen}


def _check_whole(snapshot: OffsetsSnapshot, found: dict[str, list[OffsetsTopicState]], *, every: bool) -> None:
    check_places(topic_state for places in found.values() for topic_state in places)
    if every:
        images = [topic.image for topic in topics_of(snapshot)]
        open_ = (f for each in images for f in offsets_findings.of_open_transactions(each.topic, each.held_back))
        check_findings((*snapshot.findings, *open_), snapshot)

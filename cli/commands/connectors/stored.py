"""Offsets that are stored under the names of connectors that are not there: what is created with such a name resumes."""

from __future__ import annotations

from collections.abc import Sequence

from connectctl.cli.commands.offsets.sources import PATIENCE, sources_of
from connectctl.cli.session import Session
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.operations.connectors.access import ConnectorAccess
from connectctl.ops.operations.connectors.config_outlook_new import StoredOffsets
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.large_topics import is_big
from connectctl.ops.operations.offsets.observe import observe
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery


def stored_offsets(session: Session, cluster: ConnectorAccess, names: Sequence[str]) -> StoredOffsets:
    """The offsets in the global topic by connector, read once where ``names`` are to be created; else none."""
    if not names:
        return StoredOffsets()
    if cluster.kafka is None:
        return StoredOffsets(unseen="the brokers are not given")
    query = OffsetsQuery((), True, False, False)
    try:
        snapshot = observe(sources_of(session, PATIENCE)[0], query)
    except ConnectctlError as e:
        return StoredOffsets(unseen=e.what)
    if is_big(snapshot):
        return StoredOffsets(
            unseen=f"the offsets topic is too big to be read here; see connectctl offsets show {names[0]}"
        )
    found = assemble(snapshot, query)
    if not found.complete:
        return StoredOffsets(unseen="the offsets topic was not read to its end")
    pairs = {c.name: [(o.key.partition or {}, o.effective) for o in c.offsets] for c in found.connectors}
    return StoredOffsets({name: [pair for pair in offsets if pair[1] is not None] for name, offsets in pairs.items()})

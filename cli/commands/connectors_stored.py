"""Offsets that are stored under the names of connectors that are not there: what is created with such a name resumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from connectctl.cli.commands.offsets.sources import PATIENCE, sources_of
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.large_topics import is_big
from connectctl.ops.operations.offsets.observe import observe
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery

if TYPE_CHECKING:
    from connectctl.cli.commands.connectors_cluster import Cluster
    from connectctl.cli.session import Session
    from connectctl.ops.operations.connectors.config_outlook import Offsets


def stored_offsets(session: Session, cluster: Cluster, names: Sequence[str]) -> Callable[[str], Offsets | str]:
    """The offsets in the global topic by connector, read once; a text is why they were not seen."""
    if not names:
        return lambda name: ()
    if cluster.kafka is None:
        return lambda name: "the brokers are not given"
    query = OffsetsQuery((), True, False, False)
    try:
        snapshot = observe(sources_of(session, PATIENCE)[0], query)
    except ConnectctlError as e:
        unseen = e.what
        return lambda name: unseen
    if is_big(snapshot):
        return lambda name: f"the offsets topic is too big to be read here; see connectctl offsets show {name}"
    found = assemble(snapshot, query)
    if not found.complete:
        return lambda name: "the offsets topic was not read to its end"
    by_name = {each.name: each.offsets for each in found.connectors}
    return lambda name: [
        (each.key.partition or {}, each.effective) for each in by_name.get(name, ()) if each.effective is not None
    ]

"""A backup of source offsets: one line per record, from which the record is restored byte for byte
to its topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.operations.offsets import topic_dump
from connectctl.ops.operations.offsets.dump_lines import blocks_of, lines_of, name_of

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import Saved
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


def backup_lines(states: Sequence[OffsetsTopicState]) -> Iterator[str]:
    """Yield the records of ``states`` as lines of a backup."""
    for state in states:
        yield from lines_of(chain(*state.records.values()), state.topic, state.bootstrap)


def read_backup(path: Path, connector: str | None = None) -> Saved:
    """Return the records of a backup by topic, of one ``connector`` or of all; ``-`` is standard
    input.

    Topics without records of the connector are included. Raises ``BadInput``.
    """
    return topic_dump.read_dump(
        blocks_of(path), name_of(path), by_cluster=True, connector=connector
    )

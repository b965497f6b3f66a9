"""A backup of source offsets: one line per record, that brings it back byte for byte to the topic that it is from."""

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


def backup_lines(places: Sequence[OffsetsTopicState]) -> Iterator[str]:
    """Yield the records of ``places`` as lines of a backup."""
    for at in places:
        yield from lines_of(chain(*at.records.values()), at.topic, at.bootstrap)


def read_backup(path: Path, connector: str | None = None) -> Saved:
    """Return what ``backup_lines`` wrote, from a file or, for ``-``, standard input; of one ``connector`` or of all.

    Topics in which it has nothing are there, too. Raises ``BadInput``.
    """
    return topic_dump.read_dump(blocks_of(path), name_of(path), by_cluster=True, connector=connector)

"""A micro-batch of a stream as its tasks see it, and what is committed of it: a batch is through,
or begun, or new.

Each task keeps one record of the query's newest batch beside its source offsets, in the same
transactions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.connect.stream_source_partitions import STREAM
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.dataframe.partition_slices import PartitionSlice, adjacent

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.transaction_batch import RefreshableOffsets

HASH, ONE_PARTITION = "__connectctl_hash", "__connectctl_place"
"""Columns that are added to those of a stream: a hash of the row, and one source partition for all
rows.
"""
_ALL = 0xFFFFFFFFFFFFFFFF
_ANEW = (
    "Restart with a new checkpoint and late=drop, which skips rows at or before the committed "
    "offsets."
)


class Late(StrEnum):
    """The treatment of rows that are at or before the committed offset of their source partition
    when their batch begins.
    """

    REFUSE = "refuse"
    DROP = "drop"


@dataclass(frozen=True)
class MicroBatch:
    """Batch ``number`` of the stream ``query``, for so many ``tasks``. ``ordered``: its rows have
    source offsets.
    """

    query: str
    number: int
    tasks: int
    late: Late = Late.REFUSE
    ordered: bool = True

    def source_partition(self, task: int) -> dict[str, Any]:
        """Return the source partition under which a task keeps how far it is."""
        return {STREAM: self.query, "task": task}


@dataclass(frozen=True)
class Digest:
    """Rows, whatever their order: how many, and the sum of their hashes."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.rows + other.rows, (self.total + other.total) & _ALL)


def digest(pieces: Iterable[PartitionSlice]) -> Digest:
    """Return the digest of all rows of ``pieces``; consecutive pieces are digested at once."""
    import numpy as np

    found = Digest()
    for batch, start, end in adjacent(pieces):
        hashes = batch.column(HASH).slice(start, end - start).to_numpy()
        found += Digest(end - start, int(np.sum(hashes, dtype=np.int64)) & _ALL)
    return found


@dataclass(frozen=True)
class BatchProgress:
    """The progress of a task in a batch: all (``through``) or a part, whose rows have ``digest``.

    ``since`` is, by partition of the offsets topic, the position of the connector's newest record
    when the task began the batch: a source partition with a later record has advanced in it.
    ``up_to`` is the hash up to which rows without an order were written.
    """

    batch: int
    tasks: int
    through: bool = False
    digest: Digest = field(default_factory=Digest)
    since: Mapping[int, int] = field(default_factory=dict)
    up_to: int | None = None

    @property
    def json(self) -> bytes:
        reported: dict[str, Any] = {
            "batch": self.batch,
            "tasks": self.tasks,
            "through": self.through,
        }
        reported |= {"rows": self.digest.rows, "digest": f"{self.digest.total:016x}"}
        if not self.through:
            reported["since"] = {
                str(partition): offset for partition, offset in sorted(self.since.items())
            }
            # As text: readers in other languages keep no number of 64 bits.
            reported |= {} if self.up_to is None else {"hash": str(self.up_to)}
        return connect_json(reported).encode()

    @classmethod
    def parse(cls, raw: bytes) -> BatchProgress:
        """Return the inverse of ``json``. Raises ``ConnectctlError`` for what is none."""
        try:
            reported = json.loads(raw)
            since = {
                int(partition): int(offset)
                for partition, offset in reported.get("since", {}).items()
            }
            known = Digest(int(reported["rows"]), int(reported["digest"], 16))
            up_to = int(reported["hash"]) if "hash" in reported else None
            return cls(
                int(reported["batch"]),
                int(reported["tasks"]),
                bool(reported["through"]),
                known,
                since,
                up_to,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise ConnectctlError(
                f"{raw.decode(errors='replace')} is not a valid stream progress record", why=str(e)
            ) from e


def newest(stored: RefreshableOffsets) -> dict[int, int]:
    """By partition of the offsets topic, where the connector's newest record is."""
    found: dict[int, int] = {}
    for partition, offset in filter(None, map(stored.position, stored.known())):
        found[partition] = max(offset, found.get(partition, -1))
    return found


def progress_of(
    batch: MicroBatch, task: int, reported: Mapping[int, BatchProgress]
) -> BatchProgress | None:
    """Return the progress of ``task`` in ``batch``, by the reports of all tasks of its query; None
    for a new batch.

    Raises ``ConnectctlError`` if the batch is older than one that is through, or was begun by other
    tasks.
    """
    for each in reported.values():
        if each.batch > batch.number:
            raise ConnectctlError(
                f"Micro-batch {batch.number} is outdated: batch {each.batch} of the query is "
                "already committed",
                why="the checkpoint was reset, and its batches may contain different rows",
                next_step=_ANEW,
                code="old-checkpoint",
            )
        if each.batch == batch.number and each.tasks != batch.tasks:
            raise ConnectctlError(
                f"Micro-batch {batch.number} was started with {each.tasks} tasks, but "
                f"{batch.tasks} are configured now",
                next_step=f"Finish it with {each.tasks} (tasks.max, or tasks of the Target), then "
                "change it.",
                code="other-tasks",
            )
    mine = reported.get(task)
    return mine if mine is not None and mine.batch == batch.number else None


def other_rows(batch: MicroBatch, then: Digest, now: Digest) -> ConnectctlError:
    """Return the error for a batch that came again with other rows."""
    return ConnectctlError(
        f"Micro-batch {batch.number} was replayed with different rows than the committed ones",
        why=f"committed: {then.rows} rows, digest {then.total:016x}; replayed: {now.rows} rows, "
        f"digest {now.total:016x}",
        next_step=f"The source or the query is not deterministic. {_ANEW}",
        code="other-batch",
    )

"""A task's commits, compared with a later read of the offsets topic. A read that lacks a commit is
not used.

A task that begins a source partition before its own commits delivers records twice. A read can be
incomplete for several reasons: the reported end was too low, a log lost records, or a user deleted
records. Offsets are opaque, so their values do not show it. But every commit adds a record after
the one that was read before, and compaction keeps the newest record of each key. So after a commit
the key must have a higher offset in its partition than before; otherwise the read was incomplete.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, RefreshableOffsets
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome

Position = tuple[int, int]
"""Partition and offset of a record in an offsets topic."""


@dataclass
class CommitHistory:
    """The keys that a task has committed since its last read, with their earlier positions, and
    the number of records of each.
    """

    _before: dict[bytes, Position | None] = field(default_factory=dict)
    _records: Counter[bytes] = field(default_factory=Counter)

    def committed(self, offsets: Offsets, store: RefreshableOffsets) -> None:
        """Note that ``offsets`` are committed; ``store`` was read before that."""
        self._records.update(offsets.keys())
        for key, value in offsets.items():
            if value is None:
                # Compaction removes tombstones eventually, so none may be found.
                self._before.pop(key, None)
            elif key not in self._before:
                self._before[key] = store.position(key)

    def beyond(self, reached: KnownEnds) -> KnownEnds:
        """Return the minimum ends of the topic: ``reached``, up to which it was read, plus the
        records that were committed since.
        """
        ends = list(reached.ends)
        for key, records in self._records.items() if ends else ():
            ends[java_partition(key, len(ends))] += records
        return KnownEnds(reached.id, tuple(ends))

    def check(self, store: RefreshableOffsets) -> None:
        """Compare the commits with ``store``, which was read again, and forget them. Raises
        ``UnknownOutcome`` if ``store`` lacks one.
        """
        for key, before in self._before.items():
            now = store.position(key)
            if now is None or (before is not None and now[0] == before[0] and now[1] <= before[1]):
                where = (
                    "nowhere"
                    if now is None
                    else f"at offset {now[1]} of partition {now[0]}, an earlier value"
                )
                raise UnknownOutcome(
                    f"the offsets topic was read incompletely: {key.decode('utf-8', 'replace')} "
                    f"(committed by this task) was found {where}"
                )
        self._before.clear()
        self._records.clear()

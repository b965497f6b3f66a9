"""Who changed a connector since it was last applied from a file: the cluster, the file, or both. As plans have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from connectctl.ops.core.finding import some_of

ANOTHER_CLIENT = "another client"
MOST_NAMED = 5


class Newer(StrEnum):
    """Which side changed since the last apply from a file. UNKNOWN: no run in the journal of this machine applied it."""

    FILE = "file"
    CLUSTER = "cluster"
    BOTH = "both"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Drift:
    """What is known of a connector whose configuration is another one than its file's, or that has no file any more.

    ``cluster`` and ``file`` are the properties that either changed since ``run`` applied it at ``applied_at``; ``applied``
    has their values of then, masked. The cluster's configuration is from ``changed_at``, written by ``changed_by``, a run or
    another client. None is unknown; ``unseen`` is why the config topic was not read.
    """

    newer: Newer
    cluster: tuple[str, ...] = ()
    file: tuple[str, ...] = ()
    applied: Mapping[str, str | None] | None = None
    run: str | None = None
    applied_at: str | None = None
    changed_at: str | None = None
    changed_by: str | None = None
    unseen: str | None = None

    def words(self) -> str:
        """The drift in words; empty where only the file has changed."""
        if self.newer is Newer.FILE:
            return ""
        if self.newer is Newer.UNKNOWN:
            why = "no run in this machine's journal applied it from a file"
            return f"whether the cluster or the file is newer is unknown, because {why}; {self._changed()}"
        since = f"after run {self.run} applied it at {self.applied_at}"
        if self.newer is Newer.CLUSTER:
            return f"the cluster is newer: {_named(self.cluster)}{self._changed()}, {since}"
        in_file = f"{_named(self.file)}changed in the file as well"
        return f"the cluster and the file changed: {_named(self.cluster)}{self._changed()}, {since}; {in_file}"

    def _changed(self) -> str:
        where = "changed on the cluster"
        when = f" at {self.changed_at}" if self.changed_at else ""
        who = f" by {self.changed_by}" if self.changed_by else ""
        if when:
            return f"{where}{when}{who}"
        return f"{where}{who} at an unknown time ({self.unseen or 'the config topic does not say when'})"


def _named(names: Sequence[str]) -> str:
    return f"{some_of(names, MOST_NAMED)} " if names else ""

"""The drift of a connector since it was last applied from a file: changes on the cluster, in the
file, or both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from connectctl.ops.core.finding import some_of

ANOTHER_CLIENT = "another client"
MOST_NAMED = 5


class Newer(StrEnum):
    """The side that changed since the last apply from a file. UNKNOWN: no run in the journal of
    this machine applied it.
    """

    FILE = "file"
    CLUSTER = "cluster"
    BOTH = "both"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Drift:
    """The drift of a connector whose configuration differs from its file, or that no longer has a
    file.

    ``cluster`` and ``file`` are the properties that changed there since ``run`` applied the
    connector at ``applied_at``; ``applied`` has their applied values, masked. ``changed_by``, a run
    or another client, wrote the configuration of the cluster at ``changed_at``. None stands for
    unknown; ``unseen`` is the reason if the config topic was not read.
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
        """Return the drift as text; empty if only the file has changed."""
        if self.newer is Newer.FILE:
            return ""
        if self.newer is Newer.UNKNOWN:
            why = "no run in this machine's journal applied it from a file"
            return (
                f"whether the cluster or the file is newer is unknown, because {why}; "
                f"{self._changed()}"
            )
        since = f"after run {self.run} applied it at {self.applied_at}"
        if self.newer is Newer.CLUSTER:
            return f"the cluster is newer: {_named(self.cluster)}{self._changed()}, {since}"
        in_file = f"{_named(self.file)}changed in the file as well"
        return (
            f"the cluster and the file changed: {_named(self.cluster)}{self._changed()}, "
            f"{since}; {in_file}"
        )

    def _changed(self) -> str:
        where = "changed on the cluster"
        when = f" at {self.changed_at}" if self.changed_at else ""
        who = f" by {self.changed_by}" if self.changed_by else ""
        if when:
            return f"{where}{when}{who}"
        return (
            f"{where}{who} at an unknown time "
            f"({self.unseen or 'the config topic does not say when'})"
        )


def _named(names: Sequence[str]) -> str:
    return f"{some_of(names, MOST_NAMED)} " if names else ""

"""The files of an archive that may be removed, found while no task archives: a file that a task is
about to commit looks the same as one that no task will commit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from connectctl.ops.clients.protocols import GroupReads, KafkaReads
from connectctl.ops.connect.internal_topics import MANIFEST, manifest_topic
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.finding import some_of
from connectctl.ops.operations.sink_offsets.changes import MOST_MEMBERS, GroupOffsets
from connectctl.ops.task_runtime.connectors.parquet_archive.files import ArchiveDirectory
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import (
    manifest_of,
    names_in,
    newest_records,
)
from connectctl.ops.task_runtime.connectors.parquet_archive.reader import orphans_among
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import (
    ArchiveLocation,
    OrphanFile,
)


@dataclass(frozen=True)
class ArchiveSweeper:
    """Sweeps the archive at ``location`` whose runs belong to the Connect group ``group_id``."""

    location: ArchiveLocation
    group_id: str
    kafka: KafkaReads
    groups: GroupReads

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster of the manifest."""
        return self.kafka.cluster_id()

    def orphans(self) -> tuple[OrphanFile, ...]:
        """Return the files that can be removed: those of ``reader.sweep`` that no other manifest of
        this Kafka cluster names. Young files are kept, also those of a run that begins meanwhile.

        Raises ``Refused`` if a member of the group may commit files, and if the directory is not
        the manifest's; and the errors of reading the group, the manifests and the directory,
        because an incomplete reading proves nothing.
        """
        self._check_at_rest()
        topic = manifest_topic(self.location.connector)
        files = manifest_of(self.kafka, topic)
        listed = ArchiveDirectory(self.location.directory).listed()
        existing = {name for name, _ in listed}
        if missing := [each.name for each in files if each.name not in existing]:
            raise Refused(
                f"{len(missing):,} of {len(files):,} files that {topic} names are not in "
                f"{self.location.directory}",
                why=f"{missing[0]} is one of them: it may be the directory of another archive",
                next_step="Correct directory, or look: connectctl audit --archive DIR --manifest "
                f"{topic}",
                code="other-archive",
            )
        found = [
            OrphanFile(each.name, each.bytes)
            for each in orphans_among(listed, files, now=time.time())
        ]
        foreign = self._named_elsewhere(topic) if found else frozenset()
        return tuple(each for each in found if each.name not in foreign)

    def names(self) -> frozenset[str]:
        return frozenset(each.name for each in self.orphans())

    def remove(self, name: str) -> None:
        ArchiveDirectory(self.location.directory).remove(name)

    def _check_at_rest(self) -> None:
        connector, group = self.location.connector, self.location.group
        members = GroupOffsets(connector, self.groups.group(group), {}).members
        runs = tuple(map(str, self.kafka.holders(self.group_id, connector)))
        if not members and not runs:
            return
        who = (
            f"members of the group {group}: {some_of(members, MOST_MEMBERS)}"
            if members
            else f"its run: {runs[0]}"
        )
        raise Refused(
            f"{connector} may be archiving; files that it is about to commit look like orphans",
            why=who,
            next_step="Stop the run, and try again; members of a killed run leave when their "
            "session times out.",
            code="in-use",
        )

    def _named_elsewhere(self, topic: str) -> frozenset[str]:
        """Return the files that the manifests of other archives name: two may share a directory,
        and their files look the same.
        """
        names = sorted(
            name for name in self.kafka.topic_names() if name.endswith(MANIFEST) and name != topic
        )
        others = [
            n
            for n, facts in self.kafka.topics(names).items()
            if "compact" in facts.config.get("cleanup.policy", "")
        ]
        return frozenset(
            name for each in others for name in names_in(newest_records(self.kafka, each))
        )

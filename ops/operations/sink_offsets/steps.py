"""The steps of a change of a group's offsets: back up, change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.finding import counted, some_of
from connectctl.ops.core.step import Step, from_data
from connectctl.ops.core.wait import observe_until
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.operations.connectors.context import POLL
from connectctl.ops.operations.offsets.context import SETTLING, OffsetContext, change_begun
from connectctl.ops.operations.sink_offsets.changes import (
    MOST_MEMBERS,
    Committed,
    GroupChange,
    GroupOffsets,
    OffsetWrite,
    as_committed,
    decide,
    entries_json,
    moved_since,
    obstacles,
    offset_json,
    partition_json,
)


@dataclass(frozen=True)
class BackupGroup(Step["OffsetContext"]):
    """Save the group's committed offsets in the format of KIP-875, before the change."""

    subject: str
    group: str
    now: str = ""
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"back up the offsets that the group {self.group} has committed"

    def apply(self, context: OffsetContext) -> str | None:
        journal, run = context.journal_and_run()
        committed: Mapping[TopicPartition, int] = context.groups().stable(self.group)
        change = change_begun(journal, run, self.subject, ChangeGroupOffsets.__name__)
        path = journal.path(run.id, backup_file(context.step))
        if change is not None and path.exists():
            committed = self._renewed(path, committed, from_data(GroupChange, change["change"], {}))
        data = {"connector": self.subject, "group": self.group, "offsets": entries_json(committed)}
        path = journal.write(run.id, backup_file(context.step), json.dumps(data).encode())
        return f"{counted(len(committed), 'offset')} in {path}"

    @staticmethod
    def _renewed(
        path: Path, now: Mapping[TopicPartition, int], change: GroupChange
    ) -> Mapping[TopicPartition, int]:
        """Return the backup of an earlier attempt with the offsets that were committed since.

        Offsets were committed since if they are neither in the backup nor written by the attempt.
        """
        before = as_committed(read_json(path.read_bytes())["offsets"])
        written = {write.partition: write.after for write in decide(change, before)}
        return before | {
            p: offset for p, offset in now.items() if offset not in (before.get(p), written.get(p))
        }


def backup_file(step: int) -> str:
    return f"group-{step}.json"


@dataclass(frozen=True)
class ChangeGroupOffsets(Step["OffsetContext"]):
    """Apply ``change`` to the committed offsets of a group without members, and read them back.

    ``subject`` is the connector, or the group if ``connector`` is False. ``agreed`` are the offsets
    that the confirmed changes replace; None if the connector was running, because its offsets
    advance. ``via`` is ``rest`` for the workers' endpoint, else ``kafka``. ``undoes`` is the run
    that it undoes. ``was`` is the state of the connector before the run stopped it, None if it did
    not; a refusal restores it.
    """

    subject: str
    group: str
    change: GroupChange
    summary: str
    agreed: Committed | None
    via: str = "kafka"
    connector: bool = True
    undoes: str | None = None
    was: str | None = None
    now: str = ""

    def describe(self) -> str:
        return self.summary

    def is_done(self, context: OffsetContext) -> str | None:
        return None if self._decided(context) else "already set"

    def _decided(self, context: OffsetContext) -> tuple[OffsetWrite, ...]:
        """Return the writes, after the last possible commit. Raises ``Refused`` like a plan."""
        if self.connector:
            context.refuse_while_running(self.subject)
        self._refuse_with_members(context)
        writes = self._writes(context)
        if why := obstacles(self.change, writes, self.group):
            what = f"Offset change of the group {self.group} refused"
            refusal = Refused(what, why="; ".join(why), next_step="Make a new plan.", code="stale")
            raise context.with_state_restored(self.subject, self.was, refusal)
        return writes

    def apply(self, context: OffsetContext) -> str | None:
        writes = self._decided(context)
        if (
            self.agreed is not None
            and not context.resumed
            and (number := moved_since(self.agreed, writes))
        ):
            raise Refused(
                f"The offsets of the group {self.group} changed since the plan was made; nothing "
                "was written",
                why=f"{counted(number, 'partition')} moved",
                next_step="Make a new plan.",
                code="stale",
            )
        failed = self._write(context, writes)
        if different := self._writes(context):
            # The error of the request is more specific than the difference.
            raise failed or ConnectctlError(
                f"The group {self.group} has other offsets than were written",
                why=f"{len(different)} of {len(writes)} differ",
                next_step="Another program commits offsets for this group: stop it, and try again.",
            )
        return f"{counted(len(writes), 'offset')} written and read back"

    def _writes(self, context: OffsetContext) -> tuple[OffsetWrite, ...]:
        return decide(self.change, context.groups().stable(self.group))

    def _refuse_with_members(self, context: OffsetContext) -> None:
        """Raise ``Refused`` if the group still has members after a wait: those of stopped tasks
        leave after a delay.
        """

        def members() -> tuple[str, ...]:
            return GroupOffsets(self.subject, context.groups().group(self.group), {}).members

        found = observe_until(
            members, lambda m: not m, SETTLING, POLL, now=context.now, sleep=context.sleep
        )
        if found:
            raise with_members(self.group, found)

    def _write(
        self, context: OffsetContext, writes: tuple[OffsetWrite, ...]
    ) -> ConnectctlError | None:
        """Write once, and return the error. The outcome is unknown then, and the caller reads it
        back.
        """
        try:
            if self.via == "rest":
                method, body = rest_request(self.change, writes)
                context.calls.send(method, path_of("connectors", self.subject, "offsets"), body)
                return None
            if committed := {
                write.partition: write.after for write in writes if write.after is not None
            }:
                context.groups().commit(self.group, committed)
            if deleted := [write.partition for write in writes if write.after is None]:
                context.groups().delete(self.group, deleted)
        except ConnectctlError as e:
            return e
        return None


def rest_request(
    change: GroupChange, writes: tuple[OffsetWrite, ...]
) -> tuple[str, dict[str, Any] | None]:
    if change.exact and not change.entries:
        return "DELETE", None
    return "PATCH", {
        "offsets": [
            {"partition": partition_json(w.partition), "offset": offset_json(w.after)}
            for w in writes
        ]
    }


def with_members(group: str, members: tuple[str, ...]) -> Refused:
    return Refused(
        f"The group {group} has members; its offsets can be changed only while it has no members",
        why=some_of(members, MOST_MEMBERS),
        next_step="Stop its members, and try again.",
        code="in-use",
    )

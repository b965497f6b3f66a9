"""The steps of a change of a group's offsets: back up, change; and the line of a group in a backup.

A file of ``offsets backup`` has one line per group, in addition to the records of source offsets.

::

{"connector": "archive", "group": "connect-archive", "offsets": [{"partition": {…}, "offset": {…}}]}

``offsets`` are in the format of KIP-875. Such a line has ``group``, and no key of a record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from connectctl.ops.clients.protocols import GroupOffsetWrites
from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.core.finding import counted, some_of
from connectctl.ops.core.step import ResourceStep, from_data
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
from connectctl.ops.operations.sink_offsets.observe import group_of


@dataclass(frozen=True)
class BackupGroup(ResourceStep["OffsetContext"]):
    """Save the group's committed offsets in the format of KIP-875, before the change."""

    group: str
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
        line = group_line(self.subject, self.group, committed)
        path = journal.write(run.id, backup_file(context.step), line.encode())
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
class ChangeGroupOffsets(ResourceStep["OffsetContext"]):
    """Apply ``change`` to the committed offsets of a group without members, and read them back.

    ``subject`` is the connector, or the group if ``connector`` is False. ``agreed`` are the offsets
    that the confirmed changes replace; None if the connector was running, because its offsets
    advance. ``via`` is ``rest`` for the workers' endpoint, else ``kafka``. ``undoes`` is the run
    that it undoes. ``was`` is the state of the connector before the run stopped it, None if it did
    not; a refusal restores it.
    """

    group: str
    change: GroupChange
    summary: str
    agreed: Committed | None
    via: str = "kafka"
    connector: bool = True
    undoes: str | None = None
    was: str | None = None

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


def group_line(connector: str, group: str, committed: Mapping[TopicPartition, int]) -> str:
    data = {"connector": connector, "group": group, "offsets": entries_json(committed)}
    return json.dumps(data, ensure_ascii=False)


def group_lines(
    groups: Callable[[], GroupOffsetWrites],
    sinks: Sequence[ConfiguredConnector],
    failed: Callable[[ConnectctlError], None],
) -> Iterator[str]:
    """Yield the groups of ``sinks`` as lines of a backup; ``failed`` is called with the error of a
    group.
    """
    by_group: dict[str, list[str]] = {}
    for sink in sinks:
        try:
            by_group.setdefault(group_of(sink), []).append(sink.name)
        except BadInput as e:
            failed(e)
    for group, found in (groups().committed_of(list(by_group)) if by_group else {}).items():
        if isinstance(found, ConnectctlError):
            failed(found)
            continue
        yield from (group_line(name, group, found) for name in by_group[group])


def is_group(data: Any) -> bool:
    """Return whether ``data`` is a line of ``group_line``, and not a record."""
    return (
        isinstance(data, dict) and "group" in data and "key" not in data and "keyBase64" not in data
    )


def saved_offsets(lines: Iterable[str], connector: str, source: str) -> list[dict[str, Any]]:
    """Return the offsets of ``connector`` in a backup. Raises ``BadInput`` if it has no line of the
    connector.
    """
    for line in lines:
        data: Any = read_json(line) if '"group"' in line else None
        if (
            is_group(data)
            and data.get("connector") == connector
            and isinstance(data.get("offsets"), list)
        ):
            return list(data["offsets"])
    raise BadInput(
        f"{source} has no committed offsets of {connector}",
        next_step=f"Save them: connectctl offsets backup {connector}.",
    )

"""The steps of a Streams application's rolls. Each reads the state again when executed: a run may
be killed anywhere.

For each instance: change its property, restart it, wait for its new process, wait for a gate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.kafka.consumer_group import (
    ClientGroup,
    GroupMember,
    first_release_of,
    release_of,
)
from connectctl.ops.kafka.group_state import instability
from connectctl.ops.kafka.streams_eos import PROPERTY
from connectctl.ops.operations.streams_upgrade.context import (
    BACK,
    CHANGED,
    RESTARTED,
    InstanceProgress,
    application_context,
)

if TYPE_CHECKING:
    from connectctl.ops.operations.upgrade.context import UpgradeContext


@dataclass(frozen=True)
class InstanceStep(ResourceStep["UpgradeContext"]):
    """One step for an instance in a roll; the first roll is 1."""

    roll: int
    reason: str = ""


@dataclass(frozen=True)
class SetGuarantee(InstanceStep):
    """Set an instance's ``processing.guarantee``, effective at its next start."""

    value: str = ""

    def describe(self) -> str:
        return f"set {PROPERTY}={self.value} on {self.subject}"

    def is_done(self, context: UpgradeContext) -> str | None:
        entry = application_context(context).notes.of(self.roll, self.subject)
        return (
            "already set by this run"
            if entry is not None and entry.state in (RESTARTED, BACK)
            else None
        )

    def apply(self, context: UpgradeContext) -> str | None:
        application = application_context(context)
        notes = application.notes
        if self.subject not in notes.was:
            reported = application.reader.driver.configured(self.subject, PROPERTY)
            notes.was[self.subject] = reported.value if reported else None
        notes.entries[f"{self.roll}:{self.subject}"] = InstanceProgress(CHANGED)
        application.save(notes)
        return application.reader.driver.change(self.subject, PROPERTY, self.value)


@dataclass(frozen=True)
class RestartInstance(InstanceStep):
    """Restart an instance if the group is complete: never two at once."""

    members: int = 1

    def describe(self) -> str:
        return f"restart {self.subject}"

    def is_done(self, context: UpgradeContext) -> str | None:
        application = application_context(context)
        entry = application.notes.of(self.roll, self.subject)
        if (
            entry is None
            or entry.state == CHANGED
            or not new_members(application.group(), self.subject, entry)
        ):
            return None
        return "it has been restarted by this run"

    def apply(self, context: UpgradeContext) -> str | None:
        application = application_context(context)
        entry = application.notes.of(self.roll, self.subject)
        if entry is None or entry.state == CHANGED:
            missing = application.await_(
                lambda: self._missing_instance(application.group()), context.patience.timeout
            )
            if missing:
                raise ConnectctlError(
                    f"{self.subject} not restarted: another instance is down",
                    why=missing,
                    next_step="Start it first.",
                    code="two-at-once",
                )
            entry = InstanceProgress(
                RESTARTED, tuple(member.id for member in application.group().members)
            )
        elif not application.await_(
            lambda: self._missing_member(application.group(), entry), context.patience.timeout
        ):
            # A run killed just after the restart left an instance that is still starting: do not
            # restart it.
            return "it was still starting"
        application.write(self.roll, self.subject, replace(entry, state=RESTARTED))
        return application.reader.driver.restart(self.subject)

    def _missing_member(self, group: ClientGroup, entry: InstanceProgress) -> str | None:
        return (
            None
            if new_members(group, self.subject, entry)
            else f"no new member of {self.subject} is in the group"
        )

    def _missing_instance(self, group: ClientGroup) -> str | None:
        if why := instability(group.state):
            return why
        count = len(group.members)
        return (
            None
            if count == self.members
            else f"the group has {count} members and should have {self.members}"
        )


@dataclass(frozen=True)
class AwaitInstance(InstanceStep):
    """Wait until a new process of the instance is in the group. ``protocol``: its lowest allowed
    Streams protocol.

    ``most``: the highest, 0 for no bound.
    """

    protocol: int = 0
    most: int = 0
    by_hand: bool = False
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        release = (
            f", with Streams {first_release_of(self.protocol)} or newer" if self.protocol else ""
        )
        release = f", with Streams {release_of(self.most)} or older" if self.most else release
        return (
            f"wait until {self.subject} is back in the "
            f"group{release}{' (by hand)' if self.by_hand else ''}"
        )

    def apply(self, context: UpgradeContext) -> str | None:
        application = application_context(context)
        entry = application.notes.of(self.roll, self.subject)
        began = context.now()

        def missing() -> str | None:
            group = application.group()
            if not new_members(group, self.subject, entry or InstanceProgress(RESTARTED)):
                return f"no new member of {self.subject} is in the group"
            # Subscriptions are hidden while the group rebalances.
            return instability(group.state)

        patience = context.patience.by_hand if self.by_hand else context.patience.timeout
        if why := application.await_(missing, patience):
            raise TimedOut(
                f"{self.subject} is not back after {patience:g} s",
                why=why,
                next_step="Check its log, and start it.",
                code="not-back",
            )
        self._check_release(
            new_members(application.group(), self.subject, entry or InstanceProgress(RESTARTED))
        )
        application.write(
            self.roll, self.subject, InstanceProgress(BACK, entry.before if entry else ())
        )
        return f"back after {context.now() - began:.1f} s"

    def _check_release(self, members: tuple[GroupMember, ...]) -> None:
        protocols = {member.streams.protocol for member in members if member.streams}
        wrong = [p for p in protocols if p < self.protocol or (self.most and p > self.most)]
        if wrong:
            raise ConnectctlError(
                f"{self.subject} restarted with an unexpected release",
                why=f"it is Kafka Streams {release_of(wrong[0])}",
                next_step="Install the right release on it, restart it, and resume.",
                code="wrong-release",
            )


def new_members(
    group: ClientGroup, instance: str, entry: InstanceProgress
) -> tuple[GroupMember, ...]:
    """Return members that joined after the restart: only the instance's, if members report
    ``application.server``.
    """
    new = tuple(member for member in group.members if member.id not in entry.before)
    servers = {member.streams.server for member in new if member.streams and member.streams.server}
    if servers:
        return (
            tuple(m for m in new if m.streams and m.streams.server == instance)
            if instance in servers
            else new
        )
    return new


@dataclass(frozen=True)
class ApplicationGate(ResourceStep["UpgradeContext"]):
    """Wait until the application is healthy: a stable group of ``members``, and a lag that does not
    grow.

    ``first``: nothing has been changed yet, so a failure is raised as ``Refused``; a resumed run
    begins with it, too.
    """

    members: int
    lag: int = 0
    first: bool = False
    reason: str = ""
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        before = " before anything is changed" if self.first else ""
        return (
            f"check the health of {self.subject}{before}: a stable group of {self.members}, "
            "its lag not growing"
        )

    def apply(self, context: UpgradeContext) -> str | None:
        application = application_context(context)
        if context.resumed and any(
            entry.state != BACK for entry in application.notes.entries.values()
        ):
            return "not waited for: an instance has been changed by this run and is not back yet"
        try:
            return application.gate(self.members, self.lag)
        except TimedOut as e:
            if not self.first or context.resumed:
                raise
            raise Refused(
                f"{self.subject} is not healthy; nothing was changed",
                why=e.why,
                next_step=e.next_step,
                code="unhealthy",
            ) from e

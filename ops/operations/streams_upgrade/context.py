"""The context of the steps that change a Kafka Streams application: reader, gates, and the notes by
which a killed run is resumed or rolled back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.operations.rolling.notes import RunNotes
from connectctl.ops.operations.rolling.waiting import Missing, wait_for
from connectctl.ops.operations.streams_upgrade import observe
from connectctl.ops.operations.streams_upgrade.gates import (
    ApplicationCriteria,
    ApplicationGateState,
    ApplicationHealth,
    evaluate,
)

if TYPE_CHECKING:
    from connectctl.ops.kafka.consumer_group import ClientGroup
    from connectctl.ops.operations.streams_upgrade.observe import ApplicationReader
    from connectctl.ops.operations.upgrade.context import UpgradeContext

CHANGED, RESTARTED, BACK = "changed", "restarted", "back"


@dataclass(frozen=True)
class InstanceProgress:
    """The progress of an instance in a roll. ``before`` are the group members just before its
    restart.
    """

    state: str
    before: tuple[str, ...] = ()


@dataclass
class ApplicationNotes(RunNotes):
    """The notes of one run, by roll and instance (``2:app-1:7001``). ``was``: each instance's
    property before the change.
    """

    FILE: ClassVar[str] = "application.json"
    entries: dict[str, InstanceProgress] = field(default_factory=dict)
    was: dict[str, str | None] = field(default_factory=dict)

    def of(self, roll: int, instance: str) -> InstanceProgress | None:
        """The progress of an instance, None before its first step."""
        return self.entries.get(f"{roll}:{instance}")


@dataclass
class ApplicationContext:
    """The application of a run. ``upgrade`` is the context of the run: journal, clock, gate
    settings, output.
    """

    reader: ApplicationReader
    upgrade: UpgradeContext

    @property
    def notes(self) -> ApplicationNotes:
        """The notes of the current run."""
        journal, run = self.upgrade.journal_and_run()
        return ApplicationNotes.load(journal, run.id)

    def save(self, notes: ApplicationNotes) -> None:
        """Write the notes to the journal."""
        journal, run = self.upgrade.journal_and_run()
        notes.save(journal, run.id)

    def write(self, roll: int, instance: str, entry: InstanceProgress) -> None:
        """Record the progress of an instance."""
        notes = self.notes
        notes.entries[f"{roll}:{instance}"] = entry
        self.save(notes)

    def group(self) -> ClientGroup:
        """Describe the application's consumer group."""
        return self.reader.groups.group(self.reader.application)

    def health(self) -> ApplicationHealth:
        """Take a health snapshot of the application."""
        return observe.health(self.reader, self.upgrade.now())

    def await_(self, what: Callable[[], str | None], patience: float) -> str | None:
        """Poll until ``what`` returns None; return what is missing after ``patience`` seconds, else
        None.
        """

        def probe() -> bool | Missing:
            try:
                missing = what()
            except TimedOut as e:
                missing = str(e)
            return True if missing is None else Missing(missing)

        found = wait_for(self.upgrade, probe, patience)
        return found.reason if isinstance(found, Missing) else None

    def gate(self, members: int, lag: int) -> str:
        """Wait until the application is healthy; returns the step's detail. Raises ``TimedOut``."""
        patience = self.upgrade.patience
        criteria = ApplicationCriteria(members, lag, patience.looks, patience.timeout)
        watch = ApplicationGateState(self.upgrade.now())

        def probe() -> str | Missing:
            nonlocal watch
            result = evaluate(watch, self.health(), criteria)
            watch = result.watch
            if result.passed:
                lag_now = watch.last.lag if watch.last else None
                return f"healthy at {criteria.looks} observations in a row, lag {lag_now or 0}"
            if result.stopped:
                raise TimedOut(
                    f"{self.reader.application} failed the health gate; upgrade stopped. It keeps "
                    "running as it is now",
                    why=result.stopped,
                    next_step="See connectctl upgrade status, and the log of the instance "
                    "restarted last.",
                    code="gate",
                )
            return result.missing

        return str(wait_for(self.upgrade, probe))


def application_context(context: UpgradeContext) -> ApplicationContext:
    """Return the context of the run's application. Raises ``ConnectctlError`` if none is
    configured.
    """
    if context.application is None:
        raise ConnectctlError(
            "The run changes a stream application, but its instances are not configured"
        )
    return ApplicationContext(context.application, context)

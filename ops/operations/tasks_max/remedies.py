"""Connectors that will fail because of tasks.max: the remedies for each, and their steps
(KIP-1004).

A permanent remedy is a tasks.max that equals the number of tasks that the connector generates.
``tasks.max.enforce=false`` is a bridge on workers from 3.8 on, until a release without it. A
connector may also be left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from connectctl.ops.connect.connector import Connector, State, verdict_of
from connectctl.ops.connect.health import failed_parts, is_healthy
from connectctl.ops.connect.target_state_wait import GRACE
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.core.finding import counted
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.operations.connectors.configure import ChangeConfig, words
from connectctl.ops.operations.connectors.context import POLL
from connectctl.ops.operations.connectors.steps import Restart
from connectctl.ops.operations.rolling.waiting import FOR_EVER
from connectctl.ops.operations.tasks_max.forecast import (
    TasksMaxForecast,
    horizon,
    on_present_workers,
    on_release,
)
from connectctl.ops.operations.tasks_max.observe import (
    Release,
    TaskSet,
    TasksSeen,
    enforces,
    refusal_in,
)

if TYPE_CHECKING:
    from connectctl.ops.operations.upgrade.context import UpgradeContext

MAX, ENFORCE = "tasks.max", "tasks.max.enforce"
_BREAKS_NOW = (TasksMaxForecast.FAILED, TasksMaxForecast.NEXT_START, TasksMaxForecast.MAY_FAIL)
_BREAKS_THEN = (TasksMaxForecast.FAILS, TasksMaxForecast.MAY_FAIL)


class RemedyChoice(StrEnum):
    RAISE = "raise"
    BRIDGE = "bridge"
    LEAVE = "leave"


@dataclass(frozen=True)
class Remedy:
    """A connector that will fail, and the properties of its remedies. ``needs`` is the number of
    tasks that it generates, 0 if unknown.

    ``raised`` and ``bridge`` are None if the remedy is unavailable; ``why_not`` is the reason.
    """

    connector: str
    why: str
    needs: int
    raised: Mapping[str, str | None] | None
    bridge: Mapping[str, str | None] | None
    was: Mapping[str, str | None]
    why_not: str = ""

    def of(self, choice: RemedyChoice) -> Mapping[str, str | None] | None:
        """Return the properties of a choice, None if it is unavailable."""
        return {
            RemedyChoice.RAISE: self.raised,
            RemedyChoice.BRIDGE: self.bridge,
            RemedyChoice.LEAVE: {},
        }[choice]

    def describe(self, chosen: RemedyChoice) -> str:
        """Return the choices in one line, the chosen one first."""
        texts = {
            RemedyChoice.RAISE: f"raise: {words(self.raised)}, which is permanent",
            RemedyChoice.BRIDGE: f"bridge: {words(self.bridge)}, until a release without {ENFORCE}",
            RemedyChoice.LEAVE: "leave it unchanged",
        }
        if self.raised is None:
            texts[RemedyChoice.RAISE] = f"raise: unavailable ({self.why_not})"
        if self.bridge is None:
            texts[RemedyChoice.BRIDGE] = f"bridge: unavailable ({self.why_not})"
        alternatives = "; or ".join(text for choice, text in texts.items() if choice is not chosen)
        return (
            f"{self.connector}: {self.why}. Chosen: {texts[chosen]}. Alternatives: {alternatives}."
        )


def remedies_for(seen: TasksSeen, release: Release | None) -> tuple[Remedy, ...]:
    """Return the connectors that fail now, at their next start, or on ``release`` (by default the
    next release that enforces the limit).
    """
    aim = release or horizon(seen)
    return tuple(filter(None, (_remedy(tasks, seen, aim) for tasks in seen.sets)))


def _remedy(tasks: TaskSet, seen: TasksSeen, aim: Release | None) -> Remedy | None:
    today, later = on_present_workers(tasks, seen), on_release(tasks, aim)
    if today not in _BREAKS_NOW and later not in _BREAKS_THEN:
        return None
    needs = max(
        tasks.size,
        (tasks.refusal.generated or 0) if tasks.refusal else 0,
        (tasks.last or 0) if tasks.stopped else 0,
    )
    had = {name: tasks.config.get(name) for name in (MAX, ENFORCE)}
    when = (
        f"it {today} today"
        if today in _BREAKS_NOW
        else f"it fails on {aim or f'a release without {ENFORCE}'}"
    )
    when = {
        TasksMaxForecast.FAILED: "it is FAILED",
        TasksMaxForecast.NEXT_START: "it fails at its next start",
    }.get(today, when)
    why = f"it generates {needs or 'too many'} tasks with a {MAX} of {tasks.limit}, so that {when}"
    able = needs > (tasks.limit or 0)
    raised: dict[str, str | None] | None = {MAX: str(needs)} if able else None
    if raised is not None and had[ENFORCE] is not None:
        raised[ENFORCE] = None
    helps = tasks.enforce is not False and (aim is None or enforces(aim) or bool(seen.enforcing))
    bridge: dict[str, str | None] | None = {ENFORCE: "false"} if helps else None
    why_not = "number of generated tasks unknown" if not able else "already set"
    return Remedy(tasks.name, why, needs, raised, bridge, had, why_not)


def choices(found: tuple[Remedy, ...], selected: Mapping[str, str]) -> dict[str, RemedyChoice]:
    """Return the choice for each connector: ``raise``, ``bridge`` and ``leave`` name connectors,
    ``others`` a choice.

    Raises ``BadInput`` for connectors without a remedy, and for those that are named twice.
    """
    known = {remedy.connector for remedy in found}
    try:
        default = RemedyChoice(selected.get("others", RemedyChoice.RAISE))
    except ValueError as e:
        raise BadInput(
            f"others={selected['others']} is not one of {', '.join(RemedyChoice)}"
        ) from e
    chosen: dict[str, RemedyChoice] = {}
    for choice in RemedyChoice:
        for name in filter(None, (n.strip() for n in selected.get(choice, "").split(","))):
            if name not in known:
                hint = f"These will: {', '.join(sorted(known)) or 'none'}."
                raise BadInput(f"{name} does not exceed {MAX}", next_step=hint)
            if name in chosen:
                raise BadInput(f"{name} is named for {chosen[name]} and for {choice}")
            chosen[name] = choice
    return {
        remedy.connector: chosen.get(remedy.connector) or _fallback(remedy, default)
        for remedy in found
    }


def _fallback(remedy: Remedy, default: RemedyChoice) -> RemedyChoice:
    return default if remedy.of(default) is not None else RemedyChoice.LEAVE


def steps(
    found: tuple[Remedy, ...], chosen: Mapping[str, RemedyChoice], *, patch: bool
) -> Iterator[Any]:
    """Yield two steps for each changed connector. Raises ``BadInput`` for an unavailable choice."""
    for remedy in found:
        values = remedy.of(chosen[remedy.connector])
        if values is None:
            raise BadInput(
                f"{chosen[remedy.connector]} is unavailable for {remedy.connector}",
                why=remedy.why_not,
            )
        if not values:
            continue
        was = {name: remedy.was.get(name) for name in values}
        yield Reconfigure(remedy.connector, dict(values), was, patch, remedy.why)
        limit = values.get(MAX)
        yield SettleTasks(remedy.connector, int(limit) if limit else 0)


@dataclass(frozen=True)
class Reconfigure(ChangeConfig):
    """Set properties of a connector in one request; None removes one. ``was`` are the values that
    an undo sets.

    ``patch``: the workers change single properties (KIP-477, 3.8); else the whole configuration is
    read and written.
    """

    values: dict[str, str | None]
    was: dict[str, str | None]
    patch: bool = False
    reason: str = ""

    def describe(self) -> str:
        return f"{words(self.values)} on {self.subject}"

    @property
    def properties(self) -> dict[str, str | None]:
        return self.values


@dataclass(frozen=True)
class SettleTasks(ResourceStep["UpgradeContext"]):
    """Wait until a reconfigured connector is stable: it and its tasks run, or it is paused or
    stopped as before.

    ``limit`` is its new tasks.max. Tasks that had failed because there were too many are restarted
    once: workers do not restart them.
    """

    limit: int = 0
    reason: str = "the number of tasks is known only after a connector generates them again"
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"wait for {self.subject} to stabilise"

    def apply(self, context: UpgradeContext) -> str | None:
        began, healthy, again = context.now(), 0, False

        def stable() -> str | None:
            nonlocal began, healthy, again
            found = context.read(self.subject)
            waited = context.now() - began
            settled, word = _settled(found)
            healthy = healthy + 1 if settled else 0
            # Statuses have no time: for a while they may be those before the change.
            if healthy >= context.patience.looks and waited >= GRACE:
                return f"{word}, {counted(len(found.tasks), 'task')}"
            if not settled and waited >= GRACE and _refused(found) and not again:
                self._restart(context, found)
                again, began, healthy = True, context.now(), 0
            elif not settled and waited >= (
                RECOVERY if again and _refused(found) else context.patience.timeout
            ):
                self._stop_if_refused_again(found)
                raise TimedOut(
                    f"{self.subject} is not stable after {waited:.0f} s",
                    why=word,
                    next_step=f"connectctl connectors show {self.subject}",
                    code="not-settled",
                )
            return None

        return context.until(stable, FOR_EVER, POLL)

    def _restart(self, context: UpgradeContext, found: Connector) -> None:
        self._stop_if_refused_again(found)
        context.progress(
            f"restarting the parts of {self.subject} that failed because of too many tasks"
        )
        Restart(self.subject, True).apply(context)

    def _stop_if_refused_again(self, found: Connector) -> None:
        refusal = refusal_in(found.status)
        if refusal is not None and refusal.generated and self.limit and refusal.limit == self.limit:
            raise ConnectctlError(
                f"{self.subject} generates {refusal.generated} tasks with a {MAX} of "
                f"{self.limit}: it ignores the limit",
                next_step="Roll back (connectctl upgrade abort), then plan with --set "
                f"bridge={self.subject}.",
                code="ignores-tasks-max",
            )


RECOVERY = 30.0
"""Seconds within which restarted parts must have another status than FAILED because of too many
tasks.
"""


def _settled(found: Connector) -> tuple[bool, str]:
    verdict = verdict_of(found, found.owners)
    resting = verdict.state is not State.RUNNING
    well = is_healthy(verdict.state) and not (resting and (verdict.running or failed_parts(found)))
    return well and (bool(found.tasks) or resting), str(verdict)


def _refused(found: Connector) -> bool:
    return any(refusal_in(status) is not None for status in (found.status, *found.tasks.values()))

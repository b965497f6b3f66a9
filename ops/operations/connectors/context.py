"""The context of steps that change connectors: the workers, the clock, and the current waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import Connector, State, path_of, restoring_verb
from connectctl.ops.connect.target_state_wait import WaitProgress, WaitState, evaluate
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut, Unreachable
from connectctl.ops.core.wait import observe_until
from connectctl.ops.operations.connectors import observe
from connectctl.ops.operations.connectors.contradictions import not_listed
from connectctl.ops.operations.connectors.observe import AGREEING, Facts, read_one

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.core.journal import Journal, Run

POLL = 0.5
"""Seconds between two observations of a wait."""


@dataclass
class Wait:
    """A current wait: its start, its progress, and its end."""

    began: float
    waiting: WaitState
    last: str = "of unknown state"
    end: WaitProgress | None = None


@dataclass
class StepContext(RunContext):
    """The context of the steps. ``before`` has each connector before its change, and the time of
    the change.

    ``journal`` stores configurations, for steps that require one. ``facts`` reads the facts that
    determine the state of connectors; it is None without brokers, and the statuses of workers
    decide then. ``verified`` are the unchanged connectors whose states the run verifies.
    """

    calls: ConnectCalls
    timeout: float
    before: dict[str, tuple[Connector, float]] = field(default_factory=dict)
    waits: dict[str, Wait] = field(default_factory=dict)
    facts: Callable[[], Facts] | None = None
    journal: Journal | None = None
    verified: tuple[str, ...] = ()

    def read(self, name: str, facts: Facts | None = None) -> Connector:
        """Return the current connector, with ``facts`` if they were just read.

        Raises ``Refused`` if the workers do not have a connector of the config topic.
        """
        if self.facts is None and facts is None:
            return read_one(self.calls, name)

        def read_again() -> tuple[Connector | ConnectctlError, Facts]:
            connector = observe.read_or_not_found(self.calls, name)
            return connector, facts or self._facts()

        def agree(observation: tuple[Connector | ConnectctlError, Facts]) -> bool:
            return isinstance(observation[0], Connector) or name not in (
                observation[1].configured or ()
            )

        found, known = observe_until(
            read_again, agree, AGREEING, POLL, now=self.now, sleep=self.sleep
        )
        if isinstance(found, ConnectctlError):
            raise not_listed(self.calls, name) if name in (known.configured or ()) else found
        return known.of(found)

    def _facts(self) -> Facts:
        """Return the current facts; empty ones without brokers."""
        return self.facts() if self.facts else Facts()

    def journal_and_run(self) -> tuple[Journal, Run]:
        assert self.journal is not None
        assert self.run is not None
        return self.journal, self.run

    def change(self, connector: str, method: str, path: str) -> Any:
        """Send a change, and record the connector before it."""
        before = read_one(self.calls, connector)
        answer = self.calls.send(method, path_of("connectors", connector) + path)
        self.before[connector] = before, self.now()
        return answer

    def with_state_restored(self, connector: str, was: str | None, refusal: Refused) -> Refused:
        """Restore the state ``was`` of the connector that this run stopped, and return ``refusal``.
        No offset was written.
        """
        if was is None:
            return refusal
        verb = restoring_verb(was)
        self.change(connector, "PUT", f"/{verb}")
        return Refused(
            f"{refusal.what}; {connector} was stopped, and is {verb}d again",
            why=refusal.why,
            next_step=refusal.next_step,
            code=refusal.code,
        )

    def await_gone(self, name: str, *, deleted: bool = True) -> None:
        """Wait until the group is not rebalancing and, if ``name`` is ``deleted``, no worker runs a
        part of it.
        """

        def gone() -> bool | None:
            owners = self.facts().owners if self.facts else None
            if self.facts and owners is None:
                return None  # a rebalance
            return not (deleted and owners and owners.parts(name)) or None

        if not self.until(gone, self.timeout, POLL):
            what = (
                f"Workers still run {name}, which is deleted,"
                if deleted
                else "The workers' group is still rebalancing"
            )
            raise TimedOut(f"{what} after {self.timeout:g} s")

    def await_all(self, subject: str, state: State) -> None:
        """Begin to wait for all changed connectors at once.

        ``state`` is the state of ``subject``, and is assumed for the others. A wait for another
        state, or for an earlier change, begins again with the step of its connector.
        """
        for name, (before, began) in self.before.items():
            wait = self.waits.get(name)
            other = wait is not None and (wait.waiting.wanted is not state or wait.began != began)
            if wait is None or (other and (name == subject or wait.end is not None)):
                self.waits[name] = Wait(began, WaitState(state, before))

    def check_waits(self) -> None:
        facts = None
        for name, wait in self.waits.items():
            if wait.end is None:
                try:
                    facts = facts or (self.facts() if self.facts else None)
                    progress = evaluate(
                        wait.waiting, self.read(name, facts), self.now() - wait.began
                    )
                except (Unreachable, TimedOut) as e:
                    wait.last = f"of unknown state, {e.what}"
                    continue
                wait.waiting, wait.last = progress.waiting, str(progress.verdict)
                wait.end = progress if progress.done or progress.failed else None

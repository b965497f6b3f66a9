"""Regains the tasks of a run that are stale because of a start that did not complete.

A start writes its task configs, then fences the older tasks, and then writes the task count record
(``generation``). In between, the older tasks are stale and the new ones may not run. If the driver
of the start is dead then, the earlier run starts its tasks again (docs/decisions/0019).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.clients.kafka_protocol.run_presence import GONE
from connectctl.ops.core.errors import NotAuthorized
from connectctl.ops.task_runtime.job.config_topic_records import ConfigTopicState, Generation

if TYPE_CHECKING:
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.task_runtime.job.generation import Leader
    from connectctl.ops.task_runtime.task.retries import RetryPolicy

PAUSE = 1.0
UNOBSERVABLE = 120.0
"""Seconds to wait for a start if this principal may not describe the group of the runs."""


class TakenOver(Exception):
    """Raised if another run or worker has the tasks. The text is the reason."""


def replace_tasks(
    leader: Leader,
    name: str,
    config: Mapping[str, str],
    generation: Generation,
    tasks: Sequence[Mapping[str, str]],
) -> Generation:
    """Return the new generation of ``tasks``, which replace those of ``generation``. Raises
    ``TakenOver`` if another run or worker has replaced them, and the errors of ``Leader.start``.
    """

    def choose(before: ConfigTopicState) -> Sequence[Mapping[str, str]]:
        # After an unknown outcome the task configs in the topic may be those of this call.
        if before.commit != generation.commit and before.tasks != tuple(map(dict, tasks)):
            raise TakenOver(f"the connector {name} has already generated a new set of task configs")
        return tasks

    return leader.start(name, config, choose)


@dataclass(frozen=True)
class RegainTasks:
    """Regains the ``tasks`` of a run of ``name``. ``generation`` is their stale generation.

    ``others`` returns the other live runs of the connector. ``workers`` returns whether the group
    has live workers.
    """

    leader: Leader
    name: str
    config: Mapping[str, str]
    tasks: Sequence[Mapping[str, str]]
    generation: Generation
    others: Callable[[], Sequence[Holder]]
    workers: Callable[[], bool]
    retry: RetryPolicy
    note: Callable[[str], None] = lambda line: None
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __call__(self) -> Generation:
        """Return a new generation of the same tasks, once the start that made them stale is not in
        progress any more. Raises ``TakenOver``.
        """
        self._await_nobody()
        wrote = False

        def choose(before: ConfigTopicState) -> Sequence[Mapping[str, str]]:
            # This producer has the leader's id: no other start can complete any more, and the state
            # shows one that did. A set with the same tasks may be an earlier attempt of this call
            # with an unknown outcome.
            nonlocal wrote
            if not wrote or before.tasks != tuple(map(dict, self.tasks)):
                self._check(before)
            wrote = True
            return self.tasks

        generation = self.leader.start(self.name, self.config, choose)
        self.note(
            f"{self.name} runs its tasks again: the start that had made them stale did not complete"
        )
        return generation

    def _await_nobody(self) -> None:
        """Wait until no other run has been alive, and no start has begun, for long enough. Raises
        ``TakenOver``.
        """
        commit, since = -1, self.now()
        while True:
            state = self.retry(
                "read the task configurations", lambda: self.leader.read_state(self.name)
            )
            self._check(state)
            if self.retry("describe the group", self.workers):
                raise TakenOver(f"group {self.leader.group} has live workers that run {self.name}")
            if commit < 0:
                self.note(
                    f"waiting: another start made the tasks of {self.name} stale and has not "
                    "completed yet"
                )
            alive = self._alive()
            if alive or state.commit != commit:
                commit, since = state.commit, self.now()
            elif self.now() - since >= (UNOBSERVABLE if alive is None else GONE):
                return
            if self.retry.stopping():
                raise TakenOver(f"another start of {self.name} is in progress")
            self.sleep(PAUSE)

    def _alive(self) -> bool | None:
        """Return whether another run of the connector is alive; None if that is unknown."""
        try:
            return bool(self.retry("describe the group of the runs", self.others))
        except NotAuthorized:
            return None

    def _check(self, now: ConfigTopicState) -> None:
        """Raise ``TakenOver`` if the connector was deleted or another start has completed."""
        if now.config is None:
            raise TakenOver(f"the connector {self.name} was deleted")
        # A task count record after that of this run: a start has completed since, even if
        # another start has begun after it.
        if now.fenced > now.commit or now.fenced >= self.generation.read_to:
            raise TakenOver(
                f"the connector {self.name} has already generated a new set of task configs"
            )

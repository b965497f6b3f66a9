"""What a run does whose tasks are stale: whether another one has them, or a start that did not come
through.

A start writes its task configs before it fences, and says that both are done after it
(``generation``). In between the tasks of before are stale, and no others may run. Where the starter
is gone by then, the run of before starts its tasks again (docs/decisions/0019).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.clients.kafka_protocol.run_presence import GONE
from connectctl.ops.core.errors import NotAuthorized
from connectctl.ops.task_runtime.job.config_topic_records import ConfigTopicState

if TYPE_CHECKING:
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.task_runtime.job.config_topic_records import Generation
    from connectctl.ops.task_runtime.job.generation import Leader
    from connectctl.ops.task_runtime.task.retries import RetryPolicy

PAUSE = 1.0
UNOBSERVABLE = 120.0
"""Seconds for a start that nobody can see, because this principal may not describe the group of the
runs.
"""


class TakenOver(Exception):
    """Another one has the tasks; the reason is its text."""


def replace_tasks(
    leader: Leader,
    name: str,
    config: Mapping[str, str],
    generation: Generation,
    tasks: Sequence[Mapping[str, str]],
) -> Generation:
    """Return the new generation of ``tasks``, which replace those of ``generation``. Raises
    ``TakenOver`` where others have replaced these, and what ``Leader.start`` raises.
    """

    def choose(before: ConfigTopicState) -> Sequence[Mapping[str, str]]:
        # After a doubt the tasks that stand there may be our own.
        if before.commit != generation.commit and before.tasks != tuple(map(dict, tasks)):
            raise TakenOver(f"the connector {name} has already generated a new set of task configs")
        return tasks

    return leader.start(name, config, choose)


@dataclass(frozen=True)
class RegainTasks:
    """Regains the tasks of a run of ``name``: ``tasks`` are those that it runs, ``generation`` is
    their stale generation.

    ``others`` are the other runs of the connector that are alive, ``workers`` says whether workers
    of the group live.
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
        """A new generation of the same tasks, once whoever made them stale is gone. Raises
        ``TakenOver``.
        """
        self._await_nobody()
        wrote = False

        def choose(before: ConfigTopicState) -> Sequence[Mapping[str, str]]:
            # The leader's id is ours: from here on no other start can come through, and one that
            # did is seen. What has our own tasks may be an attempt of ours of which we did not
            # hear.
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
        """Until nobody who could have begun a start was alive for long enough to be sure of it.
        Raises ``TakenOver``.
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
        """Whether another run of the connector is alive; None where that cannot be seen."""
        try:
            return bool(self.retry("describe the group of the runs", self.others))
        except NotAuthorized:
            return None

    def _check(self, now: ConfigTopicState) -> None:
        """Raises ``TakenOver`` where the task configs that stand there are somebody's who came
        through.
        """
        if now.config is None:
            raise TakenOver(f"the connector {self.name} was deleted")
        # A count record behind ours: somebody came through since, whether or not another start has
        # begun behind that.
        if now.fenced > now.commit or now.fenced >= self.generation.read_to:
            raise TakenOver(
                f"the connector {self.name} has already generated a new set of task configs"
            )

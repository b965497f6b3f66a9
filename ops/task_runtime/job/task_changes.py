"""Looks, while tasks run, whether their connector would generate others: for partitions that have
appeared since.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from connectctl.ops.core.errors import ConnectctlError

TaskConfigs = list[dict[str, str]]


@dataclass(eq=False)
class TaskChanges:
    """Calls ``look`` with the running tasks every ``seconds``, on a thread of its own; None: never.

    ``look`` returns the tasks that replace them, None while they are the right ones. ``note`` gets
    lines for the user: what keeps it from looking, once until it can look again.
    """

    seconds: float | None
    look: Callable[[Sequence[dict[str, str]]], TaskConfigs | None]
    note: Callable[[str], None]
    _found: TaskConfigs | None = None
    _failing: bool = False
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def found(self) -> bool:
        """True if the running tasks have to be replaced."""
        return self._found is not None

    def take(self) -> TaskConfigs | None:
        """Return the tasks that replace the running ones, once; None where these continue."""
        found, self._found = self._found, None
        return found

    @contextmanager
    def watching(self, running: Callable[[], Sequence[dict[str, str]]]) -> Iterator[None]:
        """Look while this lasts. ``running`` returns the tasks of the moment."""
        if self.seconds is None:
            yield
            return
        threading.Thread(
            target=self._watch, args=(self.seconds, running), daemon=True, name="task-changes"
        ).start()
        try:
            yield
        finally:
            self._over.set()

    def _watch(self, seconds: float, running: Callable[[], Sequence[dict[str, str]]]) -> None:
        while not self._over.wait(seconds):
            if not self.found:
                self.update(running())

    def update(self, running: Sequence[dict[str, str]]) -> None:
        """Look once."""
        try:
            self._found = self.look(running)
            self._failing = False
        except ConnectctlError as e:
            if not self._failing and not self._over.is_set():
                self.note(
                    f"warning: could not look for new topics and partitions, which is repeated: {e}"
                )
            self._failing = True

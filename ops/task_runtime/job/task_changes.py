"""Checks, while tasks run, whether their connector would generate other tasks now, for example for
new partitions.
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
    """A periodic check on a separate thread, every ``seconds``; None disables it.

    ``replacements`` is called with the running tasks. It returns the tasks that replace them, or
    None if nothing has changed. ``note`` receives a warning if the check fails, once until it
    succeeds again.
    """

    seconds: float | None
    replacements: Callable[[Sequence[dict[str, str]]], TaskConfigs | None]
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
        """Check periodically within the context. ``running`` returns the running tasks."""
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
        """Check once."""
        try:
            self._found = self.replacements(running)
            self._failing = False
        except ConnectctlError as e:
            if not self._failing and not self._over.is_set():
                self.note(
                    f"warning: could not look for new topics and partitions, which is repeated: {e}"
                )
            self._failing = True

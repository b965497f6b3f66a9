"""An attempt of a campaign's task, whatever its kind: what it is given, and what it reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

SOCKET_TIMEOUT_MS = 1500


@dataclass(frozen=True)
class Attempt:
    """One attempt of one task. ``generation`` counts for as long as the file ``generations`` says
    no other. ``kind`` is a source, which has ``sources`` and the topic ``offsets``, or a transform
    of ``input``, one of ``tasks``; ``topic`` is what they write to.
    """

    bootstrap: str
    group: str
    connector: str
    topic: str
    task: int
    generation: int
    generations: str
    seed: int
    timeout_ms: int
    kind: str = "source"
    offsets: str = ""
    sources: Sequence[int] = ()
    input: str = ""
    tasks: int = 1
    boundary: str = "poll"
    strict: bool = False
    hesitation: float = 0.0
    """Seconds to wait at most between initialisation, reading and sending."""
    silent: bool = False
    """Every other question for ends is answered with no offset, as of leaders that have just
    died.
    """
    believes: bool = False
    """What comes as an end is taken for one."""

    def stale_because(self) -> str | None:
        """Why its generation is not the newest; None where it is."""
        newest = int(Path(self.generations).read_text())
        return (
            None
            if newest == self.generation
            else f"generation {newest} is newer than {self.generation}"
        )


class Told(TaskProducer):
    """A producer that tells of its first commit, and may be slow to begin."""

    hesitate: Callable[[], None]
    first = True

    def initialise(self, patience: float) -> None:
        super().initialise(patience)
        self.hesitate()

    def begin(self) -> None:
        if self.first:
            self.hesitate()
        super().begin()

    def commit(self, patience: float) -> None:
        super().commit(patience)
        if self.first:
            self.first = False
            report("commits")


class Telling(list[str]):
    """Doubts, each told as it comes: their owner may be killed before its end."""

    def append(self, doubt: str, /) -> None:
        super().append(doubt)
        report("doubt", why=doubt)


def report(what: str, **more: Any) -> None:
    """One line, in one piece, for the campaign."""
    os.write(1, json.dumps({"pid": os.getpid(), "what": what, **more}).encode() + b"\n")

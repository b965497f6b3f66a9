"""Task processes for the campaign: forked from one that has all modules loaded, each a process to
be killed or stopped.

Reads a task per line of its input, and reports per line of its output. When its input ends, all of
its processes end.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from connectctl.ops.core.errors import ConnectctlError
from live import campaignsource, campaigntransform
from live.campaignattempt import Attempt, report

KINDS = {"source": campaignsource.run, "transform": campaigntransform.run}


def run(attempt: Attempt, stop: Sequence[int]) -> None:
    """The attempt, to its end, or until ``stop`` has something."""
    faulthandler.register(signal.SIGUSR1)
    try:
        ended = KINDS[attempt.kind](attempt, lambda: bool(stop))
        how, why = ended.reason.value, ended.detail
    except ConnectctlError as e:
        how, why = "failed", f"{e.code}: {e}"
    report("ended", how=how, why=why)


def _stopped() -> list[int]:
    """Gets the number of a SIGTERM when that comes."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    return stop


def main() -> None:
    """Fork an attempt for each line, until there is none."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number, line in enumerate(sys.stdin, 1):
        if os.fork() == 0:
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                # Before anybody knows of it: who is told to stop at once is to stop, and not to die
                # without a word.
                stop = _stopped()
                report("begins", number=number)
                run(Attempt(**json.loads(line)), stop)
            except BaseException as e:  # noqa: BLE001  # whatever it was, the campaign is to hear of it
                with suppress(BaseException):
                    report("ended", how="failed", why=repr(e))
            finally:
                os._exit(0)
    os.killpg(0, signal.SIGKILL)


def line_of(attempt: Attempt) -> str:
    """``attempt`` as ``main`` reads it."""
    return json.dumps(asdict(attempt)) + "\n"


if __name__ == "__main__":
    main()

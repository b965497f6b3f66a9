"""The watch at the front door: ^C and SIGTERM end a command within a second, whatever it waits for.

Python hears a signal between two of its own instructions. A main thread that waits in C code (librdkafka asking a broker
that does not answer) or joins threads that do hears nothing until the call returns. The kernel's signal handler does
write a byte to a pipe at once, though (``signal.set_wakeup_fd``), and a thread reads it: where the main thread has not
ended the process ``GRACE`` later, the thread does. A run that was being carried out is then as a killed one is, and can be
resumed by design.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from connectctl.ops.core.interrupts import WORK

GRACE = 0.7
"""Seconds that the main thread has to end by itself: enough to close what answers."""
LOOK = 0.05
CURSOR = "\x1b[?25h"
"""Shows a terminal's cursor again, which a bar or a screen may have hidden."""


@dataclass
class Watch:
    """``reported`` is whether the person was informed of the end already, by whichever thread."""

    reported: bool = False
    signals: int = 0

    def start(self, line: Callable[[], str]) -> None:
        """Begin to watch; ``line`` gives what is said at the end. Only the main thread may."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=self._listen, args=(reader, line), name="interrupts", daemon=True).start()

    def _listen(self, reader: int, line: Callable[[], str]) -> None:
        while number := os.read(reader, 1):
            if number[0] in (signal.SIGINT, signal.SIGTERM) and not WORK.alone:
                self.signals += 1
                threading.Thread(target=self._end, args=(number[0], self.signals, line), daemon=True).start()

    def _end(self, number: int, count: int, line: Callable[[], str]) -> None:
        time.sleep(GRACE)
        if WORK.alone:
            return
        if count == 1 and WORK.in_order:
            self._write(f"Interrupted: {WORK.in_order[-1]}; ^C again ends it immediately.\n")
            while WORK.in_order:
                time.sleep(LOOK)
            time.sleep(GRACE)
        if not self.reported:
            self.reported = True
            self._write(line() + "\n")
        os._exit(130 if number == signal.SIGINT else 128 + number)

    @staticmethod
    def _write(text: str) -> None:
        """Past all buffers, whose locks the main thread may hold."""
        text = (CURSOR if sys.stderr.isatty() else "") + text
        with suppress(OSError):
            os.write(2, text.encode(errors="replace"))

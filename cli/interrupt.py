"""^C and SIGTERM end a command within a second, whatever it waits for.

Python handles a signal between two of its own instructions. A main thread that waits in C code
(librdkafka requesting a broker that does not respond), or joins threads that do, handles it only
when the call returns. The signal handler in C writes a byte to a pipe immediately
(``signal.set_wakeup_fd``), and a thread reads it: if the main thread has not ended the process
after ``GRACE``, the thread does. A run in execution is then in the state of a killed one, and can
be resumed.
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
"""Seconds for the main thread to end by itself: enough to close connections that respond."""
POLL_INTERVAL = 0.05
CLEARED = "\x1b[?25h\r\x1b[2K"
"""Shows a terminal's cursor again, which a progress bar may have hidden, and erases its line."""


@dataclass
class Watch:
    """Ends the process on signals. ``reported``: a thread has already printed that it ends."""

    reported: bool = False
    signals: int = 0

    def start(self, line: Callable[[], str]) -> None:
        """Start; ``line`` returns the message for the end. Only the main thread may call it."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(
            target=self._listen, args=(reader, line), name="interrupts", daemon=True
        ).start()

    def _listen(self, reader: int, line: Callable[[], str]) -> None:
        while number := os.read(reader, 1):
            if number[0] in (signal.SIGINT, signal.SIGTERM) and not WORK.alone:
                self.signals += 1
                threading.Thread(
                    target=self._end, args=(number[0], self.signals, line), daemon=True
                ).start()

    def _end(self, number: int, count: int, line: Callable[[], str]) -> None:
        time.sleep(GRACE)
        if WORK.alone:
            return
        if count == 1 and WORK.in_order:
            self._write(f"Interrupted: {WORK.in_order[-1]}; ^C again ends it immediately.\n")
            while WORK.in_order:
                time.sleep(POLL_INTERVAL)
            time.sleep(GRACE)
        if not self.reported:
            self.reported = True
            self._write(line() + "\n")
        os._exit(130 if number == signal.SIGINT else 128 + number)

    @staticmethod
    def _write(text: str) -> None:
        """Write without buffers, whose locks the main thread may hold."""
        text = (CLEARED if sys.stderr.isatty() else "") + text
        with suppress(OSError):
            os.write(2, text.encode(errors="replace"))

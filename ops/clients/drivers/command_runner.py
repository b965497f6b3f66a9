"""Runs the operator's own commands: for so long and no longer, with nothing on standard input,
secrets masked.
"""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, cast

from connectctl.ops.config.masking import masked
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.core.interrupts import put_in_order

KEPT = 16 * 1024
"""Bytes of output that are kept, the last ones."""
LEFT_BEHIND = 1.0
"""Seconds to continue reading when the command has ended and a process that it started still holds
its output.
"""
GRACE = 3.0
"""Seconds for a command to end after SIGTERM, before SIGKILL."""
SHOWN_LINES, SHOWN_LENGTH = 3, 300
_LOOK = 0.1


@dataclass(frozen=True)
class CommandOutput:
    """The output of a command, with its secrets: standard output, and both outputs together. The
    beginning may be cut off.
    """

    out: str
    both: str
    status: int

    @property
    def last_line(self) -> str | None:
        """Return the last line of standard output that is not blank."""
        return next(
            (
                line.strip()[:SHOWN_LENGTH]
                for line in reversed(self.out.splitlines())
                if line.strip()
            ),
            None,
        )


class CommandFailed(ConnectctlError):
    """A command ended with an exit status other than 0. ``output`` is its output, with its secrets."""

    code = "command-failed"

    def __init__(self, what: str, output: CommandOutput, *, why: str):
        super().__init__(what, why=why)
        self.output = output


@dataclass
class Commands:
    """Runs commands, each for at most ``timeout`` seconds. ``secrets`` returns the values to mask,
    and is called when needed.
    """

    timeout: float
    secrets: Callable[[], Iterable[str]] = tuple

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        return (*self.secrets(), *_secrets_around())

    def hide(self, text: str) -> str:
        return masked(text, self._secrets)

    def run(self, command: str | Sequence[str], purpose: str, *, keep: int = KEPT) -> CommandOutput:
        """Run a shell line, or words without a shell, and give the last ``keep`` bytes that it
        printed.

        Raises ``CommandFailed`` for an exit status that is not 0, ``ConnectctlError`` for a command
        that cannot be started, ``TimedOut`` after ending it with all that it started in its process
        group, both with secrets masked. ``purpose`` begins the sentence:
        ``The restart of worker-1:8083``.
        """
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        text = command if isinstance(command, str) else shlex.join(command)
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as e:
            why = e.strerror if isinstance(e, OSError) else str(e)
            what = f"{purpose}: {self.hide(text)} cannot be started"
            raise ConnectctlError(what, why=why, code="command-failed") from e
        output = _Output(keep)
        with process, put_in_order("ending the command that runs"):
            try:
                ended = output.read(process, time.monotonic() + self.timeout)
            finally:
                # Also when the person interrupts: a session of its own does not hear their Ctrl-C.
                if process.poll() is None:
                    _end(process)
                output.selector.close()
        printed = CommandOutput(
            output.text(output.out), output.text(output.both), process.returncode
        )
        if not ended:
            raise TimedOut(
                f"{purpose} took longer than {self.timeout:g} s and was ended",
                why=self._why(f"{self.hide(text)} did not end", printed),
                next_step="Try it by hand; raise workers.timeout if it needs longer.",
            )
        if process.returncode != 0:
            what = f"{self.hide(text)} ended: {_status(process.returncode)}"
            raise CommandFailed(f"{purpose} failed", printed, why=self._why(what, printed))
        return printed

    def _why(self, what: str, output: CommandOutput) -> str:
        text = output.both if len(output.both) <= KEPT else _whole_words(output.both[-KEPT:])
        shown = (line.strip()[:SHOWN_LENGTH] for line in self.hide(text).splitlines())
        lines = [line for line in shown if line][-SHOWN_LINES:]
        return what + (f"; it printed: {' / '.join(lines)}" if lines else "; it printed nothing")


@dataclass
class _Output:
    """The last ``keep`` bytes of what a command prints, as they come."""

    keep: int
    out: bytearray = field(default_factory=bytearray)
    both: bytearray = field(default_factory=bytearray)
    selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)

    def read(self, process: subprocess.Popen[bytes], deadline: float) -> bool:
        """Read until the process and its output have ended; return whether the process ended before
        ``deadline``.

        A process that it started, such as a worker in the background, may keep the output open: it
        is then read only for a moment.
        """
        for stream, kept in (
            (process.stdout, (self.out, self.both)),
            (process.stderr, (self.both,)),
        ):
            self.selector.register(cast("IO[bytes]", stream), selectors.EVENT_READ, kept)
        left_at: float | None = None
        while self.selector.get_map():
            now = time.monotonic()
            if left_at is None and process.poll() is not None:
                left_at = now + LEFT_BEHIND
            if now > (deadline if left_at is None else left_at):
                return left_at is not None
            for key, _ in self.selector.select(_LOOK):
                self._take(key)
        # It closed its output and continues.
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        return process.poll() is not None

    def _take(self, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, 65536)
        if not data:
            self.selector.unregister(key.fileobj)
        for kept in key.data:
            kept.extend(data)
            del kept[: -self.keep - 1]

    def text(self, kept: bytearray) -> str:
        """Return one of the two outputs as text."""
        text = kept.decode(errors="replace")
        return _whole_words(text) if len(kept) > self.keep else text


def _whole_words(text: str) -> str:
    """Return ``text`` without the line, or the word, that lost its beginning: half a secret could
    not be recognised.
    """
    return "… " + text.partition("\n" if "\n" in text.rstrip("\n") else " ")[2]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all of its group: asked first, then without asking."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Its own session made it the leader of a group with its own number, which lives as long as any
    # member does.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _status(code: int) -> str:
    number = -code if code < 0 else code - 128
    with suppress(ValueError):
        name = signal.Signals(number).name
        return f"was ended by {name}" if code < 0 else f"exit status {code} ({name})"
    return f"exit status {code}"


def _secrets_around() -> tuple[str, ...]:
    """Return the values of this process's own environment whose names call them secrets: commands
    get them, too.
    """
    long_enough = 6
    return tuple(
        value
        for name, value in os.environ.items()
        if len(value) >= long_enough
        and any(word in name.lower() for word in ("pass", "secret", "token", "credential"))
    )

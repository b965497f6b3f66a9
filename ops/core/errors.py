"""Everything that can go wrong and be said in one line, as one tree.

::

    ConnectctlError                 1  it was tried and failed
    ├── BadInput                    2  what the person gave cannot be read or does not fit
    ├── Refused                     4  findings or the cluster's state forbid it; nothing was done
    ├── Unreachable                 5  no answer, or not allowed to ask
    │   ├── NeverAnswered           5
    │   ├── UnknownHost             5
    │   ├── NotAuthorized           5
    │   └── NotTrusted              5
    ├── TimedOut                    6  waited, and it did not happen in time
    └── PartDone                    7  some steps are done; the run can be resumed

An error says *what* happened, *why*, and *what to do next*; the terminal prints the three as one line and scripts get
them as fields. Which exit code an error means is decided in one table, in ``cli/main.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from connectctl.ops.kafka.acls import Right


class ConnectctlError(Exception):
    """An operation was tried and failed.

    ``what`` is a sentence without its full stop; ``why`` is the cause in the words of its source;
    ``next_step`` is a command or an action. ``code`` is a stable word for scripts. Secrets in any of them are masked
    here, so that no error can carry one to a terminal, a log or the journal.
    """

    code = "failed"

    def __init__(self, what: str, *, why: str | None = None, next_step: str | None = None, code: str | None = None):
        # Most commands end without an error, and --help does not need to know a secret.
        from connectctl.ops.config.masking import masked, our_own

        self.what = our_own(what)
        self.why = why if why is None else masked(str(why))
        self.next_step = next_step if next_step is None else our_own(next_step)
        super().__init__(self.what)
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        line = self.what if not self.why else f"{self.what}: {self.why}"
        if not self.next_step:
            return line
        return f"{line} {self.next_step}" if line.endswith("?") else f"{line.rstrip('.')}. {self.next_step}"


class BadInput(ConnectctlError):
    """What the person gave cannot be read, or does not fit what it is for."""

    code = "bad-input"


class Refused(ConnectctlError):
    """Findings or the cluster's state forbid it. Nothing was done."""

    code = "refused"


class Unreachable(ConnectctlError):
    """A broker or a worker does not answer."""

    code = "unreachable"


class NeverAnswered(Unreachable):
    """A cluster did not answer when it was asked for the first time: its address may be wrong, or it is not up yet."""


class UnknownHost(Unreachable):
    """The name does not resolve."""


class NotAuthorized(Unreachable):
    """A broker or a worker answers that this principal may not; ``right`` is the one that is missing, where it is known."""

    code = "not-authorized"

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        next_step: str | None = None,
        code: str | None = None,
        right: Right | None = None,
    ):
        super().__init__(what, why=why, next_step=next_step, code=code)
        self.right = right


class NotTrusted(Unreachable):
    """A broker or a worker is there, and TLS with it does not come about."""

    code = "not-trusted"


class TimedOut(ConnectctlError):
    """Waited for something that did not happen in time."""

    code = "timed-out"


class PartDone(ConnectctlError):
    """Some steps are done and some are not; the run can be resumed."""

    code = "part-done"


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """What to do about an unknown ``name``: take the nearest that is ``known``, or ``otherwise``, where none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"Did you mean {near[0]}?" if near else otherwise

"""The errors that are reported in one line, as one tree.

::

    ConnectctlError                 1  the operation failed
    ├── BadInput                    2  input cannot be read or is invalid
    ├── Refused                     4  findings or the cluster's state forbid it; nothing was done
    ├── Unreachable                 5  no response, or not authorized
    │   ├── NeverAnswered           5
    │   ├── UnknownHost             5
    │   ├── NotAuthorized           5
    │   ├── NotTrusted              5
    │   └── NoRestApi            4
    ├── TimedOut                    6  a wait timed out
    └── PartDone                    7  some steps are done; the run can be resumed

An error has *what* happened, *why*, and *what to do next*; the terminal prints the three as one
line and scripts get them as fields. The exit code of each error is in one table, in
``cli/main.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from connectctl.ops.kafka.acls import Right


CONTRADICTED = "contradicted"
"""The code of an error after which a run cannot be resumed: what it did was changed meanwhile."""
NOT_RESUMED = frozenset({CONTRADICTED, "stale", "invalid-offset"})
"""The codes of errors that a resumed run would meet again: its plan does not fit any more, and a
new one is needed.
"""


class ConnectctlError(Exception):
    """An operation failed.

    ``what`` is a sentence without its full stop; ``why`` is the cause in the words of its source;
    ``next_step`` is a command or an action. ``code`` is a stable word for scripts. Secrets in any
    of them are masked here, so that no error writes one to a terminal, a log or the journal.
    """

    code = "failed"

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        next_step: str | None = None,
        code: str | None = None,
    ):
        # Imported here because most commands end without an error.
        from connectctl.ops.config.masking import masked, masked_message

        self.what = masked_message(what)
        self.why = why if why is None else masked(str(why))
        self.next_step = next_step if next_step is None else masked_message(next_step)
        super().__init__(self.what)
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        line = self.what if not self.why else f"{self.what}: {self.why}"
        if not self.next_step:
            return line
        return (
            f"{line} {self.next_step}"
            if line.endswith("?")
            else f"{line.rstrip('.')}. {self.next_step}"
        )


class BadInput(ConnectctlError):
    """Input of the user cannot be read, or is invalid."""

    code = "bad-input"


class Refused(ConnectctlError):
    """Findings or the cluster's state forbid it. Nothing was done."""

    code = "refused"


class Unreachable(ConnectctlError):
    """A broker or a worker does not respond."""

    code = "unreachable"


class NeverAnswered(Unreachable):
    """A cluster did not respond to the first request: its address may be wrong, or it has not
    started yet.
    """


class UnknownHost(Unreachable):
    """The name does not resolve."""


class NotAuthorized(Unreachable):
    """A broker or a worker rejects a request of this principal; ``right`` is the missing one, if
    known.
    """

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
    """The TLS handshake with a broker or a worker fails."""

    code = "not-trusted"


class NoRestApi(Unreachable):
    """The workers have no REST API: what needs one is refused, and what can be read from topics
    is.
    """

    code = "no-rest-api"


class TimedOut(ConnectctlError):
    """A wait timed out."""

    code = "timed-out"


class PartDone(ConnectctlError):
    """Some steps are done and some are not; the run can be resumed."""

    code = "part-done"


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the next step for an unknown ``name``: take the nearest that is ``known``, or
    ``otherwise`` if none is near.
    """
    from difflib import get_close_matches

    similar = get_close_matches(name, list(known), n=1)
    return f"Did you mean {similar[0]}?" if similar else otherwise

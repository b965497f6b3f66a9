"""A finding as data: what was observed, why it matters, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.masking import addresses_masked, masked_message
from connectctl.ops.core.times import iso_utc

if TYPE_CHECKING:
    from connectctl.ops.kafka.acls import Right


class Severity(StrEnum):
    """Severity of a finding: an error breaks something now, a warning may, an info is for
    information.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
"""The order of severities, the worst first."""


def with_hint(statement: str, hint: str | None) -> str:
    """Return the statement with its next step, if it has one, in one line without a full stop."""
    return f"{statement} ({hint.rstrip('.')})" if hint else statement


@dataclass(frozen=True)
class Finding:
    """One finding. ``id`` is stable, for scripts; ``subject`` names the resource.

    ``subject`` and ``message`` are without the secrets that they quote. ``why`` is why it matters,
    with the section of the proposal or the class as the source; ``next_step`` a command or a
    property. ``denied`` is the missing right if that is the cause. ``since`` is when the condition
    began, in seconds since the epoch, None if that is unknown; ``evidence`` are the lines that
    prove it, without secrets as the message.
    """

    id: str
    severity: Severity
    subject: str
    message: str
    next_step: str | None = None
    why: str | None = None
    denied: Right | None = field(default=None, compare=False, repr=False)
    since: float | None = field(default=None, compare=False)
    evidence: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        # Messages quote workers and configurations, and a subject may be the key of a source
        # partition.
        object.__setattr__(self, "subject", addresses_masked(self.subject))
        object.__setattr__(self, "message", masked_message(self.message))
        object.__setattr__(self, "evidence", tuple(map(masked_message, self.evidence)))

    @property
    def reason(self) -> str:
        """Return the finding as a reason in a list, in one line without its full stop: subject,
        message, next step.
        """
        return with_hint(self.statement, self.next_step)

    @property
    def statement(self) -> str:
        """Return the finding as a reason without its next step."""
        return f"{self.subject}: {self.message.rstrip('.')}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the finding; optional members only if they have a value."""
        data: dict[str, Any] = {
            "id": self.id,
            "severity": self.severity.value,
            "subject": self.subject,
            "message": self.message,
        }
        data |= {"why": self.why} if self.why else {}
        data |= {"nextStep": self.next_step} if self.next_step else {}
        data |= {"since": iso_utc(self.since * 1000)} if self.since is not None else {}
        return data | ({"evidence": list(self.evidence)} if self.evidence else {})


def counted(number: int, noun: str) -> str:
    """Return ``1 task``, ``2 tasks``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some_of(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return the first ``most`` of ``names``, and the number of the others: ``a, b and 3 more``, or
    ``a; b; and 3 more``.
    """
    more = len(names) - most
    return separator.join(names[:most]) + (
        f"{separator.strip(', ')} and {more:,} more" if more > 0 else ""
    )

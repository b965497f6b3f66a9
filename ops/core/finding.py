"""Something worth telling the person, as data: what was seen, why it matters, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connectctl.ops.config.masking import addresses_masked, our_own


class Severity(StrEnum):
    """How bad it is: an error breaks something now, a warning may, an info is good to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Finding:
    """One thing that was noticed. ``id`` is stable, for scripts; ``subject`` names what it is about.

    ``subject`` and ``message`` are without the secrets that they quote. ``why`` is why it matters, with the section of the
    proposal or the class that says so; ``next_step`` a command or a property.
    """

    id: str
    severity: Severity
    subject: str
    message: str
    next_step: str | None = None
    why: str | None = None

    def __post_init__(self) -> None:
        # Messages quote what workers and configurations say, and a subject may be the key of a source partition.
        object.__setattr__(self, "subject", addresses_masked(self.subject))
        object.__setattr__(self, "message", our_own(self.message))

    @property
    def reason(self) -> str:
        """The finding as a reason among others, in one line without its full stop: what it is about, and what to do."""
        hint = f" ({self.next_step.rstrip('.')})" if self.next_step else ""
        return f"{self.subject}: {self.message.rstrip('.')}{hint}"

    def as_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "id": self.id,
            "severity": self.severity.value,
            "subject": self.subject,
            "message": self.message,
        }
        data |= {"why": self.why} if self.why else {}
        return data | ({"nextStep": self.next_step} if self.next_step else {})


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some_of(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first ``most`` of ``names``, and how many more there are: ``a, b and 3 more``, or ``a; b; and 3 more``."""
    more = len(names) - most
    return separator.join(names[:most]) + (f"{separator.strip(', ')} and {more:,} more" if more > 0 else "")

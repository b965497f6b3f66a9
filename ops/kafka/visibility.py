"""What a principal was allowed to see: a response is complete, or partial with the reason and the
missing right.

Kafka's response to a listing has what the principal may describe, and does not show what it left
out. Readers therefore return ``Complete`` or ``Partial``, never a list, so that an absence is not
taken for a fact. ``match`` handles both; ``whole`` returns the value or raises, for reads that are
useless without the rest; a change raises ``refused``. ``seen`` is the part that was seen, and each
gap is a finding (SIGHT001 to SIGHT004).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Refused, Unreachable
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.kafka.acls import ANY, Operation, Resource, Right

T = TypeVar("T")


def describe_group(group_id: str) -> Right:
    """Return the right to see the state and the members of a group."""
    return Right(Operation.DESCRIBE, Resource.GROUP, group_id)


def describe_topic(topic: str) -> Right:
    """Return the right to see that a topic exists, and its partitions."""
    return Right(Operation.DESCRIBE, Resource.TOPIC, topic)


def describe_configs(topic: str) -> Right:
    """Return the right to see the configuration of a topic."""
    return Right(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, topic)


def read_topic(topic: str) -> Right:
    """Return the right to read a topic's records."""
    return Right(Operation.READ, Resource.TOPIC, topic)


def describe_id(id: str = ANY) -> Right:
    """Return the right to see a transactional id, or all of them."""
    return Right(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, id)


DESCRIBE_CLUSTER = Right(Operation.DESCRIBE, Resource.CLUSTER)
"""The right to list every group and every ACL."""
DESCRIBE_BROKERS = Right(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
"""The right to see the configuration of brokers."""


class Reason(StrEnum):
    NOT_AUTHORIZED = "not authorized"
    NO_ANSWER = "no answer"
    NOT_PROVEN = "not proven"
    """Nothing was denied, but that nothing is hidden is not proven."""
    CONTRADICTED = "contradicted"
    """Two responses that should agree differ."""


@dataclass(frozen=True)
class Gap:
    """A part that is missing from a response. ``subject`` names the resource (``group
    connect-prod``).

    ``right`` is the right that would show it, if one would; ``detail`` is what the response has
    instead, and ``advice`` the next step.
    """

    subject: str
    reason: Reason
    right: Right | None = None
    detail: str | None = None
    advice: str | None = None

    @property
    def why(self) -> str:
        """In one line, why it was not seen."""
        if self.reason is Reason.NO_ANSWER:
            return f"no answer: {self.detail}" if self.detail else "no answer"
        if self.reason is Reason.NOT_PROVEN:
            proof = f"{self.right} would prove it" if self.right else "nothing can prove it"
            return f"not proven: {proof} ({self.detail})" if self.detail else f"not proven: {proof}"
        if self.reason is Reason.CONTRADICTED:
            return str(self.detail)
        lacking = f"not authorized: {self.right} is missing" if self.right else "not authorized"
        return f"{lacking} ({self.detail})" if self.detail else lacking

    @property
    def next_step(self) -> str:
        """Return the next step that closes the gap."""
        if self.reason is Reason.CONTRADICTED:
            return (
                "Try again; if it persists, restart the worker that differs, and check --rest "
                "and --group-id."
            )
        return grant(self.right) if self.right else self.advice or "Try again when it answers."


@dataclass(frozen=True)
class Complete(Generic[T]):
    """All there is."""

    value: T

    @property
    def seen(self) -> T:
        return self.value

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return ()


@dataclass(frozen=True)
class Partial(Generic[T]):
    """A value that may have less than there is. ``gaps`` has at least one."""

    seen: T
    gaps: tuple[Gap, ...]


Observation = Complete[T] | Partial[T]


def observation_of(seen: T, gaps: Iterable[Gap]) -> Observation[T]:
    """Return ``seen`` as complete where there are no gaps."""
    missing = tuple(gaps)
    return Partial(seen, missing) if missing else Complete(seen)


def gap_of(error: ConnectctlError, subject: str) -> Gap:
    """Return the gap that an edge's error leaves: a principal that may not, or an answer that did
    not come.
    """
    if isinstance(error, NotAuthorized):
        if error.right is not None:
            return Gap(subject, Reason.NOT_AUTHORIZED, error.right)
        return Gap(subject, Reason.NOT_AUTHORIZED, None, error.why, error.next_step)
    return Gap(subject, Reason.NO_ANSWER, None, error.why or error.what, error.next_step)


def not_authorized(what: str, right: Right) -> NotAuthorized:
    """Return the error of an edge that lacks ``right``; ``what`` is a sentence without its full
    stop.
    """
    return NotAuthorized(what, why=f"{right} is missing", next_step=grant(right), right=right)


def grant(right: Right) -> str:
    """Return the sentence about how to get the right."""
    return (
        f"Grant {right} (kafka-acls --add --allow-principal PRINCIPAL {right.arguments}), or "
        "use another principal."
    )


def whole(answer: Observation[T], what: str, *, proven: bool = True) -> T:
    """All of the answer. Raises ``NotAuthorized`` or ``Unreachable`` where it is partial; ``what``
    names it.

    Without ``proven`` it is enough that nothing was denied and everybody answered.
    """
    if isinstance(answer, Complete):
        return answer.value
    if not proven and all(gap.reason is Reason.NOT_PROVEN for gap in answer.gaps):
        return answer.seen
    gap, partial = _worst(answer.gaps), f"Cannot see all of {what}"
    if len(answer.gaps) == 1 and gap.reason is Reason.NOT_AUTHORIZED and gap.right:
        raise not_authorized(f"Not authorized to see {gap.subject}", gap.right)
    if gap.reason is Reason.NO_ANSWER:
        raise Unreachable(partial, why=_reasons(answer.gaps), next_step=gap.next_step)
    raise NotAuthorized(
        partial, why=_reasons(answer.gaps), next_step=gap.next_step, right=gap.right
    )


def refused(gaps: Iterable[Gap], change: str, *, force: str | None = None) -> Refused:
    """Return the error of a change that cannot see enough to be safe: nothing was done.

    ``change`` is the sentence about what was not done (``The tasks were not fenced``), ``force``
    what ``--force`` would override.
    """
    missing = tuple(gaps)
    hint = _worst(missing).next_step
    if force:
        hint = f"{hint} --force overrides it: {force}."
    return Refused(change, why=_reasons(missing), next_step=hint, code="not-seen")


def gap_findings(gaps: Iterable[Gap]) -> tuple[Finding, ...]:
    """Return the gaps as findings, each once, to be shown first."""
    found = ((gap, *_FINDINGS[gap.reason]) for gap in dict.fromkeys(gaps))
    return tuple(
        Finding(id_, how, gap.subject, f"May be incomplete: {gap.why}.", gap.next_step)
        for gap, id_, how in found
    )


_FINDINGS = {
    Reason.NOT_AUTHORIZED: ("SIGHT001", Severity.WARNING),
    Reason.NO_ANSWER: ("SIGHT002", Severity.WARNING),
    Reason.NOT_PROVEN: ("SIGHT003", Severity.INFO),
    Reason.CONTRADICTED: ("SIGHT004", Severity.WARNING),
}


def _worst(gaps: tuple[Gap, ...]) -> Gap:
    """Return the gap to report first: a missing right, which a second try does not solve."""
    return min(gaps, key=lambda gap: list(Reason).index(gap.reason))


def _reasons(gaps: tuple[Gap, ...]) -> str:
    return "; ".join(dict.fromkeys(f"{gap.subject}: {gap.why}" for gap in gaps))

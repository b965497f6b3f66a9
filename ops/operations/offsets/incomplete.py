"""The error of offsets that could not all be read, with the exit code of its cause."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.core.finding import Finding, with_hint
from connectctl.ops.operations.offsets.snapshot import INCOMPLETE, OffsetsSnapshot

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


def check_complete(states: Iterable[OffsetsTopicState], of: str | None = None) -> None:
    """Raise an error unless all records of ``states`` could be read: a part of them is not a basis
    for a change.
    """
    found = [state for state in states if state.problem]
    _raise_error(
        [(str(state.problem), state.hint) for state in found],
        [state.unread for state in found if state.unread],
        of,
    )


def check_readable(states: Iterable[OffsetsTopicState]) -> None:
    """Raise the error of ``check_complete`` if no record of a topic could be read."""
    found = list(states)
    if any(state.unread for state in found):
        check_complete(found)


def check_findings(
    findings: Iterable[Finding], snapshot: OffsetsSnapshot, of: str | None = None
) -> None:
    """Raise an error if, according to ``findings``, ``snapshot`` is incomplete."""
    found = [finding for finding in findings if finding.id in INCOMPLETE]
    _raise_error(
        [(finding.statement, finding.next_step) for finding in found],
        list(snapshot.unread.values()),
        of,
    )


def _raise_error(
    reasons: list[tuple[str, str | None]], causes: list[ConnectctlError], of: str | None
) -> None:
    """Raise the error for ``reasons``, which have their hints; nothing without reasons."""
    if not reasons:
        return
    what = f"Could not read all offsets of {of}" if of else "Could not read all offsets"
    for cause in causes:
        if isinstance(cause, NotAuthorized):
            why = _joined(reasons, cause.next_step)
            raise NotAuthorized(
                what, why=why, next_step=cause.next_step, right=cause.right
            ) from cause
    for cause in causes:
        if isinstance(cause, Unreachable):
            raise Unreachable(
                what, why=_joined(reasons, cause.next_step), next_step=cause.next_step
            ) from cause
    hint = next((hint for _, hint in reasons if hint), None)
    raise ConnectctlError(what, why=_joined(reasons, hint), next_step=hint, code="hidden")


def _joined(reasons: list[tuple[str, str | None]], next_step: str | None = None) -> str:
    """Return the reasons in one line, without the hint ``next_step``, which the error has
    itself.
    """
    return "; ".join(
        dict.fromkeys(with_hint(why, hint if hint != next_step else None) for why, hint in reasons)
    )

"""The error of offsets that could not all be read, with the exit code of its cause."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.core.finding import with_hint
from connectctl.ops.operations.offsets.snapshot import INCOMPLETE

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.offsets.snapshot import OffsetsSnapshot
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


def check_places(places: Iterable[OffsetsTopicState], of: str | None = None) -> None:
    """Raise an error unless all records of ``places`` could be read: nothing may be made of the rest."""
    found = [each for each in places if each.problem]
    _raise([(str(each.problem), each.hint) for each in found], [each.unread for each in found if each.unread], of)


def check_seen(places: Iterable[OffsetsTopicState]) -> None:
    """Raise the error of ``check_places`` if a topic could not be read at all, as before each plan of a change."""
    found = list(places)
    if any(each.unread for each in found):
        check_places(found)


def check_findings(findings: Iterable[Finding], snapshot: OffsetsSnapshot, of: str | None = None) -> None:
    """Raise an error if ``findings`` say that not all of ``snapshot`` could be read."""
    found = [each for each in findings if each.id in INCOMPLETE]
    _raise([(each.statement, each.next_step) for each in found], list(snapshot.unread.values()), of)


def _raise(reasons: list[tuple[str, str | None]], causes: list[ConnectctlError], of: str | None) -> None:
    """Raise the error for ``reasons``, each with what to do about it, unless there are none."""
    if not reasons:
        return
    what = f"Could not read all offsets of {of}" if of else "Could not read all offsets"
    for cause in causes:
        if isinstance(cause, NotAuthorized):
            why = _joined(reasons, cause.next_step)
            raise NotAuthorized(what, why=why, next_step=cause.next_step, right=cause.right) from cause
    for cause in causes:
        if isinstance(cause, Unreachable):
            raise Unreachable(what, why=_joined(reasons, cause.next_step), next_step=cause.next_step) from cause
    hint = next((hint for _, hint in reasons if hint), None)
    raise ConnectctlError(what, why=_joined(reasons, hint), next_step=hint, code="hidden")


def _joined(reasons: list[tuple[str, str | None]], next_step: str | None = None) -> str:
    """Return the reasons in one line, without the ``next_step`` that follows it."""
    return "; ".join(dict.fromkeys(with_hint(why, hint if hint != next_step else None) for why, hint in reasons))

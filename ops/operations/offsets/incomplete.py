"""The error of offsets that could not all be read, with the exit code of its cause."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.operations.offsets.snapshot import INCOMPLETE

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.offsets.snapshot import OffsetsSnapshot
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


def check_places(places: Iterable[OffsetsTopicState], of: str | None = None) -> None:
    """Raise an error unless all records of ``places`` could be read: nothing may be made of the rest."""
    found = [each for each in places if each.problem]
    _raise([str(each.problem) for each in found], [each.unread for each in found if each.unread], of)


def check_findings(findings: Iterable[Finding], snapshot: OffsetsSnapshot, of: str | None = None) -> None:
    """Raise an error if ``findings`` say that not all of ``snapshot`` could be read."""
    found = [each for each in findings if each.id in INCOMPLETE]
    _raise([each.reason for each in found], list(snapshot.unread.values()), of)


def _raise(reasons: Iterable[str], causes: list[ConnectctlError], of: str | None) -> None:
    why = "; ".join(dict.fromkeys(reasons))
    if not why:
        return
    what = f"Could not read all offsets of {of}" if of else "Could not read all offsets"
    for cause in causes:
        if isinstance(cause, NotAuthorized):
            raise NotAuthorized(what, why=_once(why, cause), next_step=cause.next_step, right=cause.right) from cause
    for cause in causes:
        if isinstance(cause, Unreachable):
            raise Unreachable(what, why=_once(why, cause), next_step=cause.next_step) from cause
    hint = "See connectctl transactions hanging." if "transaction" in why else None
    raise ConnectctlError(what, why=why, next_step=hint, code="hidden")


def _once(why: str, cause: ConnectctlError) -> str:
    """Return ``why`` without the next step of ``cause``, which follows it."""
    return why.replace(f" ({str(cause.next_step).rstrip('.')})", "")

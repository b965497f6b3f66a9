"""In which mode a worker is, and how that is known: proven by what it answers, told by its properties, or believed.

Sources: KIP-618; ``DistributedHerder.validateExactlyOnceConfigs`` for what proves ``enabled``; ``claimWritePrivileges``
for what a leader in ``preparing`` does and one in ``disabled`` does not. Nothing else can be seen from outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.connect.release import EXACTLY_ONCE, older
from connectctl.ops.connect.worker import Support

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConfiguredValue

PROPERTY = "exactly.once.source.support"


class Value(StrEnum):
    """The worker's ``exactly.once.source.support``; NOT_SUPPORTED where its release does not know it."""

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"
    UNKNOWN = "unknown"
    NOT_SUPPORTED = "not supported"


class How(StrEnum):
    """How a mode is known. BELIEVED: connectctl set it in an earlier run, and nothing since contradicts."""

    PROVEN = "proven"
    TOLD = "told"
    BELIEVED = "believed"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Mode:
    """A worker's mode. ``source`` says in words what it is known from, or why it is not."""

    value: Value
    how: How
    source: str

    def __str__(self) -> str:
        return f"{self.value} ({self.how}: {self.source})"


@dataclass(frozen=True)
class LeaderId:
    """The leader's transactional id as its coordinator has it. ``who``: producer id and epoch; None where it has none.

    ``fresh``: nothing has been written with it since it was initialised.
    """

    who: tuple[int, int] | None
    fresh: bool = False


@dataclass(frozen=True)
class Belief:
    """What the journal says of a worker: ``run`` set its property to ``value``.

    ``restarted``: it has been started since. ``same``: it is still the process that this run saw come back.
    ``writes_transactions``: that process was seen to use the leader's transactional id.
    """

    value: Value
    run: str
    restarted: bool
    same: bool
    writes_transactions: bool = False


@dataclass(frozen=True)
class Evidence:
    """All that bears on the mode of one worker."""

    support: Support
    version: str | None = None
    problem: str | None = None
    leader: bool = False
    leader_id: LeaderId | None = None
    told: ConfiguredValue | None = None
    belief: Belief | None = None


UNSEEN = "preparing and disabled cannot be distinguished from outside"


def mode_of(evidence: Evidence) -> Mode:
    """The mode that ``evidence`` amounts to: the strongest kind of it wins."""
    if older(evidence.version, EXACTLY_ONCE):
        return Mode(Value.NOT_SUPPORTED, How.PROVEN, f"it runs {evidence.version}, and the property came with 3.3")
    if evidence.support is Support.ENABLED:
        return Mode(Value.ENABLED, How.PROVEN, "it accepts connectors that require exactly-once")
    if evidence.support is Support.NOT_SUPPORTED:
        return Mode(Value.NOT_SUPPORTED, How.PROVEN, "it does not know exactly.once.support")
    if evidence.belief is not None and not evidence.belief.restarted:
        source = f"run {evidence.belief.run} changed its property and its restart was not observed"
        return Mode(Value.UNKNOWN, How.NOT_KNOWN, source)
    if evidence.support is Support.NOT_ENABLED and evidence.leader and (proven := _of_leader(evidence)):
        return proven
    return _believed(evidence) or _told(evidence) or _nothing(evidence)


def _of_leader(evidence: Evidence) -> Mode | None:
    """What the leader's transactional id proves: only a leader that is at least preparing initialises it."""
    if evidence.leader_id is not None and evidence.leader_id.who is None:
        source = "it leads, and the leader's transactional id does not exist"
        return Mode(Value.DISABLED, How.PROVEN, source)
    if evidence.belief is not None and evidence.belief.same and evidence.belief.writes_transactions:
        return Mode(Value.PREPARING, How.PROVEN, "it initialised the leader's transactional id when it took over")
    return None


def _believed(evidence: Evidence) -> Mode | None:
    """What this tool did, as far as nothing newer is told: of the same process it says more than any file can."""
    belief, told = evidence.belief, evidence.told
    if belief is None or (told is not None and not belief.same):
        return None
    if belief.value in (Value.ENABLED, Value.NOT_SUPPORTED) and evidence.support is Support.NOT_ENABLED:
        return None
    since = "and it is the same process since" if belief.same else "and it was started again since"
    if belief.same and told is not None and _value_of(told) is belief.value:
        return Mode(belief.value, How.TOLD, f"{told.source}, and run {belief.run} restarted it with that")
    return Mode(belief.value, How.BELIEVED, f"run {belief.run} set it, {since}")


def _told(evidence: Evidence) -> Mode | None:
    told = evidence.told
    if told is None:
        return None
    value = _value_of(told)
    if value is None:
        return Mode(Value.UNKNOWN, How.NOT_KNOWN, f"{told.source} says {told.value!r}, which is not a mode")
    if value is Value.ENABLED and evidence.support is Support.NOT_ENABLED:
        return Mode(Value.UNKNOWN, How.NOT_KNOWN, f"{told.source} says enabled, and the worker was not started with it")
    if told.value is None:
        return Mode(value, How.TOLD, f"{told.source} does not set it, and disabled is the default")
    return Mode(value, How.TOLD, told.source)


def _value_of(told: ConfiguredValue) -> Value | None:
    text = (told.value or Value.DISABLED).strip().lower()
    return Value(text) if text in ("disabled", "preparing", "enabled") else None


def _nothing(evidence: Evidence) -> Mode:
    return Mode(Value.UNKNOWN, How.NOT_KNOWN, evidence.problem or UNSEEN)

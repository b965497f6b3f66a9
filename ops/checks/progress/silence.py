"""When a source that wrote offsets regularly is silent for too long. Pure.

At one moment a source that has nothing to read and one that hangs look the same. The connector's
own past shows the difference: one that wrote an offset at least every minute for two days, and then
none for half an hour, does not do what it did. One whose past has longer gaps, or is not retained
for long enough, is not judged.

A source of office hours writes without a break from Monday to Friday, and rests at the weekend.
Only a past that includes the same time of an earlier week shows that it does not rest then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from connectctl.ops.kafka.rhythm import Rhythm

LEAST_COUNT = 20
"""The least number of retained offsets that make a rhythm."""
LEAST_SILENCE = 600.0
"""Seconds of silence that are never too long: workers may commit offsets every few minutes."""
GAPS = 5
"""How many times the longest earlier gap a silence must last."""
LONG_ENOUGH = 2 * 86_400.0
"""Seconds of a past that include a night, whatever the silence is. A shorter past must be at least
as long as the silence.
"""


WEEK = 7 * 86_400.0
_WEEKEND = (0.5 * 86_400.0, 4 * 86_400.0)
"""When the weekend begins after the epoch, a Thursday, and how long it lasts, in seconds: Friday to
Sunday in all time zones.
"""


class Certainty(StrEnum):
    """How the past excludes that a source only rests."""

    PROVEN = "proven"
    """It wrote offsets at the same time of an earlier week, or is silent for a week."""
    LIKELY = "likely"
    """The past is shorter, and the silence has no part of a weekend."""
    POSSIBLE = "possible"
    """The past is shorter, and it may be a weekend."""


@dataclass(frozen=True)
class Silence:
    """A silence that the past does not explain: since when, and the rhythm that shows it."""

    since: float
    rhythm: Rhythm
    certainty: Certainty = Certainty.PROVEN


def proves(past: Rhythm, silence: float) -> bool:
    """Return whether ``past`` shows that ``silence``, in seconds, is not usual."""
    return (
        past.count >= LEAST_COUNT
        and silence > max(LEAST_SILENCE, GAPS * past.longest)
        and past.span >= min(silence, LONG_ENOUGH)
    )


def unusual_silence(
    rhythms: Iterable[Rhythm], now: float, started: float | None = None
) -> Silence | None:
    """Return the silence of a connector whose source partitions have ``rhythms``; None if it is
    usual, or if the past does not show whether it is.

    The connector is silent since the newest offset of any of them. ``started`` is when its tasks
    began to run, from which a silence is counted anew.
    """
    every = tuple(rhythms)
    since = max((rhythm.last for rhythm in every), default=now)
    silence = now - max(since, since if started is None else started)
    proofs = [rhythm for rhythm in every if proves(rhythm, silence)]
    if not proofs:
        return None
    return Silence(
        since, min(proofs, key=lambda rhythm: rhythm.longest), _certainty(proofs, since, now)
    )


def _certainty(proofs: Iterable[Rhythm], since: float, now: float) -> Certainty:
    if now - since >= WEEK or any(
        past.first <= since - WEEK and past.last >= now - WEEK for past in proofs
    ):
        return Certainty.PROVEN
    begin, length = _WEEKEND
    elapsed = (since - begin) % WEEK
    is_weekend = elapsed < length or elapsed + now - since > WEEK
    return Certainty.POSSIBLE if is_weekend else Certainty.LIKELY

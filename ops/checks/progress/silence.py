"""When a source that wrote offsets regularly is silent for too long. Pure.

A source that has nothing to read and one that hangs look the same at one moment. What tells them
apart is the connector's own past: one that wrote an offset at least every minute for two days, and
then none for half an hour, does not do what it did. One whose past has longer gaps, or is not
retained for long enough, is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Silence:
    """A silence that the past does not explain: since when, and the rhythm that proves it."""

    since: float
    rhythm: Rhythm


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
    return Silence(since, min(proofs, key=lambda rhythm: rhythm.longest))

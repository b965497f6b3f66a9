"""How long records take from their poll until readers with read_committed see them, as a histogram that adds up.

Buckets grow by a sixteenth of a doubling, so that a quantile is at most 4.5 % too high, and never too low. Times beyond the
last bucket, an hour and more, are counted in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHORTEST = 0.0001
"""Seconds of the first bucket."""
PER_DOUBLING = 16
BUCKETS = 26 * PER_DOUBLING
"""The last one ends after 1.9 hours."""
MOST_POLLS = 4096
EDGES = range(3, 20)
"""The edges that Prometheus gets, in doublings of ``SHORTEST``: 0.8 ms to 52 s."""


class OpenPolls:
    """When the records of the open transaction were polled, and how many. Of very many polls, neighbours count as one, at
    the time of the earlier: what was measured is never too short.
    """

    def __init__(self) -> None:
        self._polls: list[tuple[float, int]] = []

    def add(self, at: float, records: int) -> None:
        self._polls.append((at, records))
        if len(self._polls) >= MOST_POLLS:
            even, odd = self._polls[::2], self._polls[1::2]
            self._polls = [(at, one + other) for (at, one), (_, other) in zip(even, odd, strict=True)]

    def took(self, now: float) -> list[tuple[float, int]]:
        """How long they have been there, and how many."""
        return [(now - at, records) for at, records in self._polls]

    def clear(self) -> None:
        self._polls.clear()


@dataclass
class LatencyMeter:
    """Records by how long they took, in one lease or in all; ``longest`` is in seconds.

    ``promise`` is in seconds, None where none was made. ``missed`` are committed transactions that had a record which took
    longer than that.
    """

    counts: dict[int, int] = field(default_factory=dict)
    total: float = 0.0
    longest: float = 0.0
    missed: int = 0
    promise: float | None = None

    def committed(self, took: Sequence[tuple[float, int]]) -> None:
        """A transaction is, with so many records that took so many seconds each."""
        for seconds, records in took:
            bucket = bucket_of(seconds)
            self.counts[bucket] = self.counts.get(bucket, 0) + records
            self.total += max(0.0, seconds) * records
            self.longest = max(self.longest, seconds)
        if self.promise is not None and took:
            self.missed += max(seconds for seconds, _ in took) > self.promise

    @property
    def records(self) -> int:
        return sum(self.counts.values())

    def quantile(self, share: float) -> float | None:
        """Seconds in which ``share`` of the records could be seen; None where none was measured."""
        left = math.ceil(self.records * share)
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 0:
                return min(edge(bucket), self.longest)
        return None

    @property
    def broken(self) -> bool:
        """Whether more than one in a hundred records took longer than was promised."""
        p99 = self.quantile(0.99)
        return self.promise is not None and p99 is not None and p99 > self.promise

    @property
    def summary(self) -> dict[str, Any]:
        """As tasks tell their driver while they work."""
        return {"promise": self.promise, "p99": self.quantile(0.99), "records": self.records, "missed": self.missed}

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """For each of Prometheus' edges, in seconds, how many records took no longer."""
        for doublings in EDGES:
            last = doublings * PER_DOUBLING
            yield SHORTEST * 2**doublings, sum(n for bucket, n in self.counts.items() if bucket <= last)

    def add(self, other: Mapping[str, Any]) -> None:
        """Add another one's, as a dictionary of these fields: JSON makes its keys texts."""
        for bucket, records in other.get("counts", {}).items():
            self.counts[int(bucket)] = self.counts.get(int(bucket), 0) + records
        self.total += other.get("total", 0.0)
        self.longest = max(self.longest, other.get("longest", 0.0))
        self.missed += other.get("missed", 0)
        self.promise = other.get("promise", self.promise)


def bucket_of(seconds: float) -> int:
    """The number of the bucket of ``seconds``: that with the first edge which is not below."""
    if seconds <= SHORTEST:
        return 0
    return min(BUCKETS, math.ceil(math.log2(seconds / SHORTEST) * PER_DOUBLING - 1e-9))


def edge(bucket: int) -> float:
    """The longest time in it, in seconds."""
    return float(SHORTEST * 2 ** (bucket / PER_DOUBLING))


def latency_metrics(total: LatencyMeter, last: LatencyMeter) -> dict[str, int | float | None]:
    """What Connect has no metrics for, in milliseconds: of the whole run in ``total``, and of its ``last`` lease."""
    found: dict[str, int | float | None] = {
        "poll-to-visible-p50-time-ms": in_ms(total.quantile(0.5)),
        "poll-to-visible-p99-time-ms": in_ms(total.quantile(0.99)),
        "poll-to-visible-max-time-ms": in_ms(total.longest) if total.counts else None,
        "poll-to-visible-last-p99-time-ms": in_ms(last.quantile(0.99)),
    }
    if total.promise is None:
        return found
    return found | {"latency-promise-ms": in_ms(total.promise), "latency-promise-missed-total": total.missed}


def in_ms(seconds: float | None) -> float | None:
    """Milliseconds, rounded to microseconds."""
    return None if seconds is None else round(seconds * 1000, 3)

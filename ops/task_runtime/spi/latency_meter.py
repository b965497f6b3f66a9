"""A histogram of the time from a record's poll until read_committed consumers can read it.
Histograms can be added.

Buckets grow by a sixteenth of a doubling, so that a quantile is at most 4.5 % too high, and never
too low. Times beyond the last bucket, an hour and more, are counted in it.
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
"""The edges exported to Prometheus, in doublings of ``SHORTEST``: 0.8 ms to 52 s."""


class OpenPolls:
    """The polls of the open transaction: time and number of records. Very many polls are merged in
    pairs, at the time of the earlier one: a measured time is never too short.
    """

    def __init__(self) -> None:
        self._polls: list[tuple[float, int]] = []

    def add(self, at: float, records: int) -> None:
        self._polls.append((at, records))
        if len(self._polls) >= MOST_POLLS:
            even, odd = self._polls[::2], self._polls[1::2]
            self._polls = [
                (at, one + other) for (at, one), (_, other) in zip(even, odd, strict=True)
            ]

    def took(self, now: float) -> list[tuple[float, int]]:
        """Return the seconds since each poll, and its number of records."""
        return [(now - at, records) for at, records in self._polls]

    def clear(self) -> None:
        self._polls.clear()


@dataclass
class LatencyMeter:
    """Numbers of records by latency, in some time; ``longest`` is in seconds.

    ``promise`` is in seconds, None without a promise. ``missed`` counts committed transactions with
    a record that took longer.
    """

    counts: dict[int, int] = field(default_factory=dict)
    total: float = 0.0
    longest: float = 0.0
    missed: int = 0
    promise: float | None = None

    def committed(self, took: Sequence[tuple[float, int]]) -> None:
        """Count a committed transaction; ``took`` has pairs of seconds and number of records."""
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
        """Return the seconds within which ``share`` of the records were readable; None without
        records.
        """
        remaining = math.ceil(self.records * share)
        for bucket in sorted(self.counts):
            remaining -= self.counts[bucket]
            if remaining <= 0:
                return min(edge(bucket), self.longest)
        return None

    @property
    def broken(self) -> bool:
        """Return whether more than one in a hundred records took longer than promised."""
        p99 = self.quantile(0.99)
        return self.promise is not None and p99 is not None and p99 > self.promise

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Yield each of Prometheus' edges, in seconds, and how many records took no longer."""
        for doublings in EDGES:
            last = doublings * PER_DOUBLING
            yield (
                SHORTEST * 2**doublings,
                sum(n for bucket, n in self.counts.items() if bucket <= last),
            )

    def since(self, earlier: LatencyMeter) -> LatencyMeter:
        """Return what was counted after ``earlier``; ``longest`` is at most 4.5 % too high."""
        left = {b: n for b, each in self.counts.items() if (n := each - earlier.counts.get(b, 0))}
        longest = min(edge(max(left)), self.longest) if left else 0.0
        total, missed = self.total - earlier.total, self.missed - earlier.missed
        return LatencyMeter(left, total, longest, missed, self.promise)

    def add(self, other: Mapping[str, Any]) -> None:
        """Add another meter, a dictionary of these fields; keys of ``counts`` are strings in
        JSON.
        """
        for bucket, records in other.get("counts", {}).items():
            self.counts[int(bucket)] = self.counts.get(int(bucket), 0) + records
        self.total += other.get("total", 0.0)
        self.longest = max(self.longest, other.get("longest", 0.0))
        self.missed += other.get("missed", 0)
        self.promise = other.get("promise", self.promise)


def bucket_of(seconds: float) -> int:
    """Return the number of the bucket of ``seconds``: the first whose edge is not below."""
    if seconds <= SHORTEST:
        return 0
    return min(BUCKETS, math.ceil(math.log2(seconds / SHORTEST) * PER_DOUBLING - 1e-9))


def edge(bucket: int) -> float:
    """Return the longest time of a bucket, in seconds."""
    return float(SHORTEST * 2 ** (bucket / PER_DOUBLING))


def latency_metrics(total: LatencyMeter, last: LatencyMeter) -> dict[str, int | float | None]:
    """Return latencies in milliseconds of the run (``total``) and between its ``last`` two
    statuses; Connect has no such metrics.
    """
    found: dict[str, int | float | None] = {
        "poll-to-visible-p50-time-ms": in_ms(total.quantile(0.5)),
        "poll-to-visible-p99-time-ms": in_ms(total.quantile(0.99)),
        "poll-to-visible-max-time-ms": in_ms(total.longest) if total.counts else None,
        "poll-to-visible-last-p99-time-ms": in_ms(last.quantile(0.99)),
    }
    if total.promise is None:
        return found
    return found | {
        "latency-promise-ms": in_ms(total.promise),
        "latency-promise-missed-total": total.missed,
    }


def in_ms(seconds: float | None) -> float | None:
    """Milliseconds, rounded to microseconds."""
    return None if seconds is None else round(seconds * 1000, 3)

"""What a sink task counts, for Connect's ``sink-task-metrics`` and ``task-error-metrics``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class SinkMeter:
    """Totals of one task; times are in seconds. ``read`` were polled, ``sent`` were given to ``put`` and taken.

    ``commit_skips`` are commits for which nothing was to be committed; ``skipped`` are records that failed and were
    tolerated; ``retries`` are batches that ``put`` wants again.
    """

    read: int = 0
    sent: int = 0
    puts: int = 0
    put_time: float = 0.0
    longest_put: float = 0.0
    retries: int = 0
    commits: int = 0
    failed_commits: int = 0
    commit_skips: int = 0
    failures: int = 0
    logged: int = 0
    dead_letters: int = 0
    skipped: int = 0

    def put(self, size: int, seconds: float) -> None:
        """``put`` took a batch. An empty one is none."""
        if size:
            self.sent += size
            self.puts += 1
            self.put_time += seconds
            self.longest_put = max(self.longest_put, seconds)

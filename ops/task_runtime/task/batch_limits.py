"""The maximum size of a task's batches, from ``max.message.bytes`` of the topics that it writes to.

A polled task names the topic of each record, and a producer has one size for all topics. So a
producer has the smallest size of the known topics. It is replaced if a new topic has a smaller
limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

SIZE = 1_000_000
"""The default of ``batch.size`` and ``message.max.bytes``."""


class BatchSizeLimits:
    """Limits of batches. ``largest`` returns ``max.message.bytes`` of topics, if it can be read;
    ``given`` are the producer's own properties.
    """

    def __init__(
        self, largest: Callable[[Collection[str]], Mapping[str, int]], given: Mapping[str, str]
    ):
        self._largest, self._given = largest, given
        self._known: dict[str, int | None] = {}
        self._opened = self._smallest

    def fits(self, topics: Collection[str]) -> bool:
        """Return whether the batches of the newest producer also fit ``topics``."""
        new = [topic for topic in topics if topic not in self._known]
        if new:
            limits = self._largest(new)
            self._known |= {topic: limits.get(topic) for topic in new}
        return self._opened == self._smallest

    def properties(self) -> dict[str, str]:
        """Return librdkafka's properties for a new producer. One record may be as large as the
        largest limit of the known topics.
        """
        self._opened = self._smallest
        found = {"batch.size": str(self._opened)}
        largest = max([SIZE, *self._limits])
        if "message.max.bytes" not in self._given and largest > SIZE:
            found["message.max.bytes"] = str(largest)
        return found

    @property
    def _smallest(self) -> int:
        return max(1, min([int(self._given.get("batch.size", SIZE)), *self._limits]))

    @property
    def _limits(self) -> list[int]:
        return [most for most in self._known.values() if most is not None]

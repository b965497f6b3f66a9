"""How large the batches of a task may be: what the topics take that it writes to
(``max.message.bytes``).

Which topics these are a polled task says record by record, and a producer has one size for all. So
it fits the smallest of those that were seen, and makes way for another one where a new topic takes
less.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

SIZE = 1_000_000
"""librdkafka's ``batch.size`` and ``message.max.bytes``, where nobody says otherwise."""


class BatchSizeLimits:
    """``largest`` tells what topics take, as far as it can be seen; ``given`` are the producer's
    own properties.
    """

    def __init__(
        self, largest: Callable[[Collection[str]], Mapping[str, int]], given: Mapping[str, str]
    ):
        self._largest, self._given = largest, given
        self._known: dict[str, int | None] = {}
        self._opened = self._smallest

    def fits(self, topics: Collection[str]) -> bool:
        """Whether what the producer that was opened last sends fits ``topics``, too."""
        new = [topic for topic in topics if topic not in self._known]
        if new:
            limits = self._largest(new)
            self._known |= {topic: limits.get(topic) for topic in new}
        return self._opened == self._smallest

    def properties(self) -> dict[str, str]:
        """librdkafka's for a producer that is opened now. One record may be as large as any of the
        topics takes it.
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

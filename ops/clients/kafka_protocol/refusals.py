"""A broker's refusal as an exception, and the pauses before a repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from connectctl.ops.clients.kafka_protocol.raw_connection import Broken
from connectctl.ops.kafka.error_handling import Code

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.5
"""Seconds before a coordinator that is busy with the transaction before, or loading, is asked
again: longer each time.
"""

Named = Callable[[int], str]
"""Names a record of a batch, by its number in it."""


class Refusal(Exception):
    """A broker's error ``code``, as Kafka numbers it. Of a batch: ``named`` names its records,
    ``record`` is the number of the rejected one, and ``topic`` is its topic; ``alone`` is the
    topic, too, if the batch has no other record. The broker's message is included if it sent one.
    """

    def __init__(
        self,
        code: int,
        named: Named | None = None,
        record: int | None = None,
        said: str | None = None,
        alone: str | None = None,
        topic: str | None = None,
    ):
        super().__init__(code)
        self.code, self.named, self.record, self.said, self.alone = code, named, record, said, alone
        self.topic = topic


def pauses() -> Iterator[float]:
    """Yield the seconds to wait before a request is sent again, longer each time."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)


def check(*codes: int) -> None:
    """Raise ``Refusal`` for the first of ``codes`` that is an error."""
    for code in codes:
        if code == Code.UNKNOWN_TOPIC_OR_PARTITION:
            # Its metadata had it: a broker hears of a new topic, or of its leadership, after
            # others.
            raise Broken("a broker does not know a partition, or not yet")
        if code:
            raise Refusal(code)

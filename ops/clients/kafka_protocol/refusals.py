"""What a broker refused, as an exception, and how long is waited before it is asked again."""

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
    """A broker's error ``code``, as Kafka numbers it. Of a batch: who can name its records
    (``named``), the number of the one that was at fault and what the broker said, where it did;
    ``topic`` is its topic, and ``alone`` is, too, where it had no other record.
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
    """Seconds to wait before a request is sent again, longer each time."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)


def check(*codes: int) -> None:
    """Raises ``Refusal`` for the first that is an error."""
    for code in codes:
        if code == Code.UNKNOWN_TOPIC_OR_PARTITION:
            # Its metadata had it: a broker hears of a new topic, or of its leadership, after
            # others.
            raise Broken("a broker does not know a partition, or not yet")
        if code:
            raise Refusal(code)

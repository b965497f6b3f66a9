"""Records that Kafka takes from nobody, each named by its place in the source, so that a person can look at it."""

from __future__ import annotations

from connectctl.ops.core.errors import ConnectctlError

TOO_LARGE = "MSG_SIZE_TOO_LARGE"
OF_A_RECORD = (TOO_LARGE, "INVALID_TIMESTAMP", "INVALID_RECORD")
"""librdkafka's names of what is wrong with a record, and not with the way to the brokers."""


class RejectedRecord(ConnectctlError):
    """A record is refused, which one shows when they are sent one by one (``single_record_producer``)."""


def refused(record: str, code: str, said: str | None) -> ConnectctlError:
    """The error for ``record``, which brokers refuse with ``code`` and these words."""
    hint = "Correct the row, or check message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic."
    return ConnectctlError(f"{record} was rejected by the broker", why=said, next_step=hint, code=code)


def too_large(record: str, topic: str, why: str) -> ConnectctlError:
    """The error for a ``record`` that ``topic`` has no room for."""
    hint = f"Raise max.message.bytes of {topic}, or reduce the size of the row."
    return ConnectctlError(f"{record} is too large", why=why, next_step=hint, code="row-too-large")

"""Errors for records that brokers reject. Each names the record's position in the source, so that
the user can find it.
"""

from __future__ import annotations

from connectctl.ops.core.errors import ConnectctlError

TOO_LARGE = "MSG_SIZE_TOO_LARGE"
OF_A_RECORD = (TOO_LARGE, "INVALID_TIMESTAMP", "INVALID_RECORD")
"""librdkafka's names of errors of a record, as opposed to the connection."""


class RejectedRecord(ConnectctlError):
    """A record was rejected; sending them one by one determines which (``at_least_once``)."""


def refused(record: str, code: str, said: str | None) -> ConnectctlError:
    """Return the error for ``record``, which a broker rejected with ``code``."""
    hint = (
        "Correct the row, or check message.timestamp.before.max.ms and "
        "message.timestamp.after.max.ms of the topic."
    )
    return ConnectctlError(
        f"{record} was rejected by the broker", why=said, next_step=hint, code=code
    )


def too_large(record: str, topic: str, why: str) -> ConnectctlError:
    """Return the error for a ``record`` that is too large for ``topic``."""
    hint = f"Raise max.message.bytes of {topic}, or reduce the size of the row."
    return ConnectctlError(f"{record} is too large", why=why, next_step=hint, code="row-too-large")

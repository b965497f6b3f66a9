"""Arguments of confluent-kafka's ``produce`` as records, with their sizes and names in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.producer.settings import invalid
from connectctl.ops.kafka.batch_headers import HEADER
from connectctl.ops.kafka.record_batch_encoder import LONGEST_HEAD
from connectctl.ops.kafka.record_columns import Headers, Rows

HeadersGiven = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]
ALONE = HEADER.size + LONGEST_HEAD
"""The maximum overhead of a batch of one record, in bytes, besides its key, value and headers."""
_HEADER = 10
"""The maximum overhead of a header, in bytes, besides its name and value: two varints."""
_LONGEST_KEY = 60
"""The number of bytes of a key that messages show."""


def raw(given: str | bytes | None) -> bytes | None:
    """Return a key or a value as bytes."""
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return given.encode()
    raise invalid(f"keys and values must be bytes, str or None, not {type(given).__name__}")


def raw_headers(given: HeadersGiven) -> list[tuple[str, bytes | None]]:
    return [
        (name, raw(value))
        for name, value in (given.items() if isinstance(given, Mapping) else given)
    ]


def size_of(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """Return the bytes of a record's key, value and headers, without the overhead of the record and
    its batch.
    """
    size = len(key or b"") + len(value or b"")
    return (
        size + sum(_HEADER + len(name.encode()) + len(each or b"") for name, each in headers)
        if headers
        else size
    )


def name_of(rows: Rows, row: int) -> str:
    """Return the name of a record of ``rows``, for messages."""
    key, value, headers = rows.keys[row], rows.values[row], rows.headers[row]
    return f"a record with {_key(key)} and {size_of(key, value, headers)} bytes"


def too_large(topic: str, key: bytes | None, size: int, largest: int) -> KafkaException:
    why = (
        f"a record for topic {topic} with {_key(key)} has {size} bytes, which with the overhead "
        f"of its batch exceeds message.max.bytes ({largest}); it is not in the transaction: set "
        "message.max.bytes to max.message.bytes of the topic, or make the record smaller"
    )
    return KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, why))


def _key(key: bytes | None) -> str:
    if key is None:
        return "no key"
    return f"the key {key!r}" if len(key) <= _LONGEST_KEY else f"the key {key[:_LONGEST_KEY]!r}…"

"""Records as confluent-kafka's ``produce`` takes them, their sizes, and their names in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.producer.settings import invalid
from connectctl.ops.kafka.batch_headers import HEADER
from connectctl.ops.kafka.record_batch_encoder import LONGEST_HEAD
from connectctl.ops.kafka.record_columns import Headers, Rows

HeadersGiven = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]
ALONE = HEADER.size + LONGEST_HEAD
"""Bytes of a batch of one record besides its key, value and headers, at most."""
_HEADER = 10
"""Bytes of a header besides its name and value, at most: two varints."""
_LONGEST_KEY = 60
"""Bytes of a key that are shown in messages."""


def raw(given: str | bytes | None) -> bytes | None:
    """A key or a value."""
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
    """Bytes of a record, without what each record and each batch has besides."""
    size = len(key or b"") + len(value or b"")
    return (
        size + sum(_HEADER + len(name.encode()) + len(each or b"") for name, each in headers)
        if headers
        else size
    )


def name_of(rows: Rows, row: int) -> str:
    """A record of ``rows``, for messages."""
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

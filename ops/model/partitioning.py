"""On which partition Java's producer puts a key (``BuiltInPartitioner.partitionForKey``, murmur2)."""

from __future__ import annotations

import struct
from functools import cache

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


@cache
def _words(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}I")


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 of ``data``, as an unsigned number (``Utils.murmur2`` gives the same bits, signed)."""
    length = len(data)
    h = 0x9747B28C ^ length
    whole = length >> 2
    for k in _words(whole).unpack_from(data):
        k = (k * _M) & _MASK  # noqa: PLW2901  # the mixing of one word, as the algorithm has it
        h = ((h * _M) & _MASK) ^ (((k ^ (k >> 24)) * _M) & _MASK)
    tail = data[whole << 2 :]
    if tail:
        h ^= int.from_bytes(tail, "little")
        h = (h * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    return h ^ (h >> 15)


def java_partition(key: bytes, partitions: int) -> int:
    """The partition of ``key`` in a topic of ``partitions`` partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions

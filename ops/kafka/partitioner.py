"""The partition that Java's producer chooses for a key (``BuiltInPartitioner``, murmur2), and Kafka
for the coordinator of an id.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache, reduce
from itertools import groupby
from typing import Any

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


@cache
def _words(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}I")


def murmur2(data: bytes) -> int:
    """Return Kafka's 32-bit murmur2 of ``data``, as an unsigned number (``Utils.murmur2`` returns
    the same bits, signed).
    """
    length = len(data)
    h = 0x9747B28C ^ length
    words = length >> 2
    h = reduce(_mixed, _words(words).unpack_from(data), h)
    tail = data[words << 2 :]
    if tail:
        h ^= int.from_bytes(tail, "little")
        h = (h * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    return h ^ (h >> 15)


def _mixed(h: int, k: int) -> int:
    """Return the hash ``h`` with one more word."""
    k = (k * _M) & _MASK
    return ((h * _M) & _MASK) ^ (((k ^ (k >> 24)) * _M) & _MASK)


def java_partition(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


MANY = 64
"""Keys of one length from which on they are hashed together."""
_TOGETHER = 4096
"""Keys that are hashed together; more would not fit the processor's cache."""


def partitions_of(keys: Sequence[bytes], partitions: int) -> list[int]:
    """Return ``java_partition`` of each of ``keys``: many keys some ten times as fast, and without
    NumPy.
    """
    found = [0] * len(keys)
    length_of = list(map(len, keys)).__getitem__
    by_length = sorted(range(len(keys)), key=length_of)
    for _, same in groupby(by_length, key=length_of):
        rows = list(same)
        for start in range(0, len(rows), _TOGETHER):
            some = rows[start : start + _TOGETHER]
            chosen = [keys[n] for n in some]
            hashes = _murmur2s(chosen) if len(some) >= MANY else map(murmur2, chosen)
            for n, h in zip(some, hashes, strict=True):
                found[n] = (h & 0x7FFFFFFF) % partitions
    return found


def _murmur2s(keys: Sequence[bytes]) -> Sequence[int]:
    """Return ``murmur2`` of keys of one length, with all of them in one number: 64 bits for each,
    of which it uses the lower half.

    A product of two numbers of 32 bits fits; what a shift takes over from the neighbour is cut off.
    """
    ones, low = _lanes(len(keys))
    length = len(keys[0])
    words = -(-length // 4)
    padding = bytes(words * 4 - length)
    data = array("I", padding.join((*keys, b"")))
    if sys.byteorder == "big":
        data.byteswap()
    ends = enumerate(zip(min(keys), max(keys), strict=True))
    start = next((n for n, (least, most) in ends if least != most), length) >> 2
    # The words with which all of them begin are mixed once.
    h = reduce(_mixed, _words(start).unpack_from(keys[0]), 0x9747B28C ^ length) * ones
    for at in range(start, words):
        k = int.from_bytes(array("Q", data[at::words]).tobytes(), sys.byteorder)
        if padding and at == words - 1:
            h = (h ^ k) * _M & low
        else:
            k = k * _M & low
            h = (h * _M & low) ^ ((k ^ (k >> 24 & low)) * _M & low)
    h ^= h >> 13 & low
    h = h * _M & low
    h ^= h >> 15 & low
    return array("Q", h.to_bytes(8 * len(keys), sys.byteorder))


@lru_cache(maxsize=16)
def _lanes(count: int) -> tuple[int, int]:
    """Return a number with a one in each lane, and one with all bits of the lower half of each."""
    ones = int.from_bytes(array("Q", [1]) * count, sys.byteorder)
    return ones, ones * _MASK


def java_partitions(keys: Any, partitions: int) -> Any:
    """Return ``java_partition`` of each of Arrow's binary ``keys``, as a NumPy array of numbers;
    that of a null is undefined.
    """
    import numpy as np
    import pyarrow as pa

    keys = keys.cast(pa.large_binary())
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    starts, lengths = ends[:-1], ends[1:] - ends[:-1]
    text = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    h = np.uint32(0x9747B28C) ^ lengths.astype(np.uint32)
    m, words = np.uint32(_M), lengths >> 2
    for at in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > at)
        k = _little_endian(text, starts[rows] + 4 * at, 4) * m
        h[rows] = (h[rows] * m) ^ ((k ^ (k >> np.uint32(24))) * m)
    for size in (1, 2, 3):
        rows = np.flatnonzero(lengths & 3 == size)
        h[rows] = (h[rows] ^ _little_endian(text, starts[rows] + 4 * words[rows], size)) * m
    h ^= h >> np.uint32(13)
    h *= m
    h ^= h >> np.uint32(15)
    return (h & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions


def stable_order(numbers: Any, count: int) -> Any:
    """Return the rows of NumPy's ``numbers``, all below ``count``, ordered by them: those of one
    number stay in their order.
    """
    import numpy as np

    # NumPy sorts two bytes by radix, many times as fast as eight.
    return np.argsort(numbers.astype(np.uint16) if count <= 1 << 16 else numbers, kind="stable")


def _little_endian(text: Any, starts: Any, size: int) -> Any:
    """Return the unsigned numbers of ``size`` bytes that begin at ``starts``."""
    import numpy as np

    number = np.zeros(len(starts), np.uint32)
    for byte in range(size):
        number |= text[starts + byte].astype(np.uint32) << np.uint32(8 * byte)
    return number


def java_hash(text: str) -> int:
    """Return ``String.hashCode`` of Java: over UTF-16 units, 32 bits, signed."""
    # The ids of a connector's tasks have all but their last characters in common.
    head, dash, tail = text.rpartition("-")
    value = _hashed(tail, _hashed(head + dash, 0))
    return value - (1 << 32) if value >= 1 << 31 else value


@lru_cache(maxsize=64)
def _hashed(text: str, value: int) -> int:
    """Return the hash of ``text`` after a text whose hash is ``value``, unsigned."""
    if text.isascii():
        units: Iterable[int] = text.encode()
    else:
        data = text.encode("utf-16-be", "surrogatepass")
        units = (int.from_bytes(data[n : n + 2], "big") for n in range(0, len(data), 2))
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def coordinator_partition(id: str, partitions: int) -> int:
    """Return the partition whose leader coordinates ``id``: a transactional id's of
    ``__transaction_state``, a group's of ``__consumer_offsets``
    (``TransactionStateManager.partitionFor``, ``GroupCoordinatorService.partitionFor``).
    """
    value = java_hash(id)
    return (0 if value == -(1 << 31) else abs(value)) % partitions

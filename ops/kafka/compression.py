"""Compresses and decompresses record batches, in the framings of Kafka's Java client, by Arrow's
codecs.

Snappy has blocks of 32 KiB in the stream of snappy-java. LZ4 is an LZ4 frame of independent blocks
of 64 KiB: Java refuses the linked blocks of Arrow's own frames.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator, Sequence
from typing import Any

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""By the names of ``compression.type``."""
NAMES = {number: name for name, number in CODECS.items()}
"""Codecs by the number that a batch's attributes have."""
_XERIAL = b"\x82SNAPPY\0"
_SNAPPY_HEAD = _XERIAL + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK = 32 * 1024
_LZ4_HEAD = bytes.fromhex("04224d18604082")
"""Magic number; version 1 with independent blocks and nothing else; 64 KiB; the check-sum of these
two bytes.
"""
_LZ4_BLOCK = 64 * 1024
_LZ4_END = b"\0\0\0\0"
_GZIP_LEVEL = 6
"""The default of ``compression.gzip.level`` in Kafka's producer; Python's is 9, at half the speed.
"""
_STORED = 0x80000000
"""The bit in the length of a block that is as it was, because compression would only make it
longer.
"""


def compressed(parts: Sequence[Any], codec: str) -> Sequence[Any]:
    """Return ``parts`` joined and compressed; unchanged for ``none``."""
    if codec == "none":
        return parts
    data = b"".join(parts)
    if codec == "gzip":
        return [gzip.compress(data, _GZIP_LEVEL)]
    if codec == "snappy":
        return [_SNAPPY_HEAD, *_snappy(data)]
    if codec == "lz4":
        return [_LZ4_HEAD, *_lz4(data), _LZ4_END]
    return [_packed(data, codec)]


def _snappy(whole: bytes) -> Iterator[bytes]:
    for at in range(0, len(whole), _SNAPPY_BLOCK):
        packed = _packed(whole[at : at + _SNAPPY_BLOCK], "snappy")
        yield struct.pack(">i", len(packed))
        yield packed


def _lz4(whole: bytes) -> Iterator[bytes]:
    for at in range(0, len(whole), _LZ4_BLOCK):
        block = whole[at : at + _LZ4_BLOCK]
        packed = _packed(block, "lz4_raw")
        short = len(packed) < len(block)
        yield struct.pack("<I", len(packed) if short else len(block) | _STORED)
        yield packed if short else block


def _packed(block: bytes, codec: str) -> bytes:
    import pyarrow as pa

    found: bytes = pa.Codec(codec).compress(block, asbytes=True)
    return found


def unpacked(packed: bytes, codec: int) -> bytes:
    """Return the records in ``packed``. Raises ``ValueError`` and ``OSError`` for invalid bytes."""
    import pyarrow as pa

    name = NAMES.get(codec, "none")
    if name == "none":
        return packed
    if name != "snappy":
        with pa.input_stream(pa.py_buffer(packed), compression=name) as stream:
            found: bytes = stream.read()
        return found
    if not packed.startswith(_XERIAL):
        return _unsnapped(packed)
    at, blocks = len(_SNAPPY_HEAD), []
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4], "big")
        blocks.append(_unsnapped(packed[at + 4 : at + 4 + size]))
        at += 4 + size
    return b"".join(blocks)


def _unsnapped(block: bytes) -> bytes:
    """Return the content of a block of Snappy, which begins with its length, seven bits to a byte."""
    import pyarrow as pa

    size = at = 0
    while at < len(block):
        size |= (block[at] & 0x7F) << 7 * at
        if block[at] < 0x80:
            break
        at += 1
    found: bytes = pa.decompress(block, size, "snappy", asbytes=True)
    return found

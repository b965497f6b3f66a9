"""Compressed bodies of batches: what was packed is unpacked, whatever its length, in framings that
Java's client reads.
"""

from __future__ import annotations

import random
import struct

import pytest
from connectctl.ops.kafka.compression import CODECS, compressed, unpacked

LENGTHS = [0, 1, 100, 32 * 1024, 32 * 1024 + 1, 64 * 1024, 64 * 1024 + 1, 1_000_000]


def body(length: int, *, dense: bool) -> bytes:
    """Bytes that compress well, or not at all."""
    return (
        random.Random(length).randbytes(length)
        if dense
        else (b"some text, " * (length // 11 + 1))[:length]
    )


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("codec", CODECS)
def test_what_was_packed_isunpacked(codec: str, length: int, dense: bool) -> None:
    given = body(length, dense=dense)
    parts = [given[: length // 3], memoryview(given)[length // 3 :]]
    packed = b"".join(compressed(parts, codec))
    assert bytes(unpacked(packed, CODECS[codec])) == given
    if codec != "none":
        assert len(packed) < length / 5 + 100 if not dense else len(packed) < length * 1.01 + 100


@pytest.mark.parametrize("dense", [False, True])
def test_lz4_has_independent_blocks_none_of_which_is_longer_than_its_frame_says(
    dense: bool,
) -> None:
    packed = b"".join(compressed([body(300_000, dense=dense)], "lz4"))
    magic, flags, size, _ = struct.unpack_from("<IBBB", packed)
    assert (magic, flags, size) == (0x184D2204, 0b0110_0000, 0x40)
    at, blocks = 7, []
    while length := struct.unpack_from("<I", packed, at)[0]:
        blocks.append(length & 0x7FFFFFFF)
        assert bool(length >> 31) is (
            dense and blocks[-1] == min(64 * 1024, 300_000 - (len(blocks) - 1) * 64 * 1024)
        )
        at += 4 + blocks[-1]
    assert at + 4 == len(packed)
    assert len(blocks) == 5
    assert max(blocks) <= 64 * 1024


def test_snappy_has_the_head_and_the_blocks_of_snappy_java() -> None:
    packed = b"".join(compressed([body(100_000, dense=False)], "snappy"))
    assert packed[:16] == b"\x82SNAPPY\0" + bytes((0, 0, 0, 1, 0, 0, 0, 1))
    at, count = 16, 0
    while at < len(packed):
        at += 4 + int.from_bytes(packed[at : at + 4], "big")
        count += 1
    assert (at, count) == (len(packed), 4)

"""Kafka's variable-length integers: of one number, and of columns of numbers, column by column.

Encoding: ``ByteUtils.writeVarint`` and ``writeVarlong`` of Kafka's clients, which are Protocol
Buffers' zigzag integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_SHORT = tuple(bytes(((n << 1) ^ (n >> 63),)) for n in range(-64, 64))
"""The encodings of one byte, of the numbers from -64 on."""


def varint(number: int) -> bytes:
    """Return ``number`` as a varint (zigzag), of up to 64 bits."""
    return (
        _SHORT[number + 64]
        if -64 <= number < 64
        else unsigned_varint((number << 1) ^ (number >> 63))
    )


def unsigned_varint(number: int) -> bytes:
    """Return ``number``, which is not negative, as lengths and counts of flexible versions are
    written (KIP-482).
    """
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint (zigzag) that begins at ``at``, and where it ends. Raises ``IndexError`` if
    ``data`` end before.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at


@dataclass(frozen=True)
class Varints:
    """A column of numbers as varints (zigzag): ``width`` is how many bytes each has, one number
    where all have as many.

    ``cells`` are the first byte of each, the second and so on, each with the rows that have it,
    None for all.
    """

    width: Any
    cells: Sequence[tuple[Any, Any]]


def varints(numbers: Any) -> Varints:
    """Return ``numbers``, an array of int64, at least one."""
    import numpy as np

    rest = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    narrowest, widest = (max(1, -(-int(n).bit_length() // 7)) for n in (rest.min(), rest.max()))
    width: Any = widest
    if narrowest < widest:
        width = narrowest + sum(
            (rest >> np.uint64(7 * at) > 0).astype(np.int64) for at in range(narrowest, widest)
        )
    cells = []
    for at in range(widest):
        cell = (rest >> np.uint64(7 * at)).astype(np.uint8) & np.uint8(0x7F)
        cell |= np.where(np.greater(width, at + 1), np.uint8(0x80), np.uint8(0))
        cells.append((cell, None if at < narrowest else width > at))
    return Varints(width, cells)


def joined(columns: Sequence[Varints]) -> Any:
    """Return for each row the bytes of ``columns`` one after the other, as an Arrow array."""
    import numpy as np
    import pyarrow as pa

    cells = [cell for column in columns for cell in column.cells]
    matrix = np.stack([cell for cell, _ in cells], 1)
    flat = matrix.reshape(-1)
    if any(present is not None for _, present in cells):
        mask = np.ones(matrix.shape, bool)
        for at, (_, present) in enumerate(cells):
            if present is not None:
                mask[:, at] = present
        flat = matrix[mask]
    sizes = np.broadcast_to(sum(column.width for column in columns), len(matrix))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(matrix), [None, pa.py_buffer(offsets), pa.py_buffer(flat)]
    )

"""What the records of a batch are before their producer compressed them, for each codec of Kafka's."""

from __future__ import annotations

from connectctl.ops.kafka.compression import CODECS

NAMES = {number: name for name, number in CODECS.items()}
"""Codecs by the number that a batch's attributes have, as ``compression.type`` names them."""
_XERIAL, _XERIAL_HEAD = b"\x82SNAPPY\0", 16


def unpacked(packed: bytes, codec: int) -> bytes:
    """The records in ``packed``. Raises ``ValueError`` and ``OSError`` for what is not of that codec."""
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
    at, blocks = _XERIAL_HEAD, []
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4], "big")
        blocks.append(_unsnapped(packed[at + 4 : at + 4 + size]))
        at += 4 + size
    return b"".join(blocks)


def _unsnapped(block: bytes) -> bytes:
    """Snappy's block format begins with the length of what it holds, seven bits to a byte."""
    import pyarrow as pa

    size = at = 0
    while at < len(block):
        size |= (block[at] & 0x7F) << 7 * at
        if block[at] < 0x80:
            break
        at += 1
    found: bytes = pa.decompress(block, size, "snappy", asbytes=True)
    return found

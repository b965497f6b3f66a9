"""The lines of a saved topic: one JSON object each, as ``kcat -C -J`` writes it or as we do.

``key`` and ``value`` (kcat: ``payload``) are the record's bytes as text, null where the record has none; ``keyBase64`` and
``valueBase64`` carry what is not UTF-8. ``topic``, ``partition``, ``offset`` and ``timestamp`` (kcat: ``ts``) may be left
out, but for ``topic`` where the dump holds several.

Lines that are as ``backup_file`` writes them are read a block at a time; a block with any other line is read line by line.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple

from connectctl.ops.config.json_text import objects_reader, read_json
from connectctl.ops.connect.source_keys import owner_of, owners_of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.records import ConsumerRecord, Row
from connectctl.ops.operations.offsets.backup_seal import PARTS, check_parts, is_seal, verified, verified_part
from connectctl.ops.operations.sink_offsets.backup_file import is_group

UNNAMED = "dump"
FORM = (
    'Each line is like {"topic":"…","partition":0,"offset":0,"key":"…","value":"…"}. These write such a file: '
    "connectctl offsets backup --out FILE, and kcat -C -J -e -t TOPIC."
)
BLOCK = 1 << 18
"""Bytes that are read at once, and what it takes to the end of a line."""
_MEMBERS = (
    ("topic", str),
    ("partition", int),
    ("offset", int),
    ("timestamp", int | None),
    ("key", str | None),
    ("value", str | None),
    ("bootstrapServers", str | None, None),
)

Where = tuple[Any, Any]
"""The bootstrap servers that a line names, None for none, and its topic."""


class DumpBlock(NamedTuple):
    """The records of a block, and beside them where each is from."""

    wheres: list[Where]
    rows: list[Row]


def read_blocks(blocks: Iterable[bytes], source: str, *, whole: bool = True) -> Iterator[DumpBlock]:
    """The records of each block. Raises ``BadInput`` that names the line; where that is not the ``whole`` dump also for one
    without an offset: nothing tells then which record of a key is the newest.
    """
    quick, number = objects_reader(_MEMBERS), 1
    for block in blocks:
        found = quick(block)
        yield _by_line(block, source, number, whole) if found is None else _together(found)
        number += block.count(b"\n") if found is None else len(found)


def _together(found: list[Any]) -> DumpBlock:
    keys = [None if each.key is None else each.key.encode() for each in found]
    rows: list[Row] = [
        (
            owner,
            key or b"",
            key is None,
            each.partition,
            each.offset,
            each.timestamp,
            None if each.value is None else each.value.encode(),
        )
        for owner, key, each in zip(owners_of(keys), keys, found, strict=True)
    ]
    return DumpBlock([(each.bootstrapServers, each.topic) for each in found], rows)


def _by_line(block: bytes, source: str, number: int, whole: bool = True) -> DumpBlock:
    read = DumpBlock([], [])
    for data, record in read_lines(_texts(block, source), source, number, whole=whole):
        key, value, partition, offset, timestamp = record
        read.wheres.append((data.get("bootstrapServers"), data.get("topic", UNNAMED)))
        read.rows.append((owner_of(key), key or b"", key is None, partition, offset, timestamp, value))
    return read


def read_lines(
    lines: Iterable[str], source: str, first: int = 1, *, whole: bool = True
) -> Iterator[tuple[dict[str, Any], ConsumerRecord]]:
    """Each line that has a record, as JSON and as that. Raises ``BadInput`` as ``read_blocks``; ``first`` is their first.

    Empty lines, and those with the offsets of sinks' groups, are passed over.
    """
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            data = read_json(line)
            if is_group(data) or is_seal(data):
                continue
            if not whole and "offset" not in data:
                raise ValueError("it has no offset, which --engine spark needs")
            record = _record(data, number)
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as e:
            raise BadInput(
                f"{source}, line {number}: this is not a record", why=str(e) or type(e).__name__, next_step=FORM
            ) from e
        yield data, record


def checked(path: Path) -> Iterator[bytes]:
    """The content of a dump, in blocks. Raises ``BadInput`` as ``read_blocks`` does."""
    quick, number = objects_reader(_MEMBERS), 1
    for block in blocks_of(path):
        found = quick(block)
        if found is None:
            _by_line(block, name_of(path), number)
        number += block.count(b"\n") if found is None else len(found)
        yield block


def wheres_in(path: Path) -> set[Where]:
    """Where the records of a dump are from. Raises ``BadInput`` for a line that is not JSON."""
    quick, number, found = objects_reader((_MEMBERS[0], _MEMBERS[-1]), alone=False), 1, set[Where]()
    for block in blocks_of(path):
        if topic := _only_topic(block):
            found.add((None, topic))
        elif (some := quick(block)) is not None:
            found.update((each.bootstrapServers, each.topic) for each in some)
        else:
            found.update(_by_line(block, name_of(path), number).wheres)
        number += block.count(b"\n")
    return found


def _only_topic(block: bytes) -> str | None:
    """The topic of all lines of a block that begin as ``backup_file`` writes them; None where that cannot be told."""
    head, partition, _ = block.partition(b', "partition": ')
    # A line feed within a text is written as an escape, and so are quotation marks.
    begin_alike = block.count(b"\n" + head + partition) == block.count(b"\n") - 1 and block.endswith(b"\n")
    if not begin_alike or b'"bootstrapServers"' in block:
        return None
    try:
        found = read_json(head + b"}")
    except ValueError:
        return None
    return found["topic"] if isinstance(found, dict) and found.keys() == {"topic"} else None


def name_of(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def blocks_of(path: Path) -> Iterator[bytes]:
    """Whole lines in ``path``, of standard input for ``-``, of a directory's part files. Raises ``BadInput``.

    A backup that was cut or changed is one at its end. Lines end at a line feed only, and not at U+2028 in a text.
    """
    with _readable(path):
        for part in _files(path):
            with nullcontext(sys.stdin.buffer) if str(part) == "-" else part.open("rb") as file:
                blocks = _blocks(file)
                yield from verified_part(blocks, part) if path.is_dir() else verified(blocks, name_of(part))


class Range(NamedTuple):
    """The lines of a file that begin at one of its bytes from ``start`` to before ``end``."""

    file: Path
    start: int
    end: int


def ranges_of(path: Path, size: int) -> list[Range]:
    """The lines of a dump, or of a directory's part files, in ranges of ``size`` bytes. Raises ``BadInput``."""
    with _readable(path):
        ends = [(file, file.stat().st_size) for file in _files(path)]
    return [Range(file, n, min(n + size, end)) for file, end in ends for n in range(0, end, size)]


def blocks_in(part: Range) -> Iterator[bytes]:
    """The lines of a range. Raises ``BadInput``."""
    with _readable(part.file), part.file.open("rb") as file:
        if part.start:
            file.seek(part.start - 1)
            file.readline()  # the end of the line before
        yield from _blocks(file, part.end)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    check_parts(path)
    return sorted(path.glob(PARTS))


def _blocks(file: IO[bytes], end: int | None = None) -> Iterator[bytes]:
    while block := file.read(BLOCK if end is None else max(0, min(BLOCK, end - file.tell()))):
        yield block if block.endswith(b"\n") else block + file.readline()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise BadInput(f"The dump {path} cannot be read", why=e.strerror) from e


def lines_of(path: Path) -> Iterator[str]:
    for block in blocks_of(path):
        yield from _texts(block, str(path))


def _texts(block: bytes, source: str) -> Iterator[str]:
    for line in io.BytesIO(block):
        try:
            yield line.decode()
        except UnicodeDecodeError as e:
            raise BadInput(f"The dump {source} cannot be read", why="it is not UTF-8 text") from e


def _record(data: dict[str, Any], number: int) -> ConsumerRecord:
    if "key" not in data and "keyBase64" not in data:
        raise ValueError("it has no key")
    value = data["value"] if "value" in data else data.get("payload")
    timestamp = data.get("timestamp", data.get("ts"))
    return ConsumerRecord(
        _bytes(data.get("key"), data.get("keyBase64")),
        _bytes(value, data.get("valueBase64")),
        int(data.get("partition", -1)),
        int(data.get("offset", number - 1)),
        None if timestamp is None else int(timestamp),
    )


def _bytes(text: Any, encoded: str | None) -> bytes | None:
    if encoded is not None:
        return base64.b64decode(encoded, validate=True)
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError("key and value must be the record's bytes as text, or null")
    return text.encode()

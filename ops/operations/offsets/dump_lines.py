"""The lines of a saved topic: one JSON object each, in the format of ``kcat -C -J`` or of
connectctl.

``key`` and ``value`` (kcat: ``payload``) are the record's bytes as text, null where the record has
none; ``keyBase64`` and ``valueBase64`` carry what is not UTF-8. ``topic``, ``partition``,
``offset`` and ``timestamp`` (kcat: ``ts``) may be omitted, except ``topic`` in a dump of several
topics.
"""

from __future__ import annotations

import base64
import io
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.backup_seal import (
    PARTS,
    SEALS,
    check_parts,
    verified,
    verified_part,
)
from connectctl.ops.operations.offsets.config_map import as_lines
from connectctl.ops.operations.offsets.foreign_dump import CALL, NO_KEYS, foreign_form
from msgspec import UNSET, UnsetType

FORM = (
    'Each line is like {"topic":"…","partition":0,"offset":0,"key":"…","value":"…"}. These write such a file: '
    f"connectctl offsets backup --out FILE, and {CALL}."
)
BLOCK = 1 << 18
"""Bytes of a block, without the rest of its last line."""
UNNAMED = "dump"

TopicOrigin = tuple[str | None, str]
"""The bootstrap servers of a line, None if it has none, and its topic."""
Text = str | None | UnsetType


class _Origin(msgspec.Struct, gc=False):
    """The topic of a line. Lines with ``group`` or ``kind`` and without a key are not records."""

    topic: str = UNNAMED
    bootstrapServers: Text = UNSET
    group: Any = UNSET
    kind: Any = UNSET

    @property
    def where(self) -> TopicOrigin:
        return self.bootstrapServers or None, self.topic


class _Line(_Origin, gc=False):
    """A line of a dump; ``payload`` and ``ts`` are kcat's names."""

    partition: int = -1
    offset: int | UnsetType = UNSET
    timestamp: int | UnsetType | None = UNSET
    key: Text = UNSET
    keyBase64: Text = UNSET
    value: Text = UNSET
    valueBase64: Text = UNSET
    payload: Text = UNSET
    ts: int | UnsetType | None = UNSET

    @property
    def is_record(self) -> bool:
        """Return whether the line is a record, and not the committed offsets of a group or a seal
        of a backup.
        """
        if self.key is not UNSET or self.keyBase64 is not UNSET:
            return True
        if self.group is UNSET and self.kind not in SEALS:
            raise ValueError(NO_KEYS)
        return False

    def record(self, number: int) -> ConsumerRecord:
        """Return the record of line ``number``, which is its offset if the line has none."""
        value = self.payload if self.value is UNSET else self.value
        time = self.ts if self.timestamp is UNSET else self.timestamp
        return ConsumerRecord(
            _bytes(self.key, self.keyBase64),
            _bytes(value, self.valueBase64),
            self.partition,
            number if self.offset is UNSET else self.offset,
            None if time is UNSET else time,
        )


_LINES, _ORIGINS, _ENCODER = (
    msgspec.json.Decoder(_Line),
    msgspec.json.Decoder(_Origin),
    msgspec.json.Encoder(),
)


def lines_of(records: Iterable[ConsumerRecord], topic: str, bootstrap: str | None) -> Iterator[str]:
    """Yield records of one topic as lines of a dump."""
    line = _Line(topic=topic, bootstrapServers=bootstrap or UNSET)
    for key, value, line.partition, line.offset, line.timestamp in records:
        line.key, line.keyBase64 = _text(key)
        line.value, line.valueBase64 = _text(value)
        yield _ENCODER.encode(line).decode()


def read_records(
    blocks: Iterable[bytes], source: str, *, complete: bool = True
) -> Iterator[tuple[TopicOrigin, ConsumerRecord]]:
    """Yield each record of a dump with its topic. Raises ``BadInput`` with the number of the line.

    In a part of a dump, which is not ``complete``, each line needs an offset: line numbers do not
    show the newest record.
    """
    number = 1
    for block in blocks:
        yield from _records(block, source, number, complete)
        number += block.count(b"\n")


def checked(path: Path) -> Iterator[bytes]:
    """Yield the content of a dump, in blocks. Raises ``BadInput`` as ``read_records`` does."""
    number = 1
    for block in blocks_of(path):
        deque(_records(block, name_of(path), number), maxlen=0)
        number += block.count(b"\n")
        yield block


def topics_in(path: Path) -> set[TopicOrigin]:
    """Return the topics of the records of a dump. Raises ``BadInput`` for a line that is not
    JSON.
    """
    found, number = set[TopicOrigin](), 1
    for block in blocks_of(path):
        try:
            origins = _ORIGINS.decode_lines(block)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            found.update(where for where, _ in _records(block, name_of(path), number))
        else:
            found.update(
                origin.where
                for origin in origins
                if origin.group is UNSET and origin.kind not in SEALS
            )
        number += block.count(b"\n")
    return found


def _records(
    block: bytes, source: str, first: int, complete: bool = True
) -> Iterator[tuple[TopicOrigin, ConsumerRecord]]:
    found: list[_Line] = []
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _LINES.decode_lines(block)
    # The decoder takes any white space between objects: each has a line of its own only if each
    # line feed divides two.
    lines_there = block.count(b"\n") + (not block.endswith(b"\n"))
    alone = len(found) == lines_there == block.count(b"}\n{") + 1
    lines = enumerate(found, first) if alone else _by_line(block, source, first)
    for number, line in lines:
        try:
            if not line.is_record:
                continue
            if not complete and line.offset is UNSET:
                raise ValueError("it has no offset, which --engine spark needs")
            record = line.record(number - 1)
        except ValueError as e:
            raise _no_record(source, number, e) from e
        yield line.where, record


def _by_line(block: bytes, source: str, first: int) -> Iterator[tuple[int, _Line]]:
    for number, text in enumerate(block.split(b"\n"), first):
        if not text.strip():
            continue
        try:
            yield number, _LINES.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
            # msgspec has an error of its own for bytes that are not UTF-8 since 0.23.
            with _utf_8(source):
                text.decode()
            raise _no_record(source, number, e, text) from e


def _no_record(source: str, number: int, error: Exception, line: bytes = b"") -> BadInput:
    form = foreign_form(line.decode(errors="replace"))
    return BadInput(
        f"{source}, line {number}: this is not a record",
        why=form or str(error),
        next_step=f"Make it with: {CALL} > FILE, or connectctl offsets backup --out FILE."
        if form
        else FORM,
    )


@contextmanager
def _utf_8(source: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as e:
        raise BadInput(f"The dump {source} cannot be read", why="it is not UTF-8 text") from e


def _text(raw: bytes | None) -> tuple[Text, Text]:
    """Return bytes as text, or in Base64 if they are not UTF-8."""
    try:
        return (None if raw is None else raw.decode()), UNSET
    except UnicodeDecodeError:
        return UNSET, base64.b64encode(raw or b"").decode()


def _bytes(text: Text, encoded: Text) -> bytes | None:
    if isinstance(encoded, str):
        return base64.b64decode(encoded, validate=True)
    return text.encode() if isinstance(text, str) else None


def name_of(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def blocks_of(path: Path) -> Iterator[bytes]:
    """Yield blocks of whole lines in ``path``, of standard input for ``-``, of the part files of a
    directory.

    Raises ``BadInput``; at the end of a backup, if it was truncated or changed. Lines end only at a
    line feed.
    """
    with _readable(path):
        for part in _files(path):
            with nullcontext(sys.stdin.buffer) if str(part) == "-" else part.open("rb") as file:
                blocks = as_lines(_blocks(file), name_of(part))
                yield from (
                    verified_part(blocks, part)
                    if path.is_dir()
                    else verified(blocks, name_of(part))
                )


class Range(NamedTuple):
    """The lines of a file whose first byte is at ``start`` or later and before ``end``."""

    file: Path
    start: int
    end: int


def ranges_of(path: Path, size: int) -> list[Range]:
    """Return the ranges of ``size`` bytes of a dump, or of a directory's part files. Raises
    ``BadInput``.
    """
    with _readable(path):
        ends = [(file, file.stat().st_size) for file in _files(path)]
    return [Range(file, n, min(n + size, end)) for file, end in ends for n in range(0, end, size)]


def blocks_in(part: Range) -> Iterator[bytes]:
    """Yield the lines of a range. Raises ``BadInput``."""
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


def texts_of(path: Path) -> Iterator[str]:
    """Yield the lines in ``path`` as text. Raises ``BadInput`` as ``blocks_of``."""
    for block in blocks_of(path):
        with _utf_8(name_of(path)):
            yield from io.StringIO(block.decode(), newline="\n")

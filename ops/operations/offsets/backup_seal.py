"""The first and the last line of a backup: the first identifies it, and the last holds the SHA-256
of the lines between them.

A truncated or changed backup is refused before it is used. Files without these lines are read
without verification: dumps of kcat, and lines that ``grep`` selected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path

from connectctl.ops.config.json_shape import an_object, mapping, text
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput

SEALS = _KIND, _END_KIND = "OffsetsBackup", "OffsetsBackupEnd"
FIRST = json.dumps({"apiVersion": "connectctl/v1", "kind": _KIND}) + "\n"
SEAL_LINES = 2
PARTS, SUMS = "part-*", "_sha256.json"
"""The part files of a backup that Spark's tasks write, and the file beside them with the SHA-256 of
each.
"""
_HINT = "Use another copy of it. If the change is intended, delete its first and its last line."


def sealed(texts: Iterable[str]) -> Iterator[str]:
    """Yield ``texts``, of one or more whole lines each, between the first and the last line of a
    backup.
    """
    hashed, unread = sha256(), iter(texts)
    first = next(unread, "")  # An error here leaves the output empty.
    yield FIRST
    for lines in chain([first], unread):
        hashed.update(lines.encode())
        yield lines
    yield _last(hashed.hexdigest())


def _last(digest: str) -> str:
    return json.dumps({"kind": _END_KIND, "sha256": digest}) + "\n"


def verified(blocks: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Yield ``blocks`` of whole lines unchanged. Raises ``BadInput`` at their end if they differ
    from the sealed ones.
    """
    hashed, last, is_backup = sha256(), b"", None
    for block in blocks:
        if is_backup is None:
            is_backup = (block + b"\n").startswith(FIRST.encode())
            unread = block[len(FIRST) :] if is_backup else block
        else:
            unread = last + block
        if is_backup:
            at = unread.rfind(b"\n", 0, len(unread) - 1) + 1
            hashed.update(unread[:at])
            last = unread[at:]
        else:
            last = block[block.rfind(b"\n", 0, len(block) - 1) + 1 :]
        yield block
    if is_backup and last != _last(hashed.hexdigest()).encode():
        _refuse(source, last)
    if not is_backup and _END_KIND.encode() in last and _is_last(last):
        raise _changed(source, "its first line is missing")


def seal_directory(directory: Path) -> None:
    """Write the SHA-256 of each part file of a backup that Spark's tasks wrote beside them."""
    found = {}
    for part in sorted(directory.glob(PARTS)):
        with part.open("rb") as file:
            found[part.name] = file_digest(file, "sha256").hexdigest()
    (directory / SUMS).write_text(json.dumps({"kind": _END_KIND, "sha256": found}, indent=1) + "\n")


def verified_part(blocks: Iterable[bytes], part: Path) -> Iterator[bytes]:
    """Yield ``blocks`` of a part file. Raises ``BadInput`` at their end if the file has changed
    since ``seal_directory``.
    """
    hashed = sha256()
    for block in blocks:
        hashed.update(block)
        yield block
    known = _sums(part.parent)
    if known is not None and known.get(part.name) != hashed.hexdigest():
        raise _changed(str(part), f"its SHA-256 is not the one in {part.parent / SUMS}")


def check_parts(directory: Path) -> None:
    """Raise ``BadInput`` if a part file of a backup in ``directory`` is missing."""
    if missing := sorted(
        (_sums(directory) or {}).keys() - {part.name for part in directory.glob(PARTS)}
    ):
        raise _changed(str(directory), f"{missing[0]} is missing")


def _sums(directory: Path) -> dict[str, str] | None:
    """Return the SHA-256 of each part file, None for files that another program wrote."""
    try:
        data = read_json((directory / SUMS).read_bytes())
        an_object({"sha256": mapping(text)})(data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as e:
        raise _changed(str(directory / SUMS), str(e)) from e
    return dict(data["sha256"])


def _refuse(source: str, last: bytes) -> None:
    if _is_last(last):
        raise _changed(source, "its SHA-256 is not the one in its last line")
    why = "its last line, with its SHA-256, is missing"
    raise BadInput(f"The backup {source} is cut", why=why, next_step=_HINT, code="changed-backup")


def _changed(source: str, why: str) -> BadInput:
    what = f"The backup {source} was changed after it was made"
    return BadInput(what, why=why, next_step=_HINT, code="changed-backup")


def _is_last(line: bytes) -> bool:
    try:
        data = read_json(line)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("kind") == _END_KIND

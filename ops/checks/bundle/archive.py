"""The archive of a bundle: a manifest, one line of JSON for each call, and the verdict."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectctl.ops.checks.bundle.tape import Call
from connectctl.ops.config import whole_file
from connectctl.ops.config.json_shape import an_object, anything, array, one_of, text, whole
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput, ConnectctlError

FORMAT = "1"
MANIFEST, CALLS, VERDICT = "manifest.json", "calls.jsonl", "verdict.json"
LARGEST = 2**30
"""Most bytes of a file in a bundle that are read into memory."""
_ANSWER = an_object({}, {"error": an_object({})})
_CALL = an_object({"name": text, "arguments": anything, "answers": array(_ANSWER)})
_MANIFEST = an_object(
    {
        "kind": one_of("Bundle"),
        "format": one_of(FORMAT),
        "takenAt": text,
        "takenAtMs": whole,
        "version": text,
        "connectors": array(text),
    }
)


@dataclass(frozen=True)
class Bundle:
    """What a check read, and its verdict. ``manifest`` and ``verdict`` are JSON values.

    ``names`` are names by the pseudonyms that replace them; they are not in the archive.
    """

    manifest: Mapping[str, Any]
    calls: Sequence[Call]
    verdict: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def taken_at(self) -> float:
        """Return when the check was made, in seconds since the epoch."""
        return float(self.manifest["takenAtMs"]) / 1000

    @property
    def connectors(self) -> list[str]:
        """Return the connectors that the user named; none if all were checked."""
        return list(self.manifest["connectors"])


def check(path: Path) -> None:
    """Raise ``BadInput`` if the archive cannot be written to ``path``, before anything is read."""
    if path.exists():
        raise _exists(path)
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{path} cannot be written", why="the directory does not exist")


def _exists(path: Path) -> BadInput:
    return BadInput(f"{path} exists already", next_step="Give another --out.")


def write(bundle: Bundle, path: Path) -> None:
    """Write the archive atomically, readable by its owner only. Raises ``BadInput`` if it exists,
    ``ConnectctlError`` if it cannot be written.
    """
    try:
        with whole_file.draft(path.parent) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(MANIFEST, _pretty(bundle.manifest))
                archive.writestr(VERDICT, _pretty(bundle.verdict))
                with archive.open(CALLS, "w", force_zip64=True) as lines:
                    for call in bundle.calls:
                        lines.write(_line(call))
            file.flush()
            os.link(file.name, path)
    except FileExistsError as e:
        raise _exists(path) from e
    except OSError as e:
        raise ConnectctlError(f"{path} cannot be written", why=e.strerror) from e


def _pretty(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _line(call: Call) -> bytes:
    data = {"name": call.name, "arguments": call.arguments, "answers": call.answers}
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def read(path: Path) -> Bundle:
    """Return the bundle in ``path``. Raises ``BadInput``."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = read_json(_content(archive, MANIFEST))
            _MANIFEST(manifest)
            verdict = read_json(_content(archive, VERDICT))
            return Bundle(manifest, tuple(_calls(_content(archive, CALLS))), verdict)
    except OSError as e:
        raise BadInput(f"{path} cannot be read", why=e.strerror) from e
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError) as e:
        raise BadInput(
            f"{path} is not a bundle",
            why=str(e).strip("'\"") or type(e).__name__,
            next_step="Write one with the command bundle.",
        ) from e


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    size = archive.getinfo(name).file_size
    if size > LARGEST:
        raise ValueError(f"{name} has {size:,} bytes, and at most {LARGEST:,} are read")
    return archive.read(name)


def _calls(content: bytes) -> Iterator[Call]:
    for line in content.splitlines():
        data = read_json(line)
        _CALL(data)
        yield Call(data["name"], data["arguments"], data["answers"])

"""Writes a file that an option names as a whole: a reader gets the old contents or the new ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


@contextmanager
def replaced(path: Path, new_mode: int = 0o666) -> Iterator[TextIO]:
    """Yield a file whose text replaces that of ``path`` at the end. Raises ``OSError``.

    A link stays a link, and a file keeps its mode; a new one has ``new_mode``. A pipe or a device
    is written to: a rename over ``/dev/null`` would put a file in its place for every program.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    real = Path(os.path.realpath(path))
    draft = real.with_name(f".connectctl-{os.getpid()}.part")
    try:
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, new_mode)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            if real.exists():
                draft.chmod(real.stat().st_mode & 0o777)
            yield file
        draft.replace(real)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)

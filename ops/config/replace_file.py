"""A file that a person keeps is replaced at once or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from connectctl.ops.core.errors import BadInput, Refused


def replace_file(path: Path, text: str, former: bytes | None) -> None:
    """Put ``text`` in place of ``former``, at once or not at all, with the file's own mode; 0600 for a new one.

    A link stays a link. Raises ``Refused`` where the file is no longer ``former``, ``BadInput`` where it cannot be written.
    """
    real = Path(os.path.realpath(path))
    try:
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(".part", f".{real.name}.", real.parent)
        try:
            with os.fdopen(number, "wb") as file:
                os.fchmod(number, 0o600 if former is None else real.stat().st_mode & 0o777)
                file.write(text.encode())
                file.flush()
                os.fsync(number)
            if (real.read_bytes() if real.exists() else None) != former:
                raise Refused(f"{path} was changed meanwhile; nothing was written", next_step="Try again.")
            Path(draft).replace(real)
        finally:
            Path(draft).unlink(missing_ok=True)
    except OSError as e:
        why = "its directory is a file" if isinstance(e, FileExistsError) else e.strerror
        raise BadInput(f"The file {path} cannot be written", why=why) from e

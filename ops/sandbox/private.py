"""Files with secrets in them, which only their owner may ever read."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, content: str | bytes) -> Path:
    """Write ``content``; the file is 0600 before there is anything in it. Gives ``path``."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o600)
        file.write(content.encode() if isinstance(content, str) else content)
    return path

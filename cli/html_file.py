"""The file of ``--html``: checked before any connection is opened, and written atomically."""

from __future__ import annotations

import os
from pathlib import Path

from connectctl.ops.config import whole_file
from connectctl.ops.core.errors import BadInput, ConnectctlError


def check(path: Path | None) -> None:
    """Check that ``--html`` can be written. Raises ``BadInput``."""
    if path is None:
        return
    parent = Path(os.path.realpath(path)).parent
    for wrong, why in (
        (not parent.is_dir(), "the directory does not exist"),
        (path.is_dir(), "it is a directory"),
        (
            not path.exists() and not os.access(parent, os.W_OK | os.X_OK),
            "its directory is not writable",
        ),
    ):
        if wrong:
            raise BadInput(f"--html {path} cannot be written", why=why)


def write(path: Path, page: str) -> None:
    """Write the page atomically: a reader gets the old one or the new one. Raises
    ``ConnectctlError``.
    """
    try:
        whole_file.publish(path, page)
    except OSError as e:
        raise ConnectctlError(f"--html {path} cannot be written", why=e.strerror) from e

"""The file of ``--html``: refused before anything is opened, and written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from connectctl.ops.core.errors import BadInput, ConnectctlError


def check(path: Path | None) -> None:
    """Raises ``BadInput`` where ``--html`` names what cannot be written."""
    if path is None:
        return
    parent = Path(os.path.realpath(path)).parent
    for wrong, why in (
        (not parent.is_dir(), "the directory does not exist"),
        (path.is_dir(), "it is a directory"),
        (not path.exists() and not os.access(parent, os.W_OK | os.X_OK), "its directory is not writable"),
    ):
        if wrong:
            raise BadInput(f"--html {path} cannot be written", why=why)


def write(path: Path, page: str) -> None:
    """Write the page: whoever opens it meets the old one or the new one, never a half. Raises ``ConnectctlError``."""
    real = Path(os.path.realpath(path))
    beside = real.with_name(f".connectctl-{os.getpid()}.html")
    try:
        if real.exists() and not real.is_file():  # a pipe or a device
            real.write_text(page, encoding="utf-8")
            return
        try:
            beside.touch()
            if real.exists():
                beside.chmod(real.stat().st_mode & 0o777)
            beside.write_text(page, encoding="utf-8")
            beside.replace(real)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
    except OSError as e:
        raise ConnectctlError(f"--html {path} cannot be written", why=e.strerror) from e

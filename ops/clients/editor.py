"""The person's editor: a text goes in, and comes back as it was saved."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from connectctl.ops.core.errors import BadInput, Refused

VARIABLES = ("VISUAL", "EDITOR")
DEFAULT = "vi"


def edit(path: Path, environment: Mapping[str, str]) -> None:
    """Have ``path`` edited. Raises ``BadInput`` where there is no such editor, ``Refused`` where it
    ends with an error.
    """
    words = next(
        (environment[name] for name in VARIABLES if environment.get(name, "").strip()), DEFAULT
    )
    try:
        command = [*shlex.split(words), str(path)]
        code = subprocess.run(command, check=False).returncode
    except (OSError, ValueError) as e:
        raise BadInput(
            f"The editor {words} cannot be started",
            why=getattr(e, "strerror", None) or str(e),
            next_step="Set EDITOR to the command of an editor.",
        ) from e
    if code:
        raise Refused(
            f"The editor {words} ended with {code}; nothing was done", code="not-confirmed"
        )

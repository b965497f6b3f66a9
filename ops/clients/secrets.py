"""Turns a reference to a secret into the secret, at the moment a connection is opened and not
before.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from connectctl.ops.config.masking import remember
from connectctl.ops.config.settings import SecretSource
from connectctl.ops.core.errors import BadInput

COMMAND_TIMEOUT = 30.0
"""Seconds that a command which prints a secret may take."""


def reveal(name: str, value: Any) -> Any:
    """``value`` itself, or the secret it refers to. Raises ``BadInput`` that names ``name``, never
    the secret.
    """
    if not isinstance(value, SecretSource):
        return value
    try:
        secret = _READERS[value.kind](value.value).rstrip("\r\n")
        remember({"password": secret})
        return secret
    except KeyError as e:
        raise BadInput(
            f"{name}: the environment variable {value.value} is not set",
            next_step=f"Set {value.value}.",
        ) from e
    except OSError as e:
        raise BadInput(f"{name}: {value.value} cannot be read", why=e.strerror) from e
    except subprocess.SubprocessError as e:
        why = (
            f"exit status {e.returncode}"
            if isinstance(e, subprocess.CalledProcessError)
            else "it took too long"
        )
        raise BadInput(
            f"{name}: its command printed no secret", why=why, next_step=f"Try it: {value.value}"
        ) from e


def _from_command(command: str) -> str:
    # The person's own shell line from their own context file; its standard error reaches their
    # terminal.
    done = subprocess.run(
        command,
        shell=True,
        check=True,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=COMMAND_TIMEOUT,
    )
    return done.stdout.decode()


_READERS = {
    "env": lambda name: os.environ[name],
    "file": lambda path: Path(path).expanduser().read_text(),
    "command": _from_command,
}

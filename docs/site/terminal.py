"""The picture of a terminal in README.md, from commands that run on a real cluster.

    python docs/site/terminal.py

It starts a sandbox with a connector that gets a dedicated offsets topic, runs the commands of
``SHOWN`` in a pseudo-terminal of ``COLUMNS`` columns, writes docs/terminal.svg, and removes the
sandbox. The picture names no font that a browser would fetch.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "terminal.svg"
COLUMNS, ROWS = 104, 60
LINES = Path("/tmp/orders.txt")
"""A file that the workers read, with a name that is short in the picture."""
CONNECTOR = {
    "name": "orders",
    "config": {"connector.class": "FileStreamSource", "file": str(LINES), "topic": "orders"},
}
BEFORE = (
    "connectors create -f orders.json --wait --yes",
    "connectors stop orders --wait --yes",
    "connectors patch orders offsets.storage.topic=orders-offsets --yes",
)
SHOWN = (
    "connectctl offsets show orders",
    "connectctl preflight",
    "connectctl offsets merge orders --into dedicated --dry-run",
)
FAILS = {"connectctl preflight": 1}
"""The exit codes of the commands that do not return 0: preflight reports an error."""


def main() -> None:
    program = Path(sys.executable).parent / "connectctl"
    with tempfile.TemporaryDirectory() as place:
        environment = {
            **{key: value for key, value in os.environ.items() if "CONNECTCTL_" not in key},
            "CONNECTCTL_CONTEXT": "sandbox-shop",
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "XDG_CONFIG_HOME": place,
            "XDG_STATE_HOME": place,
        }
        (Path(place) / "orders.json").write_text(json.dumps(CONNECTOR))
        LINES.write_text("".join(f"order {n}\n" for n in range(1000)))

        def quietly(arguments: str) -> None:
            subprocess.run([program, *arguments.split()], cwd=place, env=environment, check=True)

        try:
            quietly("sandbox up --name shop --support enabled")
            for arguments in BEFORE:
                quietly(arguments)
            PICTURE.write_text(drawn({line: _printed(line, environment, place) for line in SHOWN}))
        finally:
            quietly("sandbox down --name shop")
            LINES.unlink()


def _printed(line: str, environment: Mapping[str, str], directory: str) -> str:
    """Return what a command prints on a terminal, with its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(
        ["bash", "-c", line],
        cwd=directory,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        output = bytearray()
        with suppress(OSError):  # the terminal's other end was closed
            while some := os.read(ours, 1 << 16):
                output += some
    os.close(ours)
    assert process.returncode == FAILS.get(line, 0), output.decode()
    return output.decode().replace("\r\n", "\n")


def drawn(session: Mapping[str, str]) -> str:
    """Return an SVG of a terminal in which commands were run, with what they printed."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for index, (line, output) in enumerate(session.items()):
        console.print(Text.assemble("\n" if index else "", ("$ ", "green"), (line, "bold")))
        console.print(Text.from_ansi(output.rstrip("\n")))
    picture = console.export_svg(title="connectctl", unique_id="terminal")
    # rich names a font on another host.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL) + "\n"


if __name__ == "__main__":
    main()

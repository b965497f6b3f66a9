"""Lines that the README and the pages show, and how they are carried out: in the environment of
somebody who has used connectctl never before.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from unittest import mock

from connectctl.ops.config import context_file
from documentation import Shown
from live.real import DEADLINE, Ran, connectctl

LAST = "connectctl sandbox down"
OF_KCCTL = ("connectctl-orders.txt", "connectctl-invoices.txt", "connectctl-payments.txt")
OF_CODE = ("connectctl-shop-orders.txt", "connectctl-shop-users.txt")
MADE = (
    "connectctl-numbers.txt",
    "connectctl-archive.txt",
    "connectctl-amounts.txt",
    "connectctl-shop.db",
    *OF_KCCTL,
    *OF_CODE,
)
"""What the pages put into /tmp, because workers and executors are to find it."""


def pattern(shown: str) -> re.Pattern[str]:
    """``shown`` as a pattern: ``…`` on a line of its own is any lines, within a line anything,
    spaces any spaces.
    """
    lines = []
    for line in shown.rstrip("\n").split("\n"):
        parts = [
            r"\s+".join(map(re.escape, piece.split()))
            for piece in re.split(r"(?:\s*…\s*)", line.strip())
        ]
        lines.append(
            r"(?:.*\n)*" if line.strip() == "…" else r" *" + r"[^\n]*".join(parts) + r"\s*\n"
        )
    return re.compile("".join(lines))


CURL = """\
#!{python}
import argparse, urllib.request
parser = argparse.ArgumentParser()
parser.add_argument("-s", action="store_true")
parser.add_argument("-X", dest="method")
parser.add_argument("-H", dest="header")
parser.add_argument("-d", dest="data")
parser.add_argument("url")
wish = parser.parse_args()
headers = dict([wish.header.split(": ")])
request = urllib.request.Request(wish.url, wish.data.encode(), headers, method=wish.method)
print(urllib.request.urlopen(request).read().decode(), end="")
"""
"""What the pages need of curl, for machines that have none."""


def curl_if_there_is_none(place: Path) -> None:
    if shutil.which("curl") is None:
        place.mkdir()
        (place / "curl").write_text(CURL.format(python=sys.executable))
        (place / "curl").chmod(0o755)


_SHELLS = re.compile(r"[|<>&;$`*?~\[\]\\\n]|^\w+=")
_QUOTED = re.compile(r"'[^']*'")


def words_of(command: str) -> list[str] | None:
    """The arguments of connectctl in a line; None for another command, and for what only a shell
    understands.
    """
    if not command.startswith("connectctl ") or _SHELLS.search(_QUOTED.sub("", command)):
        return None
    return shlex.split(command, comments=True)[1:]


@contextmanager
def imports_forgotten(directory: Path) -> Iterator[None]:
    """Forget the modules that are imported from ``directory``, and the paths that are added."""
    with mock.patch.object(sys, "path", [*sys.path]):
        yield
    for imported, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", None) or "").startswith(str(directory)):
            del sys.modules[imported]


def carry_out(command: str, environment: Mapping[str, str], directory: Path) -> Ran:
    """Run a line: connectctl in this process, which costs a tenth, and all else by a shell."""
    if (words := words_of(command)) is not None:
        with (
            mock.patch.dict(os.environ, environment, clear=True),
            chdir(directory),
            imports_forgotten(directory),
        ):
            return connectctl(*words)
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def run(shown: Shown, environment: Mapping[str, str], directory: Path) -> None:
    """Run a command in ``directory``, and compare what it prints with what is shown."""
    ran = carry_out(shown.command, environment, directory)
    assert ran.code == 0, f"$ {shown.command}\n{ran.out}{ran.err}"
    if shown.output.strip():
        found = pattern(shown.output).fullmatch(ran.out.rstrip("\n") + "\n")
        assert found, f"$ {shown.command}\nshows:\n{shown.output}\nprints:\n{ran.out}\n{ran.err}"


def addresses(state: Path) -> dict[str, str]:
    """The sandbox's brokers and group, as somebody without a context file gives them."""
    entry = context_file.read(state / "connectctl/sandbox/default/context.yaml").entry(
        "sandbox-default"
    )
    assert entry.bootstrap_servers is not None
    assert entry.group_id is not None
    return {
        "CONNECTCTL_BOOTSTRAP_SERVERS": entry.bootstrap_servers,
        "CONNECTCTL_GROUP_ID": entry.group_id,
    }


def fresh(place: Path) -> dict[str, str]:
    """Return the environment of somebody who has used connectctl never before, and make their
    directory ``work``.
    """
    (place / "work").mkdir()
    curl_if_there_is_none(place / "bin")
    path = [str(Path(sys.executable).parent), str(place / "bin"), os.environ["PATH"]]
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith("CONNECTCTL_")},
        "XDG_STATE_HOME": str(place / "state"),
        "XDG_CONFIG_HOME": str(place / "config"),
        "PATH": os.pathsep.join(path),
    }

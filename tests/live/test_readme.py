"""What the README and the pages of the documentation show is what happens."""

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

import pytest
from connectctl.ops.config import context_file
from documentation import PAGES, ROOT, Shown, blocks, commands, lines, name
from live.real import DEADLINE, Ran, connectctl

ORDER = (
    "docs/commands/sandbox.md",
    "docs/commands/context.md",
    "docs/commands/cluster.md",
    "docs/commands/connectors.md",
    "docs/commands/plugins.md",
    "docs/commands/loggers.md",
    "docs/how-to/from-kcctl.md",
    "docs/how-to/connectors-as-code.md",
    "docs/commands/preflight.md",
    "docs/commands/doctor.md",
    "docs/commands/bundle.md",
    "docs/commands/validate.md",
    "docs/how-to/templates.md",
    "docs/commands/tasks.md",
    "docs/commands/upgrade.md",
    "docs/how-to/exactly-once.md",
    "docs/how-to/ci.md",
    "docs/commands/offsets.md",
    "docs/commands/runs.md",
    "docs/how-to/move-offsets.md",
    "docs/how-to/own-offsets-topic.md",
    "docs/commands/fence.md",
    "docs/how-to/fenced-tasks.md",
    "docs/commands/transactions.md",
    "docs/commands/run.md",
    "docs/how-to/transforms.md",
    "docs/how-to/single-message-transforms.md",
    "docs/how-to/own-connector.md",
    "docs/commands/audit.md",
    "docs/commands/completion.md",
    "docs/commands/docs.md",
)
"""One sequence on one sandbox: a page finds what those before it left."""
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


@pytest.mark.live
def test_the_lines_of_the_readme_run_in_order_on_a_fresh_sandbox(tmp_path: Path) -> None:
    """Those of its table too. Its own cluster, at its end, is the sandbox."""
    environment = fresh(tmp_path)
    work = tmp_path / "work"
    typed = lines(ROOT / "README.md")
    assert len(typed) > 20
    try:
        for line in typed:
            if line.startswith("export "):
                environment |= addresses(tmp_path / "state")
            elif line != LAST:
                run(Shown(line, ""), environment, work)
    finally:
        assert carry_out(LAST, environment, work).code == 0
        for made in MADE:
            (Path("/tmp") / made).unlink(missing_ok=True)


@pytest.mark.live
def test_every_command_of_the_documentation_does_what_it_shows(tmp_path: Path) -> None:
    """One page after the other, in one directory, with one state directory.

    What a page exports counts on that page. Its brokers and group, where it names some, are the
    sandbox's.
    """
    bare = fresh(tmp_path)
    work = tmp_path / "work"
    try:
        for page in (ROOT / each for each in ORDER):
            environment = bare | {"CONNECTCTL_CONTEXT": "sandbox-default"}
            for block in blocks(page):
                if block.file:
                    (work / block.file).parent.mkdir(exist_ok=True)
                    (work / block.file).write_text(block.text)
            for shown in commands(page):
                if exported := re.fullmatch(r"export (\w+)=(\S+)", shown.command):
                    if exported[1] in ("CONNECTCTL_BOOTSTRAP_SERVERS", "CONNECTCTL_GROUP_ID"):
                        environment = bare | addresses(tmp_path / "state")
                    else:
                        environment[exported[1]] = exported[2]
                elif shown.command != LAST:
                    run(shown, environment, work)
        run(next(shown for shown in commands(ROOT / ORDER[0]) if shown.command == LAST), bare, work)
    finally:
        assert carry_out(LAST, bare, work).code == 0
        for made in MADE:
            (Path("/tmp") / made).unlink(missing_ok=True)


def test_every_page_that_shows_commands_has_its_turn() -> None:
    assert sorted(name(page) for page in PAGES if [*commands(page)]) == sorted(
        ["README.md", *ORDER]
    )

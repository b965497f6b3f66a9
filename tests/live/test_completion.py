"""TAB in a real shell."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.cli.commands.completion import FILES, SCRIPTS
from live.real import DEADLINE, FILE_SOURCE, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
ASK = {
    "bash": 'source {script}; COMP_LINE="{line}"; COMP_POINT=${{#COMP_LINE}}; _connectctl '
    'connectctl; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "fish": 'source {script}; complete --do-complete "{line}"',
}


def candidates(shell: str, line: str) -> list[str]:
    """What ``shell`` offers after ``line``, without the help that may follow each candidate."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = ASK[shell].format(script=SCRIPTS / FILES[shell], line=line)
    done = subprocess.run(
        [shell, "-c", script],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


def _offers(shell: str, line: str, names: list[str]) -> bool:
    return candidates(shell, line) == names


@pytest.mark.parametrize("shell", ASK)
def test_a_shell_offers_commands_options_and_live_connector_names(
    cluster: Sandbox, shell: str
) -> None:
    config = {"connector.class": FILE_SOURCE, "file": "/nowhere", "topic": "nowhere"}
    with connector(cluster, "tab-source", config, "STOPPED"):
        assert "offsets" in candidates(shell, "connectctl off")
        assert "--global-only" in candidates(shell, "connectctl offsets show --gl")
        for verb in ("offsets show", "connectors stop"):
            line = f"connectctl --context sandbox-tests {verb} tab-"
            # A slow machine has no names in the time that a person waits for them.
            eventually(partial(_offers, shell, line, ["tab-source"]))


def _is_offered(line: str, name: str) -> bool:
    return name in candidates("bash", line)


def test_names_of_everything_on_a_cluster_are_offered(cluster: Sandbox) -> None:
    config = {"connector.class": FILE_SOURCE, "file": "/nowhere", "topic": "nowhere"}
    on = "connectctl --context sandbox-tests"
    with connector(cluster, "tab-patch", config, "STOPPED"):
        for line, name in (
            ("plugins show org.apache.kafka.connect.file.FileStreamSo", FILE_SOURCE),
            ("connectors patch tab-patch batch.si", "batch.size="),
            ("loggers set ro", "root"),
            ("loggers get --worker 127", cluster.rest_urls[0].removeprefix("http://")),
            ("transactions show connect-cluster-", f"connect-cluster-{cluster.group_id}"),
            (f"transactions lag --topic {cluster.topics['status'][:-2]}", cluster.topics["status"]),
            ("run status tab-pat", "tab-patch"),
        ):
            eventually(partial(_is_offered, f"{on} {line}", name))
    assert "sandbox-tests" in candidates("bash", "connectctl --context sandbox-t")


@pytest.mark.parametrize(
    "where",
    ["--context nowhere", f"--timeout {2 * DEADLINE} --bootstrap-servers 127.0.0.1:1 --group-id g"],
)
def test_a_cluster_that_does_not_answer_is_no_noise_and_no_wait(where: str) -> None:
    started = time.monotonic()
    assert candidates("bash", f"connectctl {where} offsets show ") == []
    assert time.monotonic() - started < DEADLINE


def typed_in_zsh(keys: str, until: str) -> str:
    """What an interactive zsh shows after ``keys``, up to ``until``. Its completion is a part of
    its line editor, which needs a terminal.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover  # it becomes zsh
        env = os.environ | {"PATH": path, "TERM": "dumb"}
        os.execvpe("zsh", ["zsh", "-f", "-i"], env)
    try:
        begin = (
            f"autoload -U compinit; compinit -u -D; source {SCRIPTS / FILES['zsh']}; echo re''ady\n"
        )
        os.write(terminal, begin.encode())
        _read(terminal, "ready\r")
        os.write(terminal, keys.encode())
        return _read(terminal, until)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def _read(terminal: int, until: str) -> str:
    shown, end = "", time.monotonic() + DEADLINE
    while until not in shown:
        assert time.monotonic() < end, shown
        if select.select([terminal], [], [], 1.0)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    return shown


def test_zsh_completes_commands_and_live_connector_names(cluster: Sandbox) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed here")
    config = {"connector.class": FILE_SOURCE, "file": "/nowhere", "topic": "nowhere"}
    with connector(cluster, "tab-zsh", config, "STOPPED"):
        line = "connectctl --context sandbox-tests connectors stop tab-"
        # A slow machine has no names in the time that a person waits for them.
        eventually(partial(_offers, "bash", line, ["tab-zsh"]))
        assert "offsets " in typed_in_zsh("connectctl offs\t", "offsets ")
        assert "tab-zsh " in typed_in_zsh(f"{line}\t", "tab-zsh ")

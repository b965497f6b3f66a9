"""The file of ``--html``: refused early, written whole; and the head of its page, without
secrets.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import html_file
from connectctl.cli.main import app
from connectctl.cli.views.html_origin import command_line, origin
from connectctl.ops.core.errors import BadInput, ConnectctlError, Unreachable
from connectctl.ops.kafka.brokers import BrokerVersion
from fakes.brokers import FakeBrokers
from fakes.kafkareads import FakeKafka, connect_group
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

TOPICS = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}


def cluster(reads: FakeKafka | None = None, **connectors: FakeConnector) -> FakeSession:
    owners = [(name, n) for name in connectors for n in (-1, 0)]
    kafka = reads or FakeKafka(
        {"cfg": [], "off": [], "sta": []}, groups={"connect": connect_group("connect", one=owners)}
    )
    urls = tuple(member.url for member in kafka.groups["connect"].members)
    return FakeSession(told=TOPICS, reads=kafka, calls=FakeWorkers(connectors, urls))


def show(session: FakeSession, *args: str) -> Result:
    return CliRunner().invoke(app, ["cluster", "show", *args], obj=session)


def test_cluster_show_writes_a_page_beside_what_it_prints(tmp_path: Path) -> None:
    file = tmp_path / "cluster.html"
    ran = show(cluster(orders=FakeConnector(tasks=["FAILED"])), "--html", str(file))
    assert (ran.exit_code, "orders" in ran.stdout) == (0, True)
    page = file.read_text("utf-8")
    for said in (
        "Connect cluster connect",
        "orders",
        "disk full",
        "fake-cluster",
        "one:8083",
        "<span>connectctl</span>",
    ):
        assert said in page, said
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.html"]


def test_with_no_connector_no_worker_and_no_rights_there_is_a_page_that_says_so(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cluster.html"
    group = {"connect": connect_group("connect", state="Empty")}
    assert (
        show(
            cluster(FakeKafka({"cfg": [], "off": [], "sta": []}, groups=group)), "--html", str(file)
        ).exit_code
        == 0
    )
    assert "No worker is in the group" in file.read_text()
    assert "own view of the connectors" in file.read_text()
    hidden = FakeKafka(
        {"cfg": [], "off": [], "sta": []}, groups=group, hidden={"cfg", "off", "sta"}
    )
    ran = show(cluster(hidden), "--html", str(file))
    assert ran.exit_code == 0, ran.stderr
    page = file.read_text()
    assert "The connectors could not be read" in page
    assert "may not be described" in page
    assert "SIGHT001" in page
    assert "There are no connectors" not in page


def test_a_page_and_a_watch_do_not_go_together(tmp_path: Path) -> None:
    ran = show(cluster(), "--watch", "--html", str(tmp_path / "x.html"))
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert "--html cannot be combined with --watch" in ran.stderr


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("no/x.html", "the directory does not exist"),
        (".", "it is a directory"),
        ("f/x", "does not exist"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_in_one_line_before_anything_is_opened(
    file: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").write_text("")
    ran = CliRunner().invoke(
        app, ["--bootstrap-servers", "nowhere:1", "cluster", "show", "--html", file]
    )
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert why in ran.stderr


def test_a_directory_without_the_right_to_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(BadInput, match="cannot be written") as raised:
        html_file.check(tmp_path / "x.html")
    assert raised.value.why == "its directory is not writable"


def test_a_page_replaces_the_old_one_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "x.html"
    file.write_text("old")
    file.chmod(0o600)
    html_file.write(file, "new \u00e9")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == ("new \u00e9".encode(), 0o600)
    link = tmp_path / "link.html"
    link.symlink_to(file)
    html_file.write(link, "newer")
    assert (link.is_symlink(), file.read_text()) == (True, "newer")
    assert {path.name for path in tmp_path.iterdir()} == {"x.html", "link.html"}


def test_a_write_that_fails_leaves_the_old_page_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.html"
    file.write_text("old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ConnectctlError, match="cannot be written") as raised:
        html_file.write(file, "new")
    assert raised.value.why == "No space left on device"
    assert ([path.name for path in tmp_path.iterdir()], file.read_text()) == (["x.html"], "old")


def test_a_pipe_gets_the_page_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    html_file.write(pipe, "page")
    reader.join()
    assert (got, pipe.is_fifo()) == (["page"], True)


def test_the_command_on_a_page_can_be_pasted_and_holds_no_secret() -> None:
    assert (
        " ".join(command_line(["audit", "a b", "--sequence", "$.seq"]))
        == "connectctl audit 'a b' --sequence '$.seq'"
    )
    for args in (
        ["--rest", "http://me:hunter2@one:8083"],
        ["--rest=http://me:hunter2@one:8083"],
        ["--token", "hunter2"],
    ):
        assert "hunter2" not in " ".join(command_line([*args, "cluster", "show"]))


def test_brokers_are_told_by_what_they_speak_and_those_that_do_not_answer_as_such() -> None:
    class Session(FakeSession):
        brokers: Any = FakeBrokers(
            {
                1: BrokerVersion(1, (4, 1), finalized={"transaction.version": 2}),
                2: BrokerVersion(2, (4, 1), finalized={"transaction.version": 2}),
                3: Unreachable("gone", why="Connection refused"),
            }
        )

    session = Session(told={"bootstrap_servers": "kafka:9092"})
    known = origin(session, 0.0, "c")
    assert known.brokers == (
        "brokers 1, 2: protocol of Kafka 4.1 (transaction.version 2)",
        "broker 3: version unknown (Connection refused)",
    )
    assert (known.context, known.bootstrap) == ("prod", "kafka:9092")
    Session.brokers = FakeBrokers(down=Unreachable("gone", why="nobody answers"))
    assert origin(session, 0.0, "c").brokers == ("versions unknown: nobody answers",)

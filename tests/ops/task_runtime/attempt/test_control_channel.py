"""The line between a run and its tasks: progress one way, the wish to stop the other."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.attempt import control_channel
from connectctl.ops.task_runtime.attempt.control_channel import (
    DriverAddress,
    DriverChannel,
    QuestionListener,
    TaskChannel,
    ask,
)
from connectctl.ops.task_runtime.attempt.task_attempt import known_ends
from fakes.openfiles import many_open_files
from live.real import eventually


@pytest.fixture
def board() -> Iterator[DriverChannel]:
    made = DriverChannel("127.0.0.1")
    yield made
    made.close()


def test_the_driver_hears_what_a_task_says_last(board: DriverChannel) -> None:
    line = TaskChannel(board.address, 3)
    for records in (1, 2):
        line.send({"task": 3, "records": records, "transactions": 1})
    eventually(lambda: board.messages.get(3, {}).get("records") == 2)
    assert not line.stopped
    line.close()


def test_every_task_hears_the_wish_to_stop_now_and_later(board: DriverChannel) -> None:
    now = TaskChannel(board.address, 0)
    now.send({"task": 0})
    eventually(lambda: 0 in board.messages)
    board.stop()
    later = TaskChannel(board.address, 0)
    eventually(lambda: now.stopped and later.stopped)
    now.close()
    later.close()


def test_an_end_of_leases_is_heard_by_those_who_are_there_and_by_nobody_later(
    board: DriverChannel,
) -> None:
    now = TaskChannel(board.address, 0)
    now.send({"task": 0})
    eventually(lambda: 0 in board.messages)
    board.end_leases()
    later = TaskChannel(board.address, 1)
    eventually(lambda: not now.stopped and now.lease_over)
    later.send({"task": 1})
    eventually(lambda: 1 in board.messages)
    assert not later.stopped
    assert not later.lease_over
    board.end_leases()
    board.stop()  # both words may come at once
    eventually(lambda: now.stopped and later.stopped and later.lease_over)
    now.close()
    later.close()


def test_a_task_whose_driver_is_gone_stops(board: DriverChannel) -> None:
    line = TaskChannel(board.address, 0)
    line.send({"task": 0})
    eventually(lambda: 0 in board.messages)
    board.close()
    eventually(lambda: line.stopped)
    line.send({"task": 0})  # and nothing happens
    line.close()


def test_a_task_hears_its_driver_however_many_files_are_open(board: DriverChannel) -> None:
    with many_open_files():
        line = TaskChannel(board.address, 4)
        line.send({"task": 4})
        eventually(lambda: 4 in board.messages)
        assert not line.stopped
        board.stop()
        eventually(lambda: line.stopped)
        line.close()


def test_a_task_that_cannot_connect_works_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    line = TaskChannel(DriverAddress("127.0.0.1", port, "word"), 0)
    line.send({"task": 0})
    assert (line.stopped, line.connected) == (False, False)
    line.close()


def test_a_task_hears_that_its_driver_is_alive(board: DriverChannel) -> None:
    line = TaskChannel(board.address, 0)
    began = line.last_line
    eventually(lambda: not line.stopped and line.last_line > began + control_channel.HEARTBEAT)
    line.close()


def test_a_driver_that_reads_nothing_keeps_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_channel, "CONNECT_TIMEOUT", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as suspended:
        line = TaskChannel(DriverAddress("127.0.0.1", suspended.getsockname()[1], "word"), 0)
        for _ in range(3):
            line.send({"task": 0, "long": "x" * 10_000_000})
        assert not line.stopped
        line.close()


def test_a_task_that_reads_nothing_keeps_no_driver(board: DriverChannel) -> None:
    line = TaskChannel(board.address, 0)
    eventually(lambda: board.connected)
    for _ in range(300_000):
        board.end_leases()
    board.stop()
    eventually(lambda: line.stopped)
    line.close()


def test_only_the_newest_attempt_of_a_task_in_the_round_is_heard(board: DriverChannel) -> None:
    older = TaskChannel(board.address, 3)
    older.send({"task": 3, "records": 1})
    eventually(lambda: board.messages.get(3, {}).get("records") == 1)
    newer = TaskChannel(board.address, 3)
    newer.send({"task": 3, "records": 2, "lines": ["a line"]})
    eventually(lambda: board.messages[3].get("records") == 2)
    assert board.take_lines() == [(3, "a line")]
    older.send({"task": 3, "records": 9, "lines": ["another"]})
    assert eventually(board.take_lines) == [(3, "another")]
    assert board.messages[3] == {"task": 3, "records": 2}
    newer.send({"task": 3, "lag": 5})  # the others stay
    eventually(lambda: board.messages[3] == {"task": 3, "records": 2, "lag": 5})
    older.close()
    board.begin_round()
    newer.send({"task": 3, "lines": ["the last"]})
    eventually(board.take_lines)
    assert (board.messages, board.connected) == ({}, frozenset())
    newer.close()


def test_it_is_known_which_tasks_are_connected(board: DriverChannel) -> None:
    lines = [TaskChannel(board.address, n) for n in (1, 2)]
    eventually(lambda: board.connected == {1, 2})
    lines[0].close()
    eventually(lambda: board.connected == {2})
    lines[1].close()


def test_an_attempt_can_ask_what_is_known_by_now(board: DriverChannel) -> None:
    board.answer = lambda: {"offsets": {"id": "i", "ends": [3, 4]}}
    found = ask(board.address, {"asks": "reached"})
    assert known_ends(found) == {"offsets": KnownEnds("i", (3, 4))}
    assert board.connected == frozenset()


def test_a_stranger_is_not_listened_to(
    board: DriverChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_channel, "GREETING", 1.0)
    stranger = TaskChannel(DriverAddress(board.address.host, board.address.port, "guess"), 0)
    stranger.send({"task": 0})
    eventually(lambda: stranger.stopped)
    assert board.messages == {}
    stranger.close()


def test_what_is_no_json_ends_the_line_and_nothing_else(board: DriverChannel) -> None:
    with socket.create_connection((board.address.host, board.address.port)) as raw:
        raw.sendall(f"{board.address.token}\nnonsense\n".encode())
        assert raw.recv(1) == b""
    line = TaskChannel(board.address, 1)
    line.send({"task": 1})
    eventually(lambda: 1 in board.messages)
    line.close()


def test_the_word_is_in_no_log(board: DriverChannel) -> None:
    assert board.address.token not in repr(board.address)
    assert board.address.token not in str(board.address)


@contextmanager
def dialled(board: DriverChannel, sent: bytes = b"") -> Iterator[socket.socket]:
    """A connection of somebody who does not have the token."""
    with socket.create_connection((board.address.host, board.address.port), 60) as line:
        line.sendall(sent)
        yield line


def ended(line: socket.socket) -> bool:
    """Return whether the driver closes the connection, within a minute."""
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


def test_a_line_before_the_token_is_not_read(board: DriverChannel) -> None:
    with dialled(board, b"x" * 33) as line:
        assert ended(line)
        with pytest.raises(OSError):  # noqa: PT011, PT012  # at the first write, or at the second
            for _ in range(100):
                line.sendall(b"x" * 1_000_000)


def test_a_token_has_a_deadline(board: DriverChannel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_channel, "GREETING", 0.2)
    with dialled(board, b"x") as line:
        assert ended(line)


def test_connections_without_the_token_are_limited_and_tasks_come_in_afterwards(
    board: DriverChannel,
) -> None:
    with ExitStack() as lines:
        strangers = [
            lines.enter_context(dialled(board)) for _ in range(control_channel.MOST_STRANGERS)
        ]
        with dialled(board) as beyond:
            assert ended(beyond)
        assert all(line.fileno() > 0 for line in strangers)
    task = eventually(lambda: _heard(board))
    assert task


def _heard(board: DriverChannel) -> bool:
    line = TaskChannel(board.address, 7)
    line.send({"task": 7})
    try:
        eventually(lambda: line.stopped or 7 in board.messages)
    finally:
        line.close()
    return 7 in board.messages


def test_a_question_is_answered_to_who_has_the_token() -> None:
    listener = QuestionListener("127.0.0.1", None, lambda asked: asked["n"] + 1)
    assert ask(listener.address, {"n": 1}) == 2
    stranger = DriverAddress(listener.address.host, listener.address.port, "0" * 32)
    with pytest.raises((OSError, ValueError)):
        ask(stranger, {"n": 1})
    listener.close()


def test_a_question_has_a_longest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_channel, "LONGEST_QUESTION", 1000)
    listener = QuestionListener("127.0.0.1", None, len)
    with pytest.raises((OSError, ValueError)):
        ask(listener.address, {"n": "x" * 2000})
    listener.close()

"""The line between a run and its tasks: progress one way, the wish to stop the other."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress, DriverChannel, TaskChannel
from live.real import eventually


@pytest.fixture
def board() -> Iterator[DriverChannel]:
    made = DriverChannel("127.0.0.1")
    yield made
    made.close()


def test_the_driver_hears_what_a_task_says_last(board: DriverChannel) -> None:
    line = TaskChannel(board.address)
    for records in (1, 2):
        line.send({"task": 3, "records": records, "transactions": 1})
    eventually(lambda: board.messages.get(3, {}).get("records") == 2)
    assert not line.stopped
    line.close()


def test_every_task_hears_the_wish_to_stop_now_and_later(board: DriverChannel) -> None:
    now = TaskChannel(board.address)
    now.send({"task": 0})
    eventually(lambda: 0 in board.messages)
    board.stop()
    later = TaskChannel(board.address)
    eventually(lambda: now.stopped and later.stopped)
    now.close()
    later.close()


def test_an_end_of_leases_is_heard_by_those_who_are_there_and_by_nobody_later(board: DriverChannel) -> None:
    now = TaskChannel(board.address)
    now.send({"task": 0})
    eventually(lambda: 0 in board.messages)
    board.end_leases()
    later = TaskChannel(board.address)
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
    line = TaskChannel(board.address)
    line.send({"task": 0})
    eventually(lambda: 0 in board.messages)
    board.close()
    eventually(lambda: line.stopped)
    line.send({"task": 0})  # and nothing happens
    line.close()


def test_a_task_that_cannot_connect_works_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    line = TaskChannel(DriverAddress("127.0.0.1", port, "word"))
    line.send({"task": 0})
    assert not line.stopped
    line.close()


def test_a_stranger_is_not_listened_to(board: DriverChannel) -> None:
    stranger = TaskChannel(DriverAddress(board.address.host, board.address.port, "guess"))
    stranger.send({"task": 0})
    eventually(lambda: stranger.stopped)
    assert board.messages == {}
    stranger.close()


def test_what_is_no_json_ends_the_line_and_nothing_else(board: DriverChannel) -> None:
    with socket.create_connection((board.address.host, board.address.port)) as raw:
        raw.sendall(f"{board.address.token}\nnonsense\n".encode())
        assert raw.recv(1) == b""
    line = TaskChannel(board.address)
    line.send({"task": 1})
    eventually(lambda: 1 in board.messages)
    line.close()


def test_the_word_is_in_no_log(board: DriverChannel) -> None:
    assert board.address.token not in repr(board.address)
    assert board.address.token not in str(board.address)

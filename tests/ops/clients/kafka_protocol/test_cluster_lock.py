from __future__ import annotations

import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol import cluster_lock, group_coordinator
from connectctl.ops.clients.kafka_protocol.cluster_lock import GroupLock
from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.core.errors import TimedOut, Unreachable

NONE, INCONSISTENT = 0, 23


class Coordinators:
    """A group with one member, which a killed run left behind. A LeaveGroup is answered after
    ``silent`` that were not.
    """

    def __init__(self, silent: int) -> None:
        self.silent = silent
        self.left: list[str] = []
        dead = LockHolder(
            "run-1", f"somebody@{socket.gethostname()}", "2026-01-01T00:00:00Z", os.getpid()
        )
        self.members = {"dead": dead.client_id}

    def answer(self, request: Any) -> Any:
        return getattr(self, type(request).__name__)(request)

    def FindCoordinatorRequest(self, request: Any) -> Any:
        return SimpleNamespace(error_code=NONE, node_id=1)

    def JoinGroupRequest(self, request: Any) -> Any:
        if "dead" in self.members:
            return SimpleNamespace(error_code=INCONSISTENT, member_id="", generation_id=-1)
        self.members["mine"] = "me"
        return SimpleNamespace(error_code=NONE, member_id="mine", generation_id=1)

    def DescribeGroupsRequest(self, request: Any) -> Any:
        members = [
            SimpleNamespace(
                member_id=m,
                client_id=c,
                client_host="/h",
                member_metadata=b"",
                group_instance_id=None,
                member_assignment=b"",
            )
            for m, c in self.members.items()
        ]
        group = SimpleNamespace(
            error_code=NONE,
            group_state="Stable",
            protocol_type="",
            protocol_data="",
            members=members,
        )
        return SimpleNamespace(groups=[group])

    def LeaveGroupRequest(self, request: Any) -> Any:
        if self.silent:
            self.silent -= 1
            raise Unreachable("no answer")
        self.left.append(request.member_id)
        self.members.pop(request.member_id, None)
        return SimpleNamespace(error_code=NONE)


@pytest.fixture
def lock_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    def made(coordinators: Coordinators, timeout: float) -> GroupLock:
        def client(*_: Any, **__: Any) -> Any:
            return SimpleNamespace(
                bootstrap="b:1",
                run=lambda what, call: call(),
                ask=lambda request, broker, patience: coordinators.answer(request),
                close=lambda: None,
            )

        monkeypatch.setattr(cluster_lock, "KafkaProtocolClient", client)
        monkeypatch.setattr(group_coordinator, "PAUSE", 0.0)
        return GroupLock({}, "workers", timeout=timeout)

    return made


def test_a_dead_owners_member_is_removed_however_late_the_coordinator_answers(lock_of: Any) -> None:
    coordinators = Coordinators(silent=3)
    with lock_of(coordinators, 60).held("run-1", lambda run: run == "run-1"):
        assert coordinators.members.keys() == {"mine"}
    assert coordinators.left == ["dead", "mine"]


def test_where_no_coordinator_answers_in_time_the_lock_of_a_dead_run_is_not_had(
    lock_of: Any,
) -> None:
    with (
        pytest.raises(TimedOut, match="No coordinator"),
        lock_of(Coordinators(10**9), 0.05).held("run-1", bool),
    ):
        raise AssertionError


def test_ones_own_member_is_given_up_after_one_unanswered_request(lock_of: Any) -> None:
    coordinators = Coordinators(silent=0)
    coordinators.members.clear()
    with lock_of(coordinators, 60).held("run-1"):
        coordinators.silent = 1
    assert coordinators.left == []

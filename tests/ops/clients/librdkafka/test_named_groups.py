"""A group asked for by name while its coordinator is not there yet: it is looked at again, not said
to be gone.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol import coordinator_loaded
from connectctl.ops.clients.kafka_protocol import group_coordinator as edge
from connectctl.ops.clients.kafka_protocol.group_coordinator import Again, Coordinator
from connectctl.ops.clients.librdkafka import connection as librdkafka
from connectctl.ops.clients.librdkafka import named_groups
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    NotTrusted,
    TimedOut,
    Unreachable,
)

LOADING, UNAVAILABLE, MOVED, DENIED, GONE, UNKNOWN = 14, 15, 16, 30, 69, -1
Answer = Any


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "PAUSE", 0.0)


class FakeWire:
    """Answers each request with the next of ``answers``, the last one for ever; an exception is
    raised.
    """

    bootstrap = "broker:9092"

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, int | None]]()

    def run(self, doing: str, work: Callable[[], Any]) -> Any:
        return work()

    def ask(self, request: Any, broker: int | None = None, patience: float | None = None) -> Any:
        self.asked.append((type(request).__name__, broker))
        if broker is None:
            return SimpleNamespace(error_code=0, node_id=len(self.asked))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def group(code: int = 0, state: str = "Stable", members: int = 1) -> Answer:
    raw = SimpleNamespace(
        member_id="m",
        client_id="c",
        client_host="/h",
        member_metadata=b"x",
        group_instance_id=None,
        member_assignment=None,
    )
    found = SimpleNamespace(
        error_code=code,
        group_state=state,
        protocol_type="connect",
        protocol_data="p",
        members=[raw] * members,
    )
    return SimpleNamespace(groups=[found])


def listing(*names: str) -> Answer:
    return SimpleNamespace(
        error_code=0,
        groups=[SimpleNamespace(group_id=name, group_type="Consumer") for name in names],
    )


def asked(*answers: Answer, timeout: float = 60) -> tuple[Coordinator, FakeWire]:
    wire: Any = FakeWire(*answers)
    return Coordinator(wire, "g", timeout), wire


def test_a_coordinator_that_moves_or_loads_is_looked_for_until_it_tells() -> None:
    lost = Unreachable("gone")
    coordinator, wire = asked(group(LOADING), group(UNAVAILABLE), lost, group(MOVED), group())
    found = coordinator.describe()
    assert found is not None
    assert [
        (m.id, m.client_id, m.client_host, m.metadata, m.assignment) for m in found.members
    ] == [("m", "c", "/h", b"x", b"")]
    assert [name for name, _ in wire.asked] == [
        "FindCoordinatorRequest",
        "DescribeGroupsRequest",
    ] * 5


@pytest.mark.parametrize("answer", [group(LOADING), group(MOVED), Unreachable("gone")], ids=str)
def test_a_coordinator_that_never_comes_is_a_time_out(answer: Answer) -> None:
    coordinator, _ = asked(answer, timeout=0)
    with pytest.raises(TimedOut, match="No coordinator of the group g answered"):
        coordinator.describe()


@pytest.mark.parametrize(
    "answer", [group(GONE), group(state="Dead", members=0)], ids=["not found", "dead"]
)
def test_a_group_that_its_coordinator_does_not_know_is_none(answer: Answer) -> None:
    coordinator, _ = asked(answer)
    assert coordinator.describe() is None


def test_what_may_not_be_described_is_said_with_the_right_that_is_missing() -> None:
    coordinator, _ = asked(group(DENIED))
    with pytest.raises(NotAuthorized, match="refuses to describe the group g"):
        coordinator.describe()


def test_an_error_that_nobody_expects_is_no_group_that_is_not_there() -> None:
    coordinator, _ = asked(group(UNKNOWN))
    with pytest.raises(ConnectctlError, match="cannot be described"):
        coordinator.describe()


def test_offsets_of_one_partition_that_are_not_told_are_no_offsets() -> None:
    def part(number: int, offset: int, code: int = 0) -> Answer:
        told = {"committed_leader_epoch": -1, "metadata": ""}
        return SimpleNamespace(
            partition_index=number, committed_offset=offset, error_code=code, **told
        )

    def answer(*parts: Answer) -> Answer:
        return SimpleNamespace(error_code=0, topics=[SimpleNamespace(name="t", partitions=parts)])

    coordinator, _ = asked(answer(part(0, 5, LOADING)), answer(part(0, 5), part(1, -1)))
    assert coordinator.committed() == {("t", 0): 5}
    coordinator, _ = asked(answer(part(0, 5), part(1, 7, UNKNOWN)))
    with pytest.raises(ConnectctlError, match="t-1"):
        coordinator.committed()


def test_a_group_whose_offsets_cannot_be_read_is_none_that_has_committed_nothing() -> None:
    coordinator, _ = asked(SimpleNamespace(error_code=UNKNOWN, topics=[]))
    with pytest.raises(ConnectctlError, match="The offsets of g cannot be read"):
        coordinator.committed()


def test_what_is_to_be_judged_by_the_caller_is_given_to_it() -> None:
    coordinator, _ = asked(group())
    assert coordinator.check(25) == 25
    with pytest.raises(Again):
        coordinator.check(MOVED)


# ---------------------------------------------------------------------------------- a group by name


class Looks:
    """What ``describe`` does: which groups were settled, and what the coordinator is taken to
    be.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *answers: Answer,
        members: int = 0,
        broken: Exception | None = None,
    ) -> None:
        self.settled: list[str] = []
        monkeypatch.setattr(
            coordinator_loaded, "settle", lambda kafka, name: self.settled.append(name)
        )
        coordinator, _ = asked(*answers)
        monkeypatch.setattr(
            coordinator_loaded, "coordinated", lambda kafka, name, ask: ask(coordinator)
        )
        raw = SimpleNamespace(id="m", client_id="c", client_host="/h", metadata=b"", assignment=b"")
        listed = SimpleNamespace(
            id="g",
            error=None,
            state="Stable",
            protocol_type="connect",
            protocol="p",
            members=[raw] * members,
        )
        self._listed, self._broken = [listed], broken

    def ask(self, doing: str, call: Any) -> Any:
        if self._broken is not None:
            raise self._broken
        return self._listed


def look(looks: Looks) -> Any:
    kafka: Any = looks
    return named_groups.describe(kafka, "g")


def test_a_group_with_members_is_believed_as_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch, members=1)
    assert len(look(looks).members) == 1
    assert not looks.settled


@pytest.mark.parametrize(
    "broken", [Unreachable("a broker has died"), TimedOut("a broker is frozen")], ids=str
)
def test_a_group_is_known_to_its_coordinator_where_another_broker_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, broken: Exception
) -> None:
    looks = Looks(monkeypatch, group(), members=1, broken=broken)
    assert [member.client_host for member in look(looks).members] == ["/h"]


@pytest.mark.parametrize("refused", [NotAuthorized, NotTrusted])
def test_a_refused_connection_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, refused: type[Unreachable]
) -> None:
    with pytest.raises(refused, match=r"^no$"):
        look(Looks(monkeypatch, group(), broken=refused("no")))


def test_that_there_is_no_member_is_believed_of_a_coordinator_that_knows_all_of_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = Looks(monkeypatch, group(members=0), group())
    assert len(look(looks).members) == 1
    assert looks.settled == ["g"]
    looks = Looks(monkeypatch, group(GONE), group(GONE), listing("another"))
    assert look(looks) is None
    assert looks.settled == ["g"]


def test_a_group_of_another_kind_is_not_said_to_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        BadInput,
        match=r"g is not a group of a classic protocol: it is a consumer group \(KIP-848\)",
    ):
        look(Looks(monkeypatch, group(GONE), group(GONE), listing("g")))


def test_an_error_that_is_told_without_words_is_told_by_its_name() -> None:
    error: Any = SimpleNamespace(
        str=lambda: "ConsumerGroupDescribe: ", name=lambda: "UNKNOWN_SERVER_ERROR"
    )
    assert librdkafka.text_of(error) == "ConsumerGroupDescribe: UNKNOWN_SERVER_ERROR"
    error.str = lambda: ""
    assert librdkafka.text_of(error) == "UNKNOWN_SERVER_ERROR"
    error.str = lambda: "It is so"
    assert librdkafka.text_of(error) == "It is so"

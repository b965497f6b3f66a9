"""The group protocol of Connect's workers, decoded from bytes as workers write them."""

import contextlib
import struct

import pytest
from connectctl.ops.clients.kafka_protocol.group_coordinator import RawMember
from connectctl.ops.clients.librdkafka.client import member_of
from connectctl.ops.connect.connect_protocol import (
    Assignment,
    ConnectGroup,
    Member,
    decode_assignment,
    decode_current,
    decode_metadata,
)
from hypothesis import given
from hypothesis import strategies as st


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def tasks(assigned: dict[str, list[int]]) -> bytes:
    parts = [
        text(name) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for name, numbers in assigned.items()
    ]
    return struct.pack(">i", len(assigned)) + b"".join(parts)


def assignment(
    version: int, assigned: dict[str, list[int]], *, delay: int = 0, error: int = 0
) -> bytes:
    head = (
        struct.pack(">hh", version, error)
        + text("leader-id")
        + text("http://127.0.0.1:1/")
        + struct.pack(">q", 7)
    )
    tail = b"" if version == 0 else tasks({"gone": [0]}) + struct.pack(">i", delay)
    return head + tasks(assigned) + tail


@pytest.mark.parametrize("version", [0, 1, 2])
def test_metadata_of_every_protocol_version_gives_url_and_config_offset(version: int) -> None:
    data = (
        struct.pack(">h", version)
        + text("http://127.0.0.1:38083/")
        + struct.pack(">q", 10)
        + b"\x00\x00\x00\x00"
    )
    assert decode_metadata(data) == ("http://127.0.0.1:38083/", 10)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_assignment_tells_connectors_from_tasks(version: int) -> None:
    decoded = decode_assignment(assignment(version, {"a": [-1, 0, 1], "b": [2]}, delay=300_000))
    assert decoded is not None
    assert decoded.connectors == ("a",)
    assert decoded.tasks == (("a", 0), ("a", 1), ("b", 2))
    assert decoded.leader_url == "http://127.0.0.1:1/"
    assert decoded.delay_ms == (0 if version == 0 else 300_000)


def test_a_config_mismatch_is_seen() -> None:
    decoded = decode_assignment(assignment(2, {}, error=1))
    assert decoded is not None
    assert decoded.config_mismatch


def test_a_member_without_assignment_has_none() -> None:
    assert decode_assignment(b"") is None


@given(st.binary(max_size=60))
def test_bytes_that_are_no_assignment_are_an_error_and_nothing_else(data: bytes) -> None:
    with contextlib.suppress(ValueError, UnicodeDecodeError):
        decode_assignment(data)


@given(st.integers(min_value=1, max_value=40))
def test_an_assignment_cut_short_is_an_error(cut: int) -> None:
    with pytest.raises(ValueError, match="more bytes are due"):
        decode_assignment(assignment(2, {"a": [0]})[:-cut])


def test_the_group_knows_its_leader_its_delay_and_who_runs_what() -> None:
    decoded = decode_assignment(assignment(2, {"a": [-1, 0]}, delay=5))
    member = Member("m", "c", "/127.0.0.1", "http://127.0.0.1:1", 7, decoded)
    group = ConnectGroup("g", "Stable", "sessioned", (member,))
    assert group.leader_url == "http://127.0.0.1:1"
    assert group.delay_ms == 5
    assert group.owners == {("a", -1): member, ("a", 0): member}


def current(version: int, assigned: bytes) -> bytes:
    return (
        struct.pack(">h", version)
        + text("http://w:1/")
        + struct.pack(">qi", 10, len(assigned))
        + assigned
    )


def test_a_worker_runs_what_it_ran_before_less_what_was_revoked_plus_what_was_added() -> None:
    before = decode_current(current(2, assignment(2, {"a": [-1, 0], "gone": [0, 1]})))
    newest = decode_assignment(assignment(2, {"b": [-1], "a": [0]}))
    assert newest is not None
    owned = newest.merged_with(before)
    assert owned.connectors == ("a", "b")
    assert owned.tasks == (("a", 0), ("gone", 1))


def test_a_worker_that_joins_for_the_first_time_or_eagerly_runs_only_what_it_was_given() -> None:
    assert decode_current(current(2, b"")) is None
    assert (
        decode_current(struct.pack(">h", 0) + text("http://w:1/") + struct.pack(">q", 10)) is None
    )
    newest = decode_assignment(assignment(2, {"b": [-1]}))
    assert newest is not None
    assert newest.merged_with(None) == newest


def _advertising(url: str, config_offset: int = 7) -> bytes:
    return (
        b"\x00\x02"
        + len(url).to_bytes(2)
        + url.encode()
        + config_offset.to_bytes(8)
        + (0).to_bytes(4)
    )


@pytest.mark.parametrize(
    ("group", "client", "metadata", "url", "without_rest"),
    [
        ("connect", "connect-a:8083", _advertising("http://a:8083/"), "http://a:8083", False),
        ("connect", "connect-a:8083", _advertising("HTTPS://a:8443/"), "HTTPS://a:8443", False),
        ("live-mm2", "live->dr", _advertising("NOTUSED"), "", True),
        ("live-mm2", "live->dr", _advertising("http://127.0.0.1:8083/"), "", True),
        (
            "connect",
            "live->dr",
            _advertising("http://127.0.0.1:8083/"),
            "http://127.0.0.1:8083",
            False,
        ),
        ("live-mm2", "live->dr", b"", "", False),
        ("connect", "connect-a:8083", b"\x00", "", False),
        ("connect", "connect-a:8083", _advertising(""), "", False),
    ],
)
def test_no_rest_api_is_told_from_one_that_is_not_known_yet(
    group: str, client: str, metadata: bytes, url: str, without_rest: bool
) -> None:
    raw = RawMember("id", client, "/10.0.0.1", metadata, b"")
    found = member_of(group, raw)
    assert (found.url, found.without_rest) == (url, without_rest)


@pytest.mark.parametrize(
    ("worker_id", "wrote"),
    [
        ("host/live->dr/1e0d", True),
        ("127.0.0.1:8083/live->dr", True),
        ("live->dr", True),
        ("host/west->dr/1e0d", False),
        ("a:8083", False),
    ],
)
def test_statuses_of_mirror_maker_name_its_client(worker_id: str, wrote: bool) -> None:
    assert (
        Member("id", "live->dr", "/10.0.0.1", "", 7, None, without_rest=True).wrote(worker_id)
        is wrote
    )


def test_statuses_of_a_worker_name_its_address() -> None:
    member = Member("id", "connect-1", "/10.0.0.1", "http://a:8083", 7, None)
    assert (member.name, member.wrote("a:8083"), member.wrote("b:8083")) == ("a:8083", True, False)
    hidden = Member("id", "connect-1", "/10.0.0.1", "", -1, None)
    assert (hidden.name, hidden.wrote("")) == ("connect-1", False)


def test_the_leader_of_a_group_without_rest_has_no_address() -> None:
    assignment = Assignment("id", "NOTUSED", 7, config_mismatch=False, connectors=(), tasks=())
    group = ConnectGroup(
        "g", "Stable", "sessioned", (Member("id", "c", "/h", "", 7, assignment, without_rest=True),)
    )
    assert (group.leader_url, group.without_rest, group.settled) == (None, True, True)

from __future__ import annotations

import struct
import uuid

import pytest
from connectctl.ops.kafka.consumer_group import (
    StreamsMember,
    assigned_partitions,
    release_of,
    streams_member,
)
from hypothesis import given
from hypothesis import strategies as st

SEEN = bytes.fromhex(
    "0003000000010007706970652d696e000000370000000b0000000b76ed91fd1d80402d87906b6e8a98253c0000000e3132372e302e302e313a"
    "37303032000000000300000000000000000000000000000002ffff"
)
"""What a thread of Kafka Streams 3.9 sent to a broker of 4.3."""


def subscription(user: bytes | None, topics: tuple[str, ...] = ("in",)) -> bytes:
    data = struct.pack(">hi", 1, len(topics))
    for topic in topics:
        data += struct.pack(">h", len(topic)) + topic.encode()
    return data + (struct.pack(">i", -1) if user is None else struct.pack(">i", len(user)) + user)


def info(version: int, newest: int, process: uuid.UUID, server: str, tasks: int = 0) -> bytes:
    head = struct.pack(">ii", version, newest) + process.bytes
    if version < 7:
        head += struct.pack(">i", tasks) + b"\0" * 8 * tasks + struct.pack(">i", 0)
    return head + struct.pack(">i", len(server)) + server.encode()


def test_a_real_subscription_tells_process_release_and_server() -> None:
    found = streams_member(SEEN)
    assert found == StreamsMember("76ed91fd-1d80-402d-8790-6b6e8a98253c", 11, "127.0.0.1:7002")


@given(
    st.integers(3, 11),
    st.integers(0, 3),
    st.uuids(),
    st.sampled_from(["", "app-1:7001"]),
    st.integers(0, 4),
)
def test_every_version_of_the_protocol_is_read(
    version: int, more: int, process: uuid.UUID, server: str, tasks: int
) -> None:
    found = streams_member(
        subscription(info(version, version + more, process, server, tasks), ("a", "b"))
    )
    assert found == StreamsMember(str(process), version + more, server or None)


@given(st.binary(max_size=80))
def test_what_others_send_is_no_streams_member_and_no_error(data: bytes) -> None:
    streams_member(data)
    streams_member(subscription(data))
    assigned_partitions(data)


def test_a_plain_consumer_is_no_streams_member() -> None:
    assert streams_member(subscription(None)) is None
    assert streams_member(b"") is None


@pytest.mark.parametrize(
    ("protocol", "release"),
    [
        (4, "2.3 or older"),
        (6, "2.5"),
        (10, "3.0 or 3.1"),
        (11, "3.2 or newer"),
        (12, "4.4 or newer"),
    ],
)
def test_a_protocol_stands_for_releases(protocol: int, release: str) -> None:
    assert release_of(protocol) == release


def test_partitions_of_an_assignment_are_named() -> None:
    data = struct.pack(">hi", 1, 2)
    data += struct.pack(">h", 1) + b"a" + struct.pack(">iii", 2, 0, 3)
    data += struct.pack(">h", 1) + b"b" + struct.pack(">ii", 1, 0)
    assert assigned_partitions(data + struct.pack(">i", -1)) == {("a", 0), ("a", 3), ("b", 0)}
    assert assigned_partitions(b"") == assigned_partitions(data[:-2]) == frozenset()

"""A Produce in parts is the request that kafka-python makes, and a connection sends it as it sends
any other.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from connectctl.ops.clients.kafka_protocol.batch_sender import FLEXIBLE, KEY, produce_parts
from connectctl.ops.clients.kafka_protocol.raw_connection import RawConnection
from connectctl.ops.clients.kafka_protocol.reauthentication import Login
from connectctl.ops.kafka.topic_partition import TopicPartition
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest

BATCHES: st.SearchStrategy[dict[TopicPartition, list[bytes | memoryview]]] = st.dictionaries(
    st.builds(TopicPartition, st.text("abcé", min_size=1, max_size=200), st.integers(0, 300)),
    st.lists(
        st.binary(max_size=300).flatmap(lambda some: st.sampled_from([some, memoryview(some)])),
        max_size=4,
    ),
    max_size=6,
)


def by_kafka_python(version: int, id_: str, batches: list[tuple[TopicPartition, Any]]) -> Any:
    topic, topics = ProduceRequest.TopicProduceData, dict[str, list[Any]]()
    for place, parts in batches:
        some = topics.setdefault(place.topic, [])
        some.append(topic.PartitionProduceData(index=place.partition, records=b"".join(parts)))
    data = [topic(name=name, partition_data=some) for name, some in topics.items()]
    return ProduceRequest[version](transactional_id=id_, acks=-1, timeout_ms=1234, topic_data=data)


@pytest.mark.parametrize("version", [8, 12])
@given(batches=BATCHES, id_=st.text("xyzß", max_size=200))
def test_its_parts_are_the_body_that_kafka_python_makes(
    version: int, batches: dict[TopicPartition, Any], id_: str
) -> None:
    some = sorted(batches.items(), key=lambda each: each[0])
    assert (
        b"".join(produce_parts(version, id_, 1234, some))
        == by_kafka_python(version, id_, some).encode()
    )


def connection(given: socket.socket) -> RawConnection:
    made = RawConnection.__new__(RawConnection)
    made._wire, made._socket = cast(Any, SimpleNamespace(client_id="connectctl")), given
    made._asked, made._session = 6, Login.of(0, 0.0)
    return made


@pytest.mark.parametrize("version", [8, 12])
@pytest.mark.parametrize("pieces", [1, 3, 2000])
def test_a_connection_sends_large_parts_and_many_of_them_as_one_request(
    version: int, pieces: int
) -> None:
    batches = [
        (
            TopicPartition("t", 3),
            [memoryview(bytes([n % 251]) * (2_000_000 // pieces)) for n in range(pieces)],
        )
    ]
    here, there = socket.socketpair()
    here.settimeout(30)
    got = bytearray()
    with here, there:

        def read() -> None:
            (size,) = struct.unpack(">i", there.recv(4, socket.MSG_WAITALL))
            while len(got) < size:
                got.extend(there.recv(70_000))

        reading = threading.Thread(target=read)
        reading.start()
        parts = produce_parts(version, "id", 1234, batches)
        assert connection(here).send_parts(KEY, version, parts, flexible=version >= FLEXIBLE) == 7
        reading.join(60)
    request = by_kafka_python(version, "id", batches)
    request.with_header(correlation_id=7, client_id="connectctl")
    assert bytes(got) == request.encode(header=True)


def test_behind_tls_the_parts_go_as_one_piece() -> None:
    sent: list[bytes] = []

    class Encrypted(ssl.SSLSocket):
        def __init__(self) -> None:
            pass

        def __del__(self) -> None:
            pass

        def sendall(self, data: Any, flags: int = 0) -> None:
            sent.append(bytes(data))

    connection(cast(Any, Encrypted.__new__(Encrypted))).send_parts(
        KEY, 12, [b"one", memoryview(b"two")], flexible=True
    )
    assert [each[-6:] for each in sent] == [b"onetwo"]

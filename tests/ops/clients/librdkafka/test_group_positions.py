"""What librdkafka says of a member of a group, read."""

from __future__ import annotations

import sys

import pytest
from connectctl.ops.clients.librdkafka.group_positions import membership
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.group_positions import GroupMembership


def given(generation: int, rest: bytes) -> bytes:
    return b"CGMDv2:" + generation.to_bytes(4, sys.byteorder, signed=True) + rest


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (given(7, b"g\0m-1\0\1"), GroupMembership("g", 7, "m-1")),
        (given(7, b"g\0m-1\0\0slot-0\0"), GroupMembership("g", 7, "m-1", "slot-0")),
        (given(-1, b"g\0\0\1"), GroupMembership("g", -1, "")),
        (given(1 << 24, b"g\0m\0\1"), GroupMembership("g", 1 << 24, "m")),  # whose bytes have zeros
    ],
)
def test_generation_member_and_instance_id_are_read(
    metadata: bytes, expected: GroupMembership
) -> None:
    assert membership(metadata) == expected


@pytest.mark.parametrize(
    "metadata", [b"", b"CGMDv3:" + bytes(20), given(7, b"g\0m\0"), given(7, b"g")]
)
def test_another_form_is_refused(metadata: bytes) -> None:
    with pytest.raises(ConnectctlError, match="unknown form"):
        membership(metadata)

"""What a task that reads keeps, and how a reading is shared out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.ops.clients.librdkafka.read import TopicReading
from connectctl.ops.connect.source_keys import SourceKey, connect_json, parse_key
from connectctl.ops.jobs.offsets import Source
from connectctl.ops.jobs.topic_layout import WantedKeys, split
from hypothesis import given
from hypothesis import strategies as st

TOPIC = Source(None, "t")


def wanted(*names: str, ends: dict[int, int] | None = None) -> WantedKeys:
    return WantedKeys(TOPIC, {}, 1.0, ends or {}, frozenset(names) or None)


names = st.one_of(st.sampled_from(["c", "cc", "é", '"', "\\", "c\n", ""]), st.text(max_size=3))
spelled = st.one_of(
    st.builds(lambda name: connect_json([name, {"t": 1}]).encode("utf-8", "surrogatepass"), names),
    st.builds(
        lambda name: (
            b'["' + "".join(f"\\u{ord(c) & 0xFFFF:04x}" for c in name).encode() + b'",null]'
        ),
        names,
    ),
    st.binary(max_size=8),
    st.none(),
)


@dataclass
class Message:
    raw: bytes | None

    def key(self) -> bytes | None:
        return self.raw

    def value(self) -> bytes:
        return b"{}"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 0

    def timestamp(self) -> tuple[int, int]:
        return 1, 5


def chosen(raws: Sequence[bytes | None], wanted: Collection[str] | None) -> list[bytes | None]:
    # it asks nobody
    nobody: Any = None
    includes = {} if wanted is None else {"t": wanted.__contains__}
    reading = TopicReading(nobody, {"t": {}}, includes=includes)
    keys, messages = reading._chosen("t", list(map(Message, raws)))
    assert list(keys) == [message.raw for message in messages]
    return list(keys)


@given(st.lists(spelled, max_size=5), st.sets(names, min_size=1, max_size=3))
def test_all_keys_of_a_wanted_connector_are_kept_and_none_of_another(
    raws: list[bytes | None], wanted: set[str]
) -> None:
    taken = chosen(raws, wanted)
    for raw in raws:
        key = parse_key(raw)
        if isinstance(key, SourceKey) and key.connector:
            assert (raw in taken) is (key.connector in wanted)


def test_keys_that_are_nobodys_are_kept() -> None:
    assert chosen([b'["d",{}]', b"x", None, b'["c",{}]'], {"c"}) == [b"x", None, b'["c",{}]']


def test_all_keys_are_wanted_where_no_connector_is_named() -> None:
    assert len(chosen([b'["d",{}]', b"x", None], None)) == 3


@given(st.dictionaries(st.integers(0, 30), st.integers(0, 1000)), st.integers(1, 8))
def test_every_partition_that_holds_anything_is_read_once(ends: dict[int, int], tasks: int) -> None:
    shares = split([wanted("c", ends=ends)], tasks)
    assert len(shares) <= tasks
    read = [
        (partition, end)
        for share in shares
        for part in share
        for partition, end in part.ends.items()
    ]
    assert sorted(read) == sorted((p, end) for p, end in ends.items() if end)
    loads = [sum(end for part in share for end in part.ends.values()) for share in shares]
    assert max(loads, default=0) - min(loads, default=0) <= max(ends.values(), default=0)

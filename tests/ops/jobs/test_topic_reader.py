"""What a task that reads keeps, and how a reading is shared out."""

from __future__ import annotations

from connectctl.ops.connect.source_keys import SourceKey, connect_json, parse_key
from connectctl.ops.jobs.offsets import Source
from connectctl.ops.jobs.topic_reader import Chooser, WantedKeys, split
from hypothesis import given
from hypothesis import strategies as st

TOPIC = Source(None, "t")


def wanted(*names: str, strangers: bool = False, ends: dict[int, int] | None = None) -> WantedKeys:
    return WantedKeys(TOPIC, {}, 1.0, ends or {}, frozenset(names) or None, strangers)


names = st.one_of(st.sampled_from(["c", "cc", "é", '"', "\\", "c\n", ""]), st.text(max_size=3))
spelled = st.one_of(
    st.builds(lambda name: connect_json([name, {"t": 1}]).encode("utf-8", "surrogatepass"), names),
    st.builds(lambda name: b'["' + "".join(f"\\u{ord(c) & 0xFFFF:04x}" for c in name).encode() + b'",null]', names),
    st.binary(max_size=8),
    st.none(),
)


@given(spelled, st.sets(names, min_size=1, max_size=3))
def test_a_key_is_kept_if_and_only_if_it_is_of_a_wanted_connector(raw: bytes | None, chosen: set[str]) -> None:
    sound = {name for name in chosen if name.isascii() or name.encode("utf-8", "ignore").decode() == name}
    key = parse_key(raw)
    expected = isinstance(key, SourceKey) and key.connector in sound
    assert Chooser([wanted(*sound or {"x"})])("t", raw) is expected


def test_of_keys_that_are_nobodys_one_is_kept_where_it_matters() -> None:
    chooser = Chooser([wanted("c", strangers=True)])
    assert [chooser("t", raw) for raw in (b'["d",{}]', b"x", None, b"y", b'["c",{}]')] == [
        False,
        True,
        False,
        False,
        True,
    ]


def test_all_connectors_are_wanted_where_none_is_named() -> None:
    assert [Chooser([wanted()])("t", raw) for raw in (b'["d",{}]', b"x", None)] == [True, False, False]


@given(st.dictionaries(st.integers(0, 30), st.integers(0, 1000)), st.integers(1, 8))
def test_every_partition_that_holds_anything_is_read_once(ends: dict[int, int], tasks: int) -> None:
    shares = split([wanted("c", ends=ends)], tasks)
    assert len(shares) <= tasks
    read = [(partition, end) for share in shares for part in share for partition, end in part.ends.items()]
    assert sorted(read) == sorted((p, end) for p, end in ends.items() if end)
    loads = [sum(end for part in share for end in part.ends.values()) for share in shares]
    assert max(loads, default=0) - min(loads, default=0) <= max(ends.values(), default=0)

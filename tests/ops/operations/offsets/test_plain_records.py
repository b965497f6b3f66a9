"""What is told of many records together is what is told of each."""

from __future__ import annotations

from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.kafka.records import ConsumerRecord, Row
from connectctl.ops.kafka.spill import in_order
from connectctl.ops.operations.offsets.plain_records import KeyOwners, Plain, Shapes
from fakes.offsettopics import KEYS, PARTITIONS, UNREADABLE, VALUES, histories, raw, topic
from hypothesis import given
from hypothesis import strategies as st

PLAIN = [["c", {"table": name}] for name in "abcdefgh"]
RAWS = [raw(key) or b"" for key in [*KEYS, *PLAIN * 3]] + [b'["c",{"table":"a\nb"}]', b'["c",{"table":"x"}]\n']
OBJECTS = [raw(value) for value in [*VALUES, *UNREADABLE, {"lsn": 3}, {"lsn": 4}, {"lsn": 5}]] + [
    b'{"lsn":1}\n{"lsn":2}'
]


@given(st.lists(st.sampled_from(OBJECTS), max_size=5), st.lists(st.sampled_from(OBJECTS), max_size=5))
def test_all_are_plain_objects_where_each_is(before: list[bytes | None], raws: list[bytes | None]) -> None:
    shapes, alone = Shapes(), Shapes()
    for some in (before, raws):
        assert shapes.have_all(some) == all(each is not None and alone.have(each) for each in some)


@given(st.lists(st.sampled_from(RAWS), max_size=5), st.lists(st.sampled_from(RAWS), max_size=5))
def test_all_keys_are_a_connectors_where_each_is(before: list[bytes], raws: list[bytes]) -> None:
    owners = KeyOwners()
    for some in (before, raws):
        assert owners.is_of_all(some, "c") == all(KeyOwners().of(key) == "c" for key in some)


@given(
    histories([{"lsn": 1}, {"lsn": 2}, {"lsn": 3}], PLAIN) | histories([*VALUES, *UNREADABLE]),
    st.integers(1, 5),
    st.booleans(),
)
def test_rows_are_plain_together_where_they_are_one_by_one(
    history: list[ConsumerRecord], size: int, alone: bool
) -> None:
    rows: list[Row] = list(in_order(topic("t", "global", *history).image.latest, owners_of))
    together, singly = (Plain(PARTITIONS, lambda name: alone) for _ in range(2))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        repeated = {row[1] for row in some if sum(row[1] == other[1] for other in some) > 1}
        each = [singly.tell([row])[0] and row[1] not in repeated for row in some]
        assert together.tell(some) == each

"""Records on disk: whatever is added comes out by key, the newest of each partition, as often as it is asked for."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.source_keys import owner_of, owners_of
from connectctl.ops.kafka import spill
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.spill import Spilled
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.none() | st.sampled_from([b"", b'["a",{}]', b'["b",{}]', b'["a",{"t":1}]', b"\xff"])
ADDED = st.lists(
    st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=3), st.integers(0, 2), st.none() | st.integers(0, 9)))
)


@given(ADDED, st.integers(1, 4))
def test_the_newest_record_of_each_key_and_partition_comes_out_in_the_order_of_keys(
    added: list[list[tuple[bytes | None, bytes | None, int, int | None]]], chunk: int
) -> None:
    newest: dict[tuple[bytes | None, int], ConsumerRecord] = {}
    spilled, offset = Spilled(owners_of), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "CHUNK", chunk)
        for some in added:
            run = []
            for key, value, partition, timestamp in some:
                run.append(ConsumerRecord(key, value, partition, offset, timestamp))
                newest[key, partition] = run[-1]
                offset += 1
            spilled.add(run)
        found = list(spilled)
        assert sorted(found, key=lambda r: r.offset) == sorted(newest.values(), key=lambda r: r.offset)
        order = [(owner_of(record.key), record.key or b"", record.key is None) for record in found]
        assert order == sorted(order)
        assert list(spilled) == found
        assert (len(spilled), spilled.added) == (len(found), offset)

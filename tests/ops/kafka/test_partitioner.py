"""Keys land where Java's producer puts them."""

import pyarrow as pa
import pytest
from connectctl.ops.kafka.partitioner import (
    MANY,
    java_partition,
    java_partitions,
    murmur2,
    partitions_of,
)
from hypothesis import given
from hypothesis import strategies as st

# Kafka's own UtilsTest.testMurmur2 states these, as signed numbers.
VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), VECTORS.items())
def test_murmur2_gives_what_kafkas_own_test_states(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % (1 << 32)


def test_a_partition_is_within_the_topic_even_for_negative_hashes() -> None:
    assert [java_partition(key, 25) for key in VECTORS] == [
        (h & 0x7FFFFFFF) % 25 for h in VECTORS.values()
    ]


@given(st.lists(st.binary(max_size=40)), st.integers(1, 60), st.integers(0, 5))
def test_many_keys_at_once_land_where_each_alone_does(
    keys: list[bytes], partitions: int, start: int
) -> None:
    column = pa.array(keys, pa.binary()).slice(start)
    assert java_partitions(column, partitions).tolist() == [
        java_partition(key, partitions) for key in keys[start:]
    ]


@given(st.lists(st.binary(max_size=11), max_size=30), st.integers(1, 60), st.integers(1, MANY))
def test_many_keys_are_hashed_without_numpy_too(
    keys: list[bytes], partitions: int, times: int
) -> None:
    many = keys * times
    assert partitions_of(many, partitions) == [java_partition(key, partitions) for key in many]

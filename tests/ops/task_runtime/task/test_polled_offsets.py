"""Which offset of a batch is committed for which source partition, however its task spells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.task_runtime.attempt.shared_clients import StoreSnapshot
from connectctl.ops.task_runtime.spi.boundaries import Boundaries
from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceRecord, SourceTask
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import TransactionBatch
from connectctl.ops.task_runtime.task import polled_source
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.task_offsets import TaskOffsets
from connectctl.ops.task_runtime.testing.source import run_source
from hypothesis import given
from hypothesis import strategies as st

TopicPartition = tuple[Any, Any]


class Script(SourceTask):
    """Polls its one batch."""

    batch: Sequence[SourceRecord] = ()

    def start(self, configs: Any) -> None:
        self.left = [self.batch]

    def poll(self) -> Sequence[SourceRecord] | None:
        return self.left.pop() if self.left else None


def polled(
    batch: Sequence[SourceRecord], stored: dict[bytes, bytes] | None = None, **task: Any
) -> tuple[PolledSource, TransactionBatch]:
    kind = type("Task", (Script,), {"batch": batch} | task)
    polling = PolledSource(
        kind, "c", {}, lambda: Boundaries(Boundary.POLL), converters({}), "offsets"
    )
    polling.resume(StoreSnapshot(stored or {}))
    step = polling.next()
    assert isinstance(step, TransactionBatch)
    return polling, step


def records(places: Sequence[TopicPartition], copies: bool) -> list[SourceRecord]:
    """A record for each place; partitions are objects of their own, or one for all that are
    equal.
    """
    known: dict[str, dict[str, Any]] = {}
    return [
        SourceRecord(
            {"p": p} if copies else known.setdefault(repr(p), {"p": p}),
            None if n is None else {"n": n},
            "t",
            "v",
        )
        for p, n in places
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", 1, True, 1.0, "1"]), st.none() | st.integers(0, 99)),
        min_size=1,
    ),
    st.booleans(),
)
def test_the_last_offset_of_each_partition_counts(
    places: list[TopicPartition], copies: bool
) -> None:
    expected = {json_of(p): b'{"n":%d}' % n for p, n in places if n is not None}
    assert polled(records(places, copies))[1].offsets == {
        b'["c",{"p":%s}]' % p: n for p, n in expected.items()
    }


def test_what_is_not_committed_is_not_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def format_problems(what: str, value: Any) -> list[str]:
        asked.append(value)
        return []

    monkeypatch.setattr(polled_source, "format_problems", format_problems)
    places = [(number % 2, number) for number in range(1000)]
    polled(records(places, copies=True))
    assert asked == [{"p": 0}, {"n": 998}, {"p": 1}, {"n": 999}]


def json_of(value: Any) -> bytes:
    return {str: b'"%s"' % str(value).encode(), bool: b"true", float: b"1.0", int: b"1"}[
        type(value)
    ]


def test_a_partition_is_written_as_it_is_stored_time_and_again() -> None:
    stored = {b'["c", {"p": "a", "q": 1}]': b'{"n":4}'}
    offsets = TaskOffsets("c", StoreSnapshot(stored))
    for partition in ({"p": "a", "q": 1}, {"q": 1, "p": "a"}) * 2:
        assert (offsets.key(partition), offsets.offset(partition)) == (next(iter(stored)), {"n": 4})
    assert offsets.key({"p": "a", "q": True}) == b'["c",{"p":"a","q":true}]'


@pytest.mark.parametrize("heeds", [False, True])
def test_a_task_hears_of_each_record_where_it_wants_to_and_of_the_commit_in_any_case(
    heeds: bool,
) -> None:
    heard: list[Any] = []

    def commit_record(self: Any, record: SourceRecord) -> None:
        heard.append(record.source_offset)

    own: dict[str, Any] = {"commit": lambda self: heard.append("all")}
    own |= {"commit_record": commit_record} if heeds else {}
    polling, step = polled(records([("a", 1), ("a", 2)], False), **own)
    polling.committed(step)
    assert heard == ([{"n": 1}, {"n": 2}] if heeds else []) + ["all"]


@pytest.mark.parametrize(
    ("partition", "offset", "why"),
    [
        ({"p": "a"}, {"n": 2**70}, "source_offset: n does not fit 64 bits"),
        (
            {"p": {"q": 1}},
            {"n": 1},
            "source_partition may hold primitive values only, and p is not one: it is an object",
        ),
        (
            {"p": [1]},
            None,
            "source_partition may hold primitive values only, and p is not one: it is an array",
        ),
        ({"p": "a"}, "1", "source_offset is not a JSON object"),
    ],
)
def test_an_update_that_connect_would_not_write_fails_the_task_and_names_the_method(
    partition: Any, offset: Any, why: str
) -> None:
    with pytest.raises(ConnectctlError) as error:
        polled(records([("a", 1)], False), update_offsets=lambda self, about: [(partition, offset)])
    assert str(error.value).startswith(
        "Task.update_offsets of c returned an invalid source offset: "
    )
    assert f"{offset!r} for {partition!r}: {why}" in str(error.value)


def test_bytes_are_stored_as_base64_and_found_again() -> None:
    place, stored = {"p": b"\x00\xff"}, {b'["c",{"p":"AP8="}]': b'{"n":"AQ=="}'}
    assert polled([SourceRecord(place, {"n": b"\x01"}, "t", "v")])[1].offsets == stored
    assert TaskOffsets("c", StoreSnapshot(stored)).offset(place) == {"n": "AQ=="}


def test_connectctl_testing_takes_no_offset_that_connect_does_not_store() -> None:
    class Nothing(SourceConnector):
        task = Script

        def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
            return [{}]

    with pytest.raises(BadInput, match="n does not fit 64 bits"):
        run_source(Nothing, {}, offsets=[({"p": "a"}, {"n": 2**70})])

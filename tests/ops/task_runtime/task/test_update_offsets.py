"""KIP-910, one test for each of its rules: with exactly-once, where its place is the transaction,
and without.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.boundaries import End
from connectctl.ops.task_runtime.spi.connector import SourceTask
from connectctl.ops.task_runtime.spi.delivery_settings import delivery_settings
from connectctl.ops.task_runtime.task.at_least_once import boundaries_of
from fakes.polledsource import ALL, KEY, PARTITION, Broker, offset, run

OTHER = b'["c",{"file":"b"}]'
MODES = [pytest.param(Boundary.POLL, id="exactly once"), pytest.param(None, id="at least once")]


def two_beats() -> Any:
    """A source that has nothing, twice, and is at its end then."""
    return beats(2)


def beats(count: int) -> Any:
    """A source that has nothing ``count`` times, and is at its end with the last of them."""
    left = iter(range(count - 1))

    def poll(self: Any) -> Any:
        self.next = 10 if next(left, None) is None else 0
        return []

    return poll


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Any:
    return request.param


class TestWhatItReturns:
    def test_a_partition_that_is_missing_is_added(self, mode: Any) -> None:
        broker = Broker()
        run(broker, mode, update=lambda offsets: [*offsets, ({"file": "b"}, {"n": 70})])
        assert broker.offsets == {KEY: b'{"n":9}', OTHER: b'{"n":70}'}

    def test_an_offset_of_none_is_a_tombstone(self, mode: Any) -> None:
        broker = Broker()
        broker.offsets[OTHER] = b'{"n":1}'
        run(broker, mode, update=lambda offsets: [({"file": "b"}, None)])
        assert broker.offsets == {KEY: b'{"n":9}', OTHER: None}

    def test_a_tombstone_for_a_partition_that_is_about_to_be_committed_wins(
        self, mode: Any
    ) -> None:
        broker = Broker()
        run(broker, mode, update=lambda offsets: [(PARTITION, None)])
        assert broker.offsets == {KEY: None}

    def test_a_partition_that_is_dropped_is_committed_all_the_same(self, mode: Any) -> None:
        broker = Broker()
        run(broker, mode, update=lambda offsets: [({"file": "b"}, {"n": 1})])
        assert broker.offsets[KEY] == b'{"n":9}'

    def test_a_mapping_is_as_good_as_pairs_and_none_is_a_tombstone(self, mode: Any) -> None:
        other = {"file": "b", "part": 1}
        ways: list[Any] = [
            [(PARTITION, None), (other, {"n": 1})],
            {tuple(PARTITION.items()): None, tuple(other.items()): {"n": 1}},
            {frozenset(PARTITION.items()): None, tuple(other.items()): {"n": 1}},
        ]
        found = []
        for given in ways:
            broker = Broker()
            run(broker, mode, last=2, update=lambda offsets, given=given: given)
            found.append(broker.offsets)
        assert found == [{KEY: None, b'["c",{"file":"b","part":1}]': b'{"n":1}'}] * 3

    @pytest.mark.parametrize("nothing", [None, [], (), {}])
    def test_an_empty_return_changes_nothing(self, mode: Any, nothing: Any) -> None:
        broker = Broker()
        run(broker, mode, update=lambda offsets: nothing)
        assert broker.offsets == {KEY: b'{"n":9}'}

    @pytest.mark.parametrize(
        ("returned", "words"),
        [
            ({"file": "b"}, "returned {'file': 'b'}, which is neither a mapping nor pairs"),
            ([{"file": "b"}], "which is neither a mapping nor pairs"),
            (7, "returned 7, which is neither a mapping nor pairs"),
            (
                [({"file": "b"}, 7)],
                "an invalid source offset: 7 for {'file': 'b'}: source_offset is not a JSON object",
            ),
            ([({"file": []}, None)], "an invalid source offset: None for {'file': []}"),
        ],
    )
    def test_a_wrong_return_names_the_task_the_method_and_the_partition(
        self, mode: Any, returned: Any, words: str
    ) -> None:
        with pytest.raises(ConnectctlError, match=re.escape(words)) as told:
            run(Broker(), mode, update=lambda offsets: returned)
        assert "Scripted.update_offsets of c returned" in str(told.value)

    def test_none_changes_nothing(self, mode: Any) -> None:
        broker = Broker()
        run(broker, mode, update=lambda offsets: None)
        assert broker.offsets == {KEY: b'{"n":9}'}

    def test_nothing_at_all_changes_nothing(self, mode: Any) -> None:
        broker = Broker()
        run(broker, mode, update=lambda offsets: [])
        assert broker.offsets == {KEY: b'{"n":9}'}

    def test_a_task_that_does_not_know_of_it_is_not_changed_by_it(self, mode: Any) -> None:
        broker = Broker()
        run(broker, mode, update_offsets=SourceTask.update_offsets)
        assert broker.offsets == {KEY: b'{"n":9}'}

    def test_its_own_offset_for_a_partition_wins(self, mode: Any) -> None:
        broker = Broker()
        run(broker, mode, last=2, update=lambda offsets: [(PARTITION, {"n": 50})])
        assert offset(broker) == 50

    def test_what_it_is_given_cannot_be_changed_by_hand(self, mode: Any) -> None:
        def update(offsets: Any) -> None:
            offsets[0][0]["file"], offsets[0][1]["n"] = "z", 1000

        broker = Broker()
        run(broker, mode, update=update)
        assert broker.offsets == {KEY: b'{"n":9}'}

    def test_what_it_raises_fails_the_task_before_anything_of_this_flush_is_committed(self) -> None:
        def update(offsets: Any) -> Any:
            raise ZeroDivisionError

        broker = Broker()
        with pytest.raises(ZeroDivisionError):
            run(broker, update=update)
        assert (broker.records, broker.offsets) == ([], {})


class TestItsPlaceWithExactlyOnce:
    def test_it_sees_the_latest_offset_of_each_partition_that_this_transaction_commits_and_no_other(
        self,
    ) -> None:
        seen: list[Any] = []

        def update(offsets: Any) -> None:
            seen.append([(partition["file"], offset["n"]) for partition, offset in offsets])

        run(Broker(), update=update)
        assert seen == [[("a", 2)], [("a", 5)], [("a", 8)], [("a", 9)]]

    def test_it_is_asked_just_before_the_offsets_are_written_which_is_before_the_commit(
        self,
    ) -> None:
        broker = Broker()
        run(broker, last=2)
        assert [t for t in broker.trace if t in ("update", "offsets", "commit")] == [
            "update",
            "offsets",
            "commit",
        ]

    def test_with_the_boundary_interval_it_is_asked_once_for_each_transaction(self) -> None:
        broker = Broker()
        ended = run(broker, Boundary.INTERVAL, last=23)
        assert broker.trace.count("update") == broker.commits == ended.stats.transactions

    def test_a_task_without_records_can_still_move_its_offset(self) -> None:
        broker = Broker()
        run(broker, poll=two_beats(), update=lambda offsets: [(PARTITION, {"n": 77})])
        assert (broker.records, offset(broker)) == ([], 77)

    def test_without_records_and_without_offsets_there_is_no_transaction(self) -> None:
        broker = Broker()
        run(broker, poll=two_beats())
        assert "begin" not in broker.trace

    def test_what_it_returns_for_an_aborted_transaction_is_committed_with_its_offsets(self) -> None:
        broker = Broker()
        update = lambda offsets: [({"file": "b"}, {"n": 1})]  # noqa: E731  # as in the other tests
        run(broker, Boundary.CONNECTOR, last=2, asks={2: End.ABORT}, update=update)
        assert (broker.records, broker.offsets) == ([], {KEY: b'{"n":2}', OTHER: b'{"n":1}'})

    def test_between_the_transactions_of_a_connector_it_is_not_asked(self) -> None:
        broker = Broker()
        run(broker, Boundary.CONNECTOR, asks_batch={5: End.COMMIT})
        assert broker.trace.count("update") == 1

    def test_a_connector_without_records_is_asked_once_it_asks_for_a_commit(self) -> None:
        beats = iter(range(3))

        def poll(self: Any) -> Any:
            beat = next(beats)
            self.next = 10 if beat == 2 else 0
            if beat == 1:
                self.context.transaction.commit_transaction()
            return []

        broker = Broker()
        run(broker, Boundary.CONNECTOR, poll=poll, update=lambda offsets: [(PARTITION, {"n": 5})])
        assert (broker.trace.count("update"), offset(broker)) == (1, 5)


class TestWithoutRecords:
    """The clock goes on by 20 s with each poll; a task that has nothing is asked each minute, at
    most.
    """

    def test_the_same_again_is_one_transaction(self) -> None:
        broker = Broker()
        ended = run(broker, poll=beats(30), update=lambda offsets: [(PARTITION, {"n": 77})])
        assert (ended.stats.transactions, broker.trace.count("begin"), offset(broker)) == (1, 1, 77)

    def test_what_is_stored_already_is_no_transaction(self, mode: Any) -> None:
        broker = Broker()
        broker.offsets = {KEY: b'{"n":7}', OTHER: None}
        run(
            broker,
            mode,
            poll=beats(30),
            update=lambda offsets: [(PARTITION, {"n": 7}), ({"file": "b"}, None)],
        )
        assert not {"begin", "offsets"} & set(broker.trace)

    def test_it_is_asked_at_once_and_then_each_minute_and_not_at_each_poll(self) -> None:
        broker = Broker()
        run(broker, poll=beats(10))
        assert broker.trace.count("update") == 4

    def test_with_the_boundary_interval_it_is_asked_no_more_often(self) -> None:
        broker = Broker()
        run(broker, Boundary.INTERVAL, interval=20.0, poll=beats(10))
        assert broker.trace.count("update") == 4

    def test_a_jobs_own_interval_of_flushes_decides(self) -> None:
        made = boundaries_of(delivery_settings({"offset.flush.interval.ms": "0"}))
        assert [segment.asks for _ in range(3) for segment in made.cut([])] == [True] * 3
        made = boundaries_of(delivery_settings({"offset.flush.interval.ms": "600000"}))
        assert [segment.asks for _ in range(3) for segment in made.cut([])] == [True, False, False]

    def test_an_interval_as_long_as_that_of_flushes_is_not_doubled(self) -> None:
        broker = Broker()
        run(broker, Boundary.INTERVAL, poll=beats(12))
        assert broker.trace.count("update") == 4

    def test_offsets_that_move_are_written_as_often_as_it_is_asked(self) -> None:
        broker, steps = Broker(), iter(range(100))
        run(broker, poll=beats(10), update=lambda offsets: [(PARTITION, {"n": next(steps)})])
        assert (broker.commits, offset(broker)) == (4, 3)

    def test_only_what_differs_is_written(self, mode: Any) -> None:
        broker, steps = Broker(), iter(range(100))
        broker.offsets[KEY] = b'{"n":7}'
        written: list[Any] = []
        broker.wrote = lambda *keys: written.append(set(keys))  # type: ignore[method-assign]
        run(
            broker,
            mode,
            poll=beats(4),
            update=lambda o: [(PARTITION, {"n": 7}), ({"file": "b"}, {"n": next(steps)})],
        )
        assert {key for keys in written for key in keys} == {OTHER}

    def test_what_it_was_not_asked_for_since_is_written_when_it_is_stopped(self) -> None:
        broker, polls = Broker(), iter(range(100))
        run(broker, poll=beats(3), update=lambda offsets: [(PARTITION, {"n": next(polls)})])
        assert (broker.trace.count("update"), offset(broker)) == (2, 1)

    def test_records_do_not_make_more_of_the_same_to_be_written(self) -> None:
        broker = Broker()
        broker.offsets[OTHER] = b'{"n":70}'
        written: list[Any] = []
        broker.wrote = lambda *keys: written.append(keys)  # type: ignore[method-assign]
        run(broker, update=lambda offsets: [({"file": "b"}, {"n": 70})])
        assert written == [(KEY,)] * 4

    def test_the_offset_of_a_record_can_be_held_at_what_is_committed(self, mode: Any) -> None:
        broker = Broker()
        broker.offsets[KEY] = b'{"n":4}'
        run(broker, mode, update=lambda offsets: [(PARTITION, {"n": 4})])
        assert (broker.records, offset(broker)) == (ALL[5:], 4)

    def test_what_was_in_doubt_is_asked_and_written_again(self) -> None:
        broker = Broker()
        broker.doubt_at = 1
        run(broker, poll=beats(5), update=lambda offsets: [(PARTITION, {"n": 77})])
        assert (broker.commits, offset(broker)) == (2, 77)


class TestItsPlaceWithoutExactlyOnce:
    """The clock of these runs goes on by 20 s with each poll, and offsets are flushed each
    minute.
    """

    def test_it_is_asked_at_each_flush_and_not_between(self) -> None:
        broker = Broker()
        run(broker, None, last=23)  # eight batches
        assert broker.trace.count("records") == 8
        assert broker.trace.count("update") == broker.trace.count("offsets") == 3

    def test_it_is_asked_once_all_records_of_the_last_poll_are_acknowledged(self) -> None:
        broker = Broker()
        run(broker, None, last=23)
        told = [t for t in broker.trace if t in ("records", "update", "offsets")]
        assert told[:5] == ["records", "records", "records", "update", "offsets"]

    def test_it_is_not_asked_for_records_that_are_not_acknowledged_and_they_come_again(
        self,
    ) -> None:
        broker = Broker()
        broker.doubt_at_send = 3  # the third batch, behind which the first flush is due
        run(broker, None)
        failed = broker.trace.index("not acknowledged")
        assert "update" not in broker.trace[:failed]
        assert broker.records == [*range(6), *ALL]
        assert offset(broker) == 9

    def test_it_sees_all_partitions_that_were_acknowledged_since_the_last_flush(self) -> None:
        seen: list[Any] = []

        def update(offsets: Any) -> None:
            seen.append([offset["n"] for _, offset in offsets])

        run(Broker(), None, last=23, update=update)
        assert seen == [[8], [17], [23]]

    def test_what_it_returns_needs_no_record_to_be_committed(self) -> None:
        beats = iter(range(6))

        def poll(self: Any) -> Any:
            self.next = 0 if next(beats, None) is not None else 10
            return []

        broker = Broker()
        run(broker, None, poll=poll, update=lambda offsets: [(PARTITION, {"n": 77})])
        assert (broker.records, offset(broker)) == ([], 77)

    def test_it_is_asked_a_last_time_when_the_task_is_stopped(self) -> None:
        broker = Broker()
        run(broker, None, last=2, update=lambda offsets: [*offsets, ({"file": "b"}, {"n": 1})])
        assert broker.offsets == {KEY: b'{"n":2}', OTHER: b'{"n":1}'}
        assert broker.records == ALL[:3]

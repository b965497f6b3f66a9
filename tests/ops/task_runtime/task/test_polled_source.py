"""A polled task under the kernel: KIP-618's boundaries and order of calls, and Connect's own
corners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.boundaries import End, Requests
from connectctl.ops.task_runtime.spi.connector import RetriableError, SourceRecord, SourceRecords
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason, TransactionBatch
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from fakes.polledsource import ALL, KEY, PARTITION, Broker, Task, boundaries, offset, run, values


class TestBoundaries:
    def test_poll_commits_behind_every_batch(self) -> None:
        broker = Broker()
        assert run(broker).stats.transactions == 4
        assert (broker.records, offset(broker)) == (ALL, 9)

    def test_interval_commits_when_it_is_due_and_never_in_the_middle_of_a_batch(self) -> None:
        broker = Broker()
        ended = run(broker, Boundary.INTERVAL, last=23)
        assert broker.records == list(range(24))
        assert 1 < ended.stats.transactions < 8
        assert (ended.stats.smallest or 0) % 3 == ended.stats.largest % 3 == 0

    def test_a_transaction_of_the_interval_is_committed_when_the_task_is_stopped(self) -> None:
        broker = Broker()
        assert run(broker, Boundary.INTERVAL, stop_after=1).reason is EndReason.STOPPED
        assert broker.records == ALL[: len(broker.records)]
        assert broker.trace.count("commit") == 1

    def test_the_connector_commits_behind_the_record_it_names(self) -> None:
        broker = Broker()
        run(broker, Boundary.CONNECTOR, asks={1: End.COMMIT, 7: End.COMMIT})
        assert (broker.records, offset(broker), broker.commits) == (ALL[:8], 7, 2)

    def test_the_connector_commits_behind_a_batch(self) -> None:
        broker = Broker()
        run(broker, Boundary.CONNECTOR, asks_batch={5: End.COMMIT})
        assert (broker.records, offset(broker), broker.commits) == (ALL[:6], 5, 1)

    def test_the_records_of_an_aborted_transaction_are_gone_and_its_offsets_are_not(self) -> None:
        broker = Broker()
        ended = run(broker, Boundary.CONNECTOR, asks={2: End.COMMIT, 5: End.ABORT, 9: End.COMMIT})
        assert (broker.records, offset(broker)) == ([0, 1, 2, 6, 7, 8, 9], 9)
        assert (ended.stats.aborted, ended.stats.smallest) == (1, 3)

    def test_an_aborted_batch_keeps_its_offsets(self) -> None:
        broker = Broker()
        run(broker, Boundary.CONNECTOR, asks_batch={2: End.ABORT, 9: End.COMMIT})
        assert (broker.records, offset(broker)) == (ALL[3:], 9)

    def test_an_abort_of_an_empty_transaction_is_ignored(self) -> None:
        broker = Broker()
        run(broker, Boundary.CONNECTOR, asks={2: End.COMMIT}, asks_batch={2: End.ABORT})
        # the one of the end, of what nobody ended
        assert (broker.records, broker.trace.count("abort")) == (ALL[:3], 1)

    def test_an_abort_where_nothing_was_polled_is_ignored(self) -> None:
        beats = iter(range(3))

        def poll(self: Any) -> Any:
            self.next = 10 if next(beats) == 2 else 0
            self.context.transaction.abort_transaction()
            return []

        broker = Broker()
        ended = run(broker, Boundary.CONNECTOR, poll=poll)
        assert (ended.stats.aborted, "begin" in broker.trace, "abort" in broker.trace) == (
            0,
            False,
            False,
        )

    def test_a_commit_of_the_batch_behind_an_abort_of_its_last_record_has_nothing_to_commit(
        self,
    ) -> None:
        broker = Broker()
        run(broker, Boundary.CONNECTOR, last=2, asks={2: End.ABORT}, asks_batch={2: End.COMMIT})
        assert (broker.records, offset(broker), broker.commits) == ([], 2, 1)

    def test_what_the_connector_never_ended_is_not_committed_when_it_is_stopped(self) -> None:
        broker = Broker()
        assert run(broker, Boundary.CONNECTOR, stop_after=1).reason is EndReason.STOPPED
        assert (broker.records, broker.offsets) == ([], {})
        assert broker.trace[-2:] == ["abort", "stop"]

    def test_both_commit_and_abort_of_one_transaction_are_a_mistake(self) -> None:
        record = SourceRecord(PARTITION, None, "t", 1)
        for which in (record, None):
            requests = Requests()
            requests.commit_transaction(which)
            with pytest.raises(ConnectctlError, match="both a commit and an abort"):
                requests.abort_transaction(which)

    @pytest.mark.parametrize("end", End)
    def test_a_request_for_a_record_that_is_not_returned_ends_no_transaction_of_other_records(
        self, end: End
    ) -> None:
        def poll(self: Any) -> Any:
            if not self.tried:
                type(self).tried = True
                # The ids of these hundred, which are gone after this poll, are given to the next
                # ones.
                for record in [SourceRecord(PARTITION, {"n": n}, "t", n) for n in range(100)]:
                    self._ask(end, record)
                raise RetriableError("the source is busy")
            return Task.poll(self)

        broker = Broker()
        ended = run(
            broker,
            Boundary.CONNECTOR,
            poll=poll,
            tried=False,
            last=99,
            batch=100,
            asks={99: End.COMMIT},
        )
        assert (broker.records, offset(broker), ended.stats.aborted) == (list(range(100)), 99, 0)
        assert broker.commits == 1

    def test_each_request_is_answered_once(self) -> None:
        record = SourceRecord(PARTITION, None, "t", 1)
        requests = Requests()
        requests.commit_transaction(record)
        requests.commit_transaction()
        assert (requests.of_record(record), requests.of_record(record)) == (End.COMMIT, None)
        assert (requests.of_batch(), requests.of_batch()) == (End.COMMIT, None)


class TestOrder:
    def test_offsets_then_the_commit_then_each_record_then_all(self) -> None:
        broker = Broker()
        run(broker, last=1)
        told = ["begin", "offsets", "commit", "record 0", "record 1", "committed", "stop"]
        assert [what for what in broker.trace[3:] if what != "update"] == told
        assert broker.trace[:3] == ["initialise", "read", "start at 0"]
        assert broker.trace.index("update") < broker.trace.index("offsets")

    def test_after_a_doubt_a_new_task_starts_at_what_is_stored(self) -> None:
        broker = Broker()
        broker.doubt_at = 2
        run(broker)
        assert (broker.records, offset(broker)) == (ALL, 9)
        assert [t for t in broker.trace if t.startswith("start")] == ["start at 0", "start at 3"]

    def test_a_poll_that_raises_ends_the_task_without_a_commit_of_what_is_open(self) -> None:
        class Broken(Exception):
            pass

        def poll(self: Any) -> Any:
            if self.next > 3:
                raise Broken
            return Task.poll(self)

        broker = Broker()
        with pytest.raises(Broken):
            run(broker, Boundary.INTERVAL, poll=poll)
        assert (broker.records, broker.trace.count("commit"), broker.trace[-1]) == ([], 0, "abort")

    def test_what_is_open_is_aborted_when_update_offsets_raises(self) -> None:
        def update(offsets: Any) -> Any:
            raise ConnectctlError("the source is gone")

        broker = Broker()
        with pytest.raises(ConnectctlError, match="the source is gone"):
            run(broker, Boundary.INTERVAL, last=23, update=update)
        assert (broker.records, broker.trace[-2:]) == ([], ["update", "abort"])

    def test_a_record_for_the_offsets_topic_is_refused(self) -> None:
        def poll(self: Any) -> Any:
            return [SourceRecord(PARTITION, {"n": 1}, "offsets", 1)]

        with pytest.raises(ConnectctlError, match="may not produce to their own offsets topics"):
            run(Broker(), poll=poll)

    def test_a_key_that_is_stored_in_another_spelling_is_written_as_it_is_stored(self) -> None:
        broker = Broker()
        broker.offsets[b'["c", {"file": "a"}]'] = b'{"n":4}'
        run(broker)
        assert broker.records == ALL[5:]
        assert broker.offsets == {b'["c", {"file": "a"}]': b'{"n":9}'}


def at_once(self: Any, topic: str = "t") -> SourceRecords | None:
    """What ``Task.poll`` gives, as values."""
    records = Task.poll(self)
    if not records:
        return None
    return SourceRecords(
        PARTITION, records[-1].source_offset or {}, topic, [record.value for record in records]
    )


class TestValuesAtOnce:
    @pytest.mark.parametrize("boundary", [Boundary.POLL, Boundary.INTERVAL, None])
    def test_they_come_to_the_same_as_records(self, boundary: Boundary | None) -> None:
        ones, many = Broker(), Broker()
        counts = (
            run(ones, boundary, last=23).stats,
            run(many, boundary, last=23, poll=at_once).stats,
        )
        assert (many.records, many.offsets) == (ones.records, ones.offsets)
        assert many.records == list(range(24))
        assert (counts[0].records, counts[0].transactions) == (
            counts[1].records,
            counts[1].transactions,
        )

    def test_no_record_of_them_is_told_of_and_the_commit_is(self) -> None:
        broker = Broker()
        run(broker, poll=at_once)
        assert not [what for what in broker.trace if what.startswith("record")]
        assert broker.trace.count("committed") == broker.commits == 4

    def test_after_a_doubt_a_new_task_starts_at_what_is_stored(self) -> None:
        broker = Broker()
        broker.doubt_at = 2
        run(broker, poll=at_once)
        assert (broker.records, offset(broker)) == (ALL, 9)

    def test_the_connector_ends_a_transaction_behind_all_of_them(self) -> None:
        broker = Broker()
        run(broker, Boundary.CONNECTOR, poll=at_once, asks_batch={2: End.ABORT, 5: End.COMMIT})
        assert (broker.records, offset(broker)) == ([3, 4, 5], 5)

    def test_the_offsets_topic_is_refused(self) -> None:
        with pytest.raises(ConnectctlError, match="may not produce to their own offsets topics"):
            run(Broker(), poll=lambda self: at_once(self, "offsets"))


class TestWhatIsInHand:
    """A producer was initialised again: does its task go on, or begin anew?"""

    OTHER = b'["c",{"file":"b"}]'

    def trace(self, between: dict[bytes, bytes], *, lists: bool = False) -> list[str]:
        """What a task goes through that has nothing in hand, while ``between`` is written by
        others.
        """
        broker = Broker()
        broker.offsets[KEY] = b'{"n":4}'

        class Listing(Task):
            def start(self, configs: Mapping[str, str]) -> None:
                if lists:
                    self.context.offsets.offsets()
                super().start(configs)

        kind = type("Scripted", (Listing,), {"broker": broker, "asks": {}, "asks_batch": {}})
        supply = PolledSource(
            kind, "c", {}, lambda: boundaries(Boundary.POLL, lambda: 0.0), converters({}), "offsets"
        )
        supply.resume(broker)
        broker.offsets |= between
        supply.resume(broker)
        return broker.trace

    def test_a_task_goes_on_where_nobody_else_was_at_work(self) -> None:
        assert self.trace({}) == ["start at 5"]

    def test_it_begins_anew_where_another_attempt_of_it_went_on_meanwhile(self) -> None:
        assert self.trace({KEY: b'{"n":9}'}) == ["start at 5", "stop", "start at 10"]

    def test_what_its_neighbours_do_is_nothing_to_it_unless_it_looked_at_all_there_is(self) -> None:
        assert self.trace({self.OTHER: b'{"n":1}'}) == ["start at 5"]
        assert self.trace({self.OTHER: b'{"n":1}'}, lists=True) == [
            "start at 5",
            "stop",
            "start at 5",
        ]


def test_a_poll_that_failed_for_now_is_repeated_and_its_task_is_not_idle(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Shaky(Task):
        polls = 0

        def poll(self) -> Sequence[SourceRecord] | None:
            self.polls += 1
            if self.polls in (1, 2, 4):
                raise RetriableError("503 Service Unavailable")
            return super().poll()

    broker = Broker()
    kind = type("Scripted", (Shaky,), {"broker": broker, "asks": {}, "asks_batch": {}})
    supply = PolledSource(
        kind, "c", {}, lambda: boundaries(Boundary.POLL, float), converters({}), "offsets"
    )
    supply.resume(broker)
    found = []
    for _ in range(4):
        batch = supply.next()
        if isinstance(batch, TransactionBatch):
            found.append((len(values(batch)), supply.has_more))
            supply.committed(batch)
        else:
            found.append((0, supply.has_more))
    assert found == [(0, True), (0, True), (3, False), (0, True)]
    assert caplog.messages == ["c failed to poll records, and retries: 503 Service Unavailable"] * 2

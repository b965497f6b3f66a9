"""``connectctl.testing.run_transform``: output and offsets in one transaction, over failures."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.expression.transforms import FilterTask
from connectctl.testing import Fault, Record, run_transform
from connectctl.transform import Records, Setting, Transform

FIRST = TopicPartition("in", 0)


class Shout(Transform):
    settings = (Setting("mark", "what comes behind it", required=True),)

    def start(self, configs: Any) -> None:
        self.mark = configs["mark"].encode()

    def process(self, records: Records) -> Any:
        return [Record(r.value.upper() + self.mark, r.key) for r in records if r.value]


def test_each_batch_is_a_commit_of_its_output_and_the_offsets_behind_it() -> None:
    run = run_transform(
        Shout, {"topic": "out", "mark": "!"}, {"in": ["a", Record(b"b", b"k"), None]}, batch=2
    )
    assert [[(r.topic, r.key, r.value) for r in each.records] for each in run.commits] == [
        [("out", None, b"A!"), ("out", b"k", b"B!")],
        [],
    ]
    assert [each.offsets for each in run.commits] == [{FIRST: 2}, {FIRST: 3}]
    assert (run.offsets, run.starts) == ({FIRST: 3}, 1)


@pytest.mark.parametrize("fault", [each for each in Fault if each not in (Fault.POLL, Fault.PUT)])
def test_a_failure_loses_nothing_and_writes_nothing_twice(fault: Fault) -> None:
    run = run_transform(
        Shout, {"topic": "o", "mark": "."}, {"in": list("abcd")}, batch=2, fail_at={fault: 1}
    )
    assert (run.values("o"), run.offsets) == ([b"A.", b"B.", b"C.", b"D."], {FIRST: 4})
    assert run.starts == (1 if "rebalance" in fault else 2)


def test_at_least_once_output_is_there_before_its_offsets_and_comes_again_after_a_failure() -> None:
    config = {"topic": "o", "mark": ".", "guarantee": "at-least-once"}
    run = run_transform(
        Shout, config, {"in": list("abcd")}, batch=2, fail_at={Fault.CRASH_BEFORE_COMMIT: 2}
    )
    assert (run.values("o"), run.offsets) == (
        [b"A.", b"B.", b"C.", b"D.", b"C.", b"D."],
        {FIRST: 4},
    )


def test_a_function_of_frames_is_a_transform() -> None:
    def long_ones(frame: Any) -> Any:
        return frame[frame.value.str.len() > 1]

    run = run_transform(long_ones, {"topic": "out"}, {"in": ["a", "bb", "ccc"]}, offsets={FIRST: 1})
    assert run.values() == [b"bb", b"ccc"]


def test_a_configuration_is_validated_as_by_a_run() -> None:
    with pytest.raises(BadInput, match='Missing required configuration "mark"'):
        run_transform(Shout, {"topic": "out"}, {"in": ["a"]})
    with pytest.raises(BadInput, match="The output topic in is an input topic, too"):
        run_transform(Shout, {"topic": "in", "mark": "."}, {"in": ["a"]})
    once = {"topic": "out", "mark": ".", "guarantee": "exactly-once-per-partition"}
    with pytest.raises(
        BadInput, match=r"exactly-once-per-partition .*: use exactly-once or at-least-once$"
    ):
        run_transform(Shout, once, {"in": ["a"]})
    with pytest.raises(BadInput, match="A transform is a subclass of Transform"):
        run_transform(3, {}, {"in": []})  # type: ignore[arg-type]


def test_what_it_raises_is_raised_or_is_the_state_of_the_run() -> None:
    def broken(frame: Any) -> Any:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_transform(broken, {"topic": "out"}, {"in": ["a"]})
    run = run_transform(broken, {"topic": "out"}, {"in": ["a"]}, expect_failure=True)
    assert (run.state, run.commits, run.offsets) == ("FAILED", [], {})
    with pytest.raises(ConnectctlError, match="without a topic"):
        run_transform(Shout, {"mark": "."}, {"in": ["a"]})


def test_a_dead_letter_of_a_transform_is_in_the_transaction_of_its_offset() -> None:
    config = {
        "topic": "out",
        "condition": "amount > 1",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.deadletterqueue.topic.name": "dead",
    }
    given = {"in": [b'{"amount":2}', b"{", b'{"amount":3}']}
    tolerant = config | {"errors.tolerance": "all"}
    run = run_transform(FilterTask, tolerant, given)
    (commit,) = run.commits
    assert [(r.topic, r.value) for r in commit.records] == [
        ("out", b'{"amount":2}'),
        ("out", b'{"amount":3}'),
        ("dead", b"{"),
    ]
    assert commit.offsets == {FIRST: 3}
    failed = run_transform(FilterTask, config, given, expect_failure=True)
    assert (failed.state, failed.records) == ("FAILED", [])
    assert "TRANSFORMATION failed for the record of in-0 at offset 1" in str(failed.error)

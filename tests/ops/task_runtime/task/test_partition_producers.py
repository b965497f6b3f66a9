"""A transform with a producer for each input partition, where groups and producers fail: each output is there once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.group.ledger import PartitionLedger
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason, ProducerRecord, TaskResult, TransactionBatch
from connectctl.ops.task_runtime.spi.transform import Record, Records, Transform
from connectctl.ops.task_runtime.task.exactly_once_task import ExactlyOnceTask
from connectctl.ops.task_runtime.task.partition_producers import PartitionProducers
from connectctl.ops.task_runtime.task.transactional_producer import Expired, Fenced, MemberFenced, UnknownOutcome
from connectctl.ops.task_runtime.task.transform_output import OutputSettings
from connectctl.ops.task_runtime.task.transform_source import TransformSource
from depth import deep
from fakes.consumergroup import Group, Member, Producer
from hypothesis import given, settings
from hypothesis import strategies as st

PLACES = [TopicPartition("in", n) for n in range(3)]
DOUBTS: list[Callable[[], Exception]] = [
    lambda: UnknownOutcome("no answer"),
    lambda: TimedOut("late"),
    lambda: Fenced("a newer one of the partition"),
]


class Upper(Transform):
    def __init__(self) -> None:
        self.polls: list[int] = []

    def process(self, records: Records) -> Any:
        assert len({r.partition for r in records}) == 1
        return [Record((r.value or b"").upper()) for r in records]


class Traced(Producer):
    """A producer that says what becomes of it."""

    def __init__(self, group: Group, id_: str, said: list[str]):
        super().__init__(group, id_)
        self.said = said
        self.slow = False

    @property
    def overdue(self) -> bool:  # type: ignore[override]
        return self.slow

    def expired(self) -> bool | None:
        return self.slow

    def initialise(self, patience: float) -> None:
        super().initialise(patience)
        self.said.append(f"initialise {self.id}")

    def discard(self) -> None:
        super().discard()
        self.said.append(f"close {self.id}")


class Reading(Member):
    """A member that says when it reads offsets."""

    def __init__(self, group: Group, said: list[str]):
        super().__init__(group)
        self.said = said

    def committed(self, partitions: Any, patience: float) -> GroupOffsets:
        self.said.append("read offsets")
        return super().committed(partitions, patience)


def group(count: int = 7, **more: Any) -> Group:
    return Group({p: [b"%d-%d" % (p.partition, n) for n in range(count)] for p in PLACES}, **more)


def run(
    kafka: Group,
    *,
    interval: float = 0.3,
    said: list[str] | None = None,
    stale: Callable[[], str | None] = lambda: None,
    producer: type[Traced] = Traced,
) -> TaskResult:
    """Run until everything that is the member's is read."""
    ticks, trace = iter(range(10**9)), said if said is not None else []
    members: list[Member] = []

    def opened() -> Member:
        members.append(Reading(kafka, trace))
        return members[-1]

    output = OutputSettings("out")
    source = TransformSource(Upper, {}, output, interval, 2, TaskMeter(), lambda: next(ticks) * 0.1, by_partition=True)
    ledger = PartitionLedger(opened, 1.0, stale)
    opens: Any = lambda place: producer(kafka, f"g-c-in_{place.partition}", trace)  # noqa: E731
    task = ExactlyOnceTask(
        lambda: ledger.producers(opens, 10_000),
        ledger,
        stale,
        stopped=lambda: bool(members) and not source.has_more,
        sleep=lambda seconds: None,
        patience=1e9,
    )
    try:
        return task.run(source)
    finally:
        source.close()
        ledger.close()


def whole(kafka: Group) -> None:
    """Every record of the input was written once, each partition in its order."""
    for place, data in kafka.input.items():
        own = [v for v in kafka.output if v.startswith(b"%d-" % place.partition)]
        assert own == data[: kafka.offsets.get(place, 0)]
    assert len(kafka.output) == sum(kafka.offsets.values())


def producers(kafka: Group, said: Sequence[str] = ()) -> PartitionProducers:
    """Of two partitions, each with a record and an offset in its transaction."""
    opens: Any = lambda place: Traced(kafka, f"g-c-in_{place.partition}", list(said))  # noqa: E731
    both = PartitionProducers(opens, 10_000, lambda: kafka.replaced)
    both.open(PLACES[:2], 1.0)
    parts = [[ProducerRecord("out", None, value) for value in own] for own in ([b"0-0", b"0-1"], [b"1-0"])]
    both.begin()
    origins = [(place, TransactionBatch(own)) for place, own in zip(PLACES, parts, strict=False)]
    both.send(TransactionBatch([*parts[0], *parts[1]], origins=origins))
    member: Any = Member(kafka)
    member.generation = kafka.generation
    both.send_group_offsets({PLACES[0]: GroupOffset(2), PLACES[1]: GroupOffset(1)}, member, 1.0)
    return both


def test_each_record_is_written_once_by_the_producer_of_its_partition() -> None:
    kafka = group()
    ran = run(kafka)
    assert (ran.reason, ran.stats.records) == (EndReason.STOPPED, 21)
    assert kafka.offsets == dict.fromkeys(PLACES, 7)
    assert kafka.epochs == {f"g-c-in_{n}": 1 for n in range(3)}
    whole(kafka)


def test_producers_are_initialised_before_the_offsets_are_read_and_closed_at_the_end() -> None:
    said: list[str] = []
    run(group(), said=said)
    ids = [f"g-c-in_{n}" for n in range(3)]
    assert sorted(said[:3]) == [f"initialise {id_}" for id_ in ids]
    assert said[3] == "read offsets"
    assert sorted(said[4:]) == [f"close {id_}" for id_ in ids]


def test_a_revocation_commits_and_closes_the_producer_of_what_is_revoked_alone() -> None:
    said: list[str] = []
    kafka = group(script={2: "revoke"})
    run(kafka, interval=100.0, said=said)
    assert kafka.offsets[PLACES[0]] == 2  # of one poll
    assert said[4] == "close g-c-in_0"
    assert kafka.offsets[PLACES[1]] == kafka.offsets[PLACES[2]] == 7
    whole(kafka)


@given(
    st.integers(1, 60),
    st.sampled_from(DOUBTS),
    st.booleans(),
    st.dictionaries(st.integers(1, 6), st.sampled_from(["revoke", "lost"]), max_size=2),
)
@settings(deadline=None, max_examples=deep(150, 37))
def test_whatever_call_fails_and_whenever_partitions_go_each_record_is_there_once(
    fail_at: int, doubt: Callable[[], Exception], commit_anyway: bool, script: dict[int, str]
) -> None:
    kafka = group(fail={fail_at: doubt}, commit_anyway=commit_anyway, script=script)
    run(kafka)
    whole(kafka)
    kafka.away.clear()
    kafka.script.clear()
    if (
        run(kafka).reason is EndReason.FENCED
    ):  # by the member; else the next owner of what was taken reads nothing again
        run(kafka)
    assert kafka.offsets == dict.fromkeys(PLACES, 7)
    whole(kafka)


def test_a_producer_that_another_owner_of_its_partition_fenced_writes_nothing_and_the_others_commit() -> None:
    kafka = group()
    both = producers(kafka)
    Producer(kafka, "g-c-in_0").initialise(1.0)
    with pytest.raises(UnknownOutcome, match="another producer has taken the transactional id g-c-in_0"):
        both.commit(1.0)
    assert (kafka.offsets, kafka.output) == ({PLACES[1]: 1}, [b"1-0"])


def test_an_attempt_that_was_replaced_ends_by_whichever_of_its_producers_is_fenced() -> None:
    kafka = group(replaced=True)
    both = producers(kafka)
    Producer(kafka, "g-c-in_1").initialise(1.0)
    with pytest.raises(Fenced):
        both.commit(1.0)
    assert run(group(replaced=True, fail={9: lambda: Fenced("a newer one")})).reason is EndReason.FENCED
    assert run(group(fail={9: lambda: MemberFenced("a newer member")})).reason is EndReason.FENCED


def test_a_transaction_that_was_open_for_too_long_is_told_from_a_partition_that_went() -> None:
    kafka = group()
    both = producers(kafka)
    slow: Any = both._producers[PLACES[0]]
    slow.slow = True
    Producer(kafka, "g-c-in_0").initialise(1.0)
    with pytest.raises(Expired, match=r"in-0 was open for longer than transaction\.timeout\.ms of 10 s"):
        both.commit(1.0)


def test_of_several_failures_the_one_that_only_a_person_mends_is_raised() -> None:
    kafka = group()
    both = producers(kafka)
    before = kafka.calls
    kafka.fail = {before + 1: lambda: UnknownOutcome("no answer"), before + 2: lambda: ConnectctlError("not allowed")}
    with pytest.raises(ConnectctlError, match="not allowed"):
        both.commit(1.0)


def test_a_task_that_is_stale_once_its_producers_are_initialised_reads_nothing() -> None:
    kafka = group()
    asked = iter([None, None, "a newer generation", "a newer generation"])
    ran = run(kafka, stale=lambda: next(asked))
    assert (ran.reason, ran.detail, kafka.output) == (EndReason.STALE, "a newer generation", [])


def test_what_is_open_of_an_older_producer_of_the_partition_is_waited_for() -> None:
    class Hanging(Traced):
        looks = 0

        def open_older_transaction(self, topics: Sequence[str]) -> str | None:
            type(self).looks += 1
            assert list(topics) == ["out"]
            return "an older transaction is open" if type(self).looks == 1 else None

    kafka = group()
    ran = run(kafka, producer=Hanging)
    assert ran.stats.doubts == ["an older transaction is open"]
    assert Hanging.looks == 4  # once more, and then once for each partition and topic
    whole(kafka)


def test_what_all_of_them_share_is_let_go_of_behind_the_last_producer() -> None:
    said: list[str] = []
    opens: Any = lambda place: Traced(group(), f"g-c-in_{place.partition}", said)  # noqa: E731
    both = PartitionProducers(opens, 10_000, lambda: False, lambda: said.append("let go"))
    both.open(PLACES[:2], 1.0)
    del said[:]
    both.discard()
    assert said == ["close g-c-in_0", "close g-c-in_1", "let go"]


def test_records_that_name_no_partition_are_a_mistake_of_the_supply() -> None:
    with pytest.raises(TypeError):
        producers(group()).send(TransactionBatch([ProducerRecord("out", None, b"v")]))

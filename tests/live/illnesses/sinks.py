"""Sinks that do not deliver, and others that have nothing to deliver."""

from __future__ import annotations

import os
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, TopicPartition
from live.illnesses.bed import DAY, HOUR, JSON, MINUTE, RUNNING, Bed, situation
from live.real import eventually

NEVER_FETCHES = {
    "consumer.override.fetch.min.bytes": "50000000",
    "consumer.override.fetch.max.wait.ms": "600000",
}
MANY = [str(number) for number in range(1_000)]
"""Records of which one is committed before each look."""
TOLERANT = {"errors.tolerance": "all"}


def dead_letter_queue(bed: Bed) -> dict[str, str]:
    prefix = "errors.deadletterqueue.topic"
    return {f"{prefix}.name": f"{bed.name}-dead", f"{prefix}.replication.factor": "1"}


@situation(
    "A sink is RUNNING, polls, and commits nothing of old records", "FLOW003", "stands still"
)
def a_sink_hangs(bed: Bed) -> None:
    bed.topic("one", "two", ago=3 * HOUR)
    bed.sink(more=NEVER_FETCHES)
    bed.runs_since(2 * HOUR)


@situation(
    "Of two partitions a sink committed one, and never the other",
    "FLOW004",
    "stand still while others move",
)
def a_partition_is_stuck(bed: Bed) -> None:
    bed.topic(*MANY, ago=3 * HOUR, partitions=2)
    bed.sink_committed(1)
    bed.sink(more=NEVER_FETCHES)
    bed.runs_since(2 * HOUR)
    bed.commits_on(2)


@situation("Records arrive faster than a sink commits them", "FLOW005", "the lag grows")
def a_lag_grows(bed: Bed) -> None:
    bed.topic(*MANY, ago=3 * HOUR)
    bed.sink_had_committed(1, 20 * MINUTE)
    bed.sink_committed(2)
    bed.sink(more=NEVER_FETCHES)
    bed.runs_since(2 * HOUR)
    bed.commits_on(3)
    bed.repeated.append(lambda: bed.write(bed.name, [(None, "new", 0.0)] * 5, 0))


@situation("A task hangs in put, and its consumer has left the group", "FLOW006", "has 0 members")
def a_task_hangs_in_put(bed: Bed) -> None:
    _hangs_in_put(bed)


@situation("A task hangs in its first put, and its group is forgotten", "FLOW006", "has 0 members")
def a_task_hangs_in_its_first_put(bed: Bed) -> None:
    """A coordinator deletes groups without members and offsets every ten minutes."""
    group = _hangs_in_put(bed)
    with suppress(KafkaException):  # it has done so already
        bed.admin.delete_consumer_groups([group])[group].result()


def _hangs_in_put(bed: Bed) -> str:
    """Have a task hang until its group has no members; gives the group."""
    pipe = bed.directory / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # opened, and never read
    bed.closing.append(lambda: os.close(reader))
    bed.topic(*["x" * 10_000] * 30)
    bed.sink(
        "pipe",
        consumer__override__max__poll__interval__ms="6000",
        consumer__override__session__timeout__ms="6000",
    )
    bed.runs_since(HOUR)
    group = f"connect-{bed.name}"

    def gone() -> bool:
        future = bed.admin.describe_consumer_groups([group])[group]
        try:
            # without members and offsets, its coordinator forgets it
            return str(future.result().state.name) in ("EMPTY", "DEAD")
        except KafkaException:  # its coordinator is loading
            return False

    eventually(gone)
    return group


@situation(
    "A sink's records are not JSON, and go to its dead letter queue", "FLOW007", "dead letter"
)
def dead_letters_fill(bed: Bed) -> None:
    bed.topic("{", "[")
    bed.sink(more=JSON | TOLERANT | dead_letter_queue(bed))
    bed.states(*RUNNING)
    eventually(lambda: ends(bed, f"{bed.name}-dead") == 2)


@situation("A sink reads a topic that was deleted", "FLOW008", "does not exist")
def a_topic_was_deleted(bed: Bed) -> None:
    bed.sink(consumer__override__allow__auto__create__topics="false")
    bed.runs_since(2 * HOUR)


@situation("A connector drops what it cannot convert, and logs nothing", "CONFIG018", "silently")
def records_are_dropped(bed: Bed) -> None:
    bed.topic("{", "[")
    bed.sink(more=JSON | TOLERANT)
    bed.states(*RUNNING)


@situation("A sink has processed everything")
def a_sink_without_lag(bed: Bed) -> None:
    bed.topic("one", "two")
    bed.sink()
    bed.states(*RUNNING)


@situation("Records arrived a moment ago, and the sink has not committed yet")
def a_sink_with_new_records(bed: Bed) -> None:
    bed.topic()
    bed.sink(more=NEVER_FETCHES)
    bed.runs_since(2 * HOUR)

    def records_arrived() -> None:
        bed.empty()
        bed.write(bed.name, [(None, "one", 0.0), (None, "two", 0.0)], 0)

    bed.repeated.append(records_arrived)


@situation("A new sink begins with old records")
def a_sink_that_begins(bed: Bed) -> None:
    bed.topic("one", "two", ago=3 * HOUR)
    bed.sink(more=NEVER_FETCHES)
    bed.states(*RUNNING)


@situation("A sink is paused, and records wait")
def a_paused_sink(bed: Bed) -> None:
    bed.topic("one", "two", ago=3 * HOUR)
    bed.sink(state="PAUSED")
    bed.states("PAUSED")


@situation("A sink is stopped, and records wait")
def a_stopped_sink(bed: Bed) -> None:
    bed.topic("one", "two", ago=3 * HOUR)
    bed.sink(state="STOPPED")
    bed.states("STOPPED")


@situation("A sink with old records catches up: it commits more than arrives")
def a_sink_that_catches_up(bed: Bed) -> None:
    bed.topic(*MANY, ago=3 * HOUR)
    bed.sink_had_committed(1, 20 * MINUTE)
    bed.sink_committed(7)
    bed.sink(more=NEVER_FETCHES)
    bed.runs_since(2 * HOUR)
    bed.commits_on(8)


@situation("A sink's topic has no records")
def a_sink_of_an_empty_topic(bed: Bed) -> None:
    bed.topic()
    bed.sink()
    bed.runs_since(2 * HOUR)


@situation("A sink has more tasks than its topic has partitions")
def a_sink_with_a_task_too_many(bed: Bed) -> None:
    bed.topic("one", "two")
    bed.sink(tasks__max="2")
    bed.runs(2)


@situation("A sink has processed a transaction's records; the last offset is that of its marker")
def a_sink_of_transactions(bed: Bed) -> None:
    bed.topic()
    producer = bed.producer(f"{bed.name}-writer")
    producer.begin_transaction()
    producer.produce(bed.name, "one")
    producer.commit_transaction(120)
    bed.sink()
    bed.runs_since(2 * HOUR)


@situation("The newest dead letter is of yesterday")
def old_dead_letters(bed: Bed) -> None:
    bed.topic("one")
    bed.topic("{", ago=DAY, name=f"{bed.name}-dead")
    bed.sink(more=TOLERANT | dead_letter_queue(bed))
    bed.states(*RUNNING)


@situation("A dead letter queue has had no letter, and does not exist yet")
def no_dead_letters(bed: Bed) -> None:
    bed.topic("one")
    bed.sink(more=TOLERANT | dead_letter_queue(bed))
    bed.states(*RUNNING)


@situation("A connector logs the records that it cannot convert")
def dropped_records_are_logged(bed: Bed) -> None:
    bed.topic("one")
    bed.sink(more=TOLERANT, errors__log__enable="true")
    bed.states(*RUNNING)


def ends(bed: Bed, topic: str) -> int:
    """Return how many records the one partition of ``topic`` has had, 0 without the topic."""
    consumer = Consumer({"bootstrap.servers": bed.cluster.bootstrap_servers, "group.id": bed.name})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1])
    except KafkaException:
        return 0
    finally:
        consumer.close()

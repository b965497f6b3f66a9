"""Sources that stand still, and others that only rest."""

from __future__ import annotations

from live.illnesses.bed import DAY, HOUR, MINUTE, RUNNING, Bed, every, situation
from live.real import create_topic


@situation(
    "A source committed an offset every minute for two days, and none for five hours",
    "FLOW001",
    "stands still",
)
def a_source_hangs(bed: Bed) -> None:
    bed.source()
    bed.runs_since(3 * DAY)
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))


@situation(
    "A source writes records, and its last offset is hours old",
    "FLOW002",
    "topics have new records",
)
def offsets_are_not_committed(bed: Bed) -> None:
    bed.source()
    bed.runs_since(3 * DAY)
    bed.writes_to_its_topic()
    bed.topic("one", "two")
    bed.committed(*every(MINUTE, 2 * DAY + 2 * HOUR, 2 * HOUR))


@situation("A nightly source rests by day")
def a_nightly_source(bed: Bed) -> None:
    bed.source()
    bed.runs_since(7 * DAY)
    nights = [every(MINUTE, n * DAY + 13 * HOUR, n * DAY + 12 * HOUR) for n in range(5)]
    bed.committed(*(ago for night in nights for ago in night))


@situation("A bursty source rests for hours between bursts")
def a_bursty_source(bed: Bed) -> None:
    bed.source()
    bed.runs_since(7 * DAY)
    bursts = [every(1, n * 3 * HOUR + 2 * HOUR + 9, n * 3 * HOUR + 2 * HOUR) for n in range(10)]
    bed.committed(*(ago for burst in bursts for ago in burst))


@situation("A source is paused, and committed an offset every minute before")
def a_paused_source(bed: Bed) -> None:
    bed.source(state="PAUSED")
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))
    bed.states("PAUSED")


@situation("A source is stopped, and committed an offset every minute before")
def a_stopped_source(bed: Bed) -> None:
    bed.source(state="STOPPED")
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))
    bed.states("STOPPED")


@situation("A source was resumed a moment ago, after hours of a pause")
def a_resumed_source(bed: Bed) -> None:
    bed.source()
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))
    bed.states(*RUNNING)


@situation("A source has read its file, and waits for more")
def an_idle_source(bed: Bed) -> None:
    bed.source("one\n")
    bed.states(*RUNNING)


@situation("A source committed offsets all the time, until a few minutes ago")
def a_source_between_two_commits(bed: Bed) -> None:
    bed.source()
    bed.runs_since(3 * DAY)
    bed.committed(*every(MINUTE, DAY, 4 * MINUTE))
    bed.repeated.append(lambda: bed.committed(4 * MINUTE))


@situation("A source reads ten thousand lines at once")
def a_big_batch(bed: Bed) -> None:
    bed.source("a line\n" * 10_000, batch__size="10000")
    bed.states(*RUNNING)


@situation("A source keeps its offsets in a topic of its own")
def a_source_with_its_own_offsets_topic(bed: Bed) -> None:
    own = create_topic(bed.cluster.bootstrap_servers, f"{bed.name}-offsets")
    bed.source("one\n", offsets__storage__topic=own)
    bed.states(*RUNNING)


@situation("A source was deleted and created again, with the offsets of before")
def a_source_is_created_again(bed: Bed) -> None:
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))
    bed.source("one\n")
    bed.states(*RUNNING)
    bed.rest.delete(bed.name)
    bed.source("one\n")
    bed.states(*RUNNING)


@situation("A source was given another configuration six times within minutes")
def a_source_is_configured_often(bed: Bed) -> None:
    bed.source("one\n")
    for size in range(6):
        bed.configure(batch__size=str(100 + size))
    bed.states(*RUNNING)

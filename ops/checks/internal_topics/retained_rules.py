"""TOPIC014 and TOPIC015: records that the workers' topics retain and no worker needs, by what
``doctor`` reads of them. Rules over ``observe``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.history.observe import image_of
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.config_topic import is_configured
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.internal_topics import Role
from connectctl.ops.core.finding import Severity, counted, some_of
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.core.times import in_words
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.kafka.rhythm import Rhythm
from connectctl.ops.kafka.topics import TopicFacts

NAMED = 5
DAY = 86_400.0
"""Seconds in which a log cleaner cleans a partition, and a connector is created again."""


@dataclass(frozen=True)
class Retained:
    """A topic whose closed segments have ``superseded`` of ``records`` records that compaction
    should have removed: they are older than ``segment_seconds``. ``ratio`` is its
    min.cleanable.dirty.ratio.
    """

    topic: str
    role: str
    superseded: int
    records: int
    segment_seconds: float
    ratio: float


@dataclass(frozen=True)
class RetainedFacts:
    """The observations; ``now`` is in seconds since the epoch. ``gone`` is when the newest offset
    was written of each connector that is not configured any longer.
    """

    topics: tuple[Retained, ...] = ()
    gone: Mapping[str, float] = field(default_factory=dict)
    offsets_topic: str = ""
    now: float = 0.0


def observe(context: CheckContext, now: float) -> RetainedFacts:
    """Observe the topics that were read for the history of the cluster; ``now`` in seconds since the
    epoch. It reports topics that could not be read.
    """
    found = []
    for topic in context.view.topics:
        settings = _settings(topic.facts)
        if topic.facts is None or settings is None:
            continue
        segment, lag, ratio = settings
        if topic.role == Role.OFFSETS:
            counts = _of_rhythms(context, now - lag - DAY, segment)
        else:
            image = image_of(context, topic.role, [])  # the history reports a failure
            counts = _of_image(image, now - lag - DAY, segment)
        found.append(Retained(topic.facts.name, topic.role, *counts, segment, ratio))
    return RetainedFacts(tuple(found), _gone(context), context.internal.get("offsets", ""), now)


def _settings(facts: TopicFacts | None) -> tuple[float, float, float] | None:
    """Return segment.ms and min.compaction.lag.ms in seconds, and min.cleanable.dirty.ratio; None
    if one of them is not known.
    """
    config = facts.config if facts else {}
    segment = whole_number(config.get("segment.ms"))
    lag = whole_number(config.get("min.compaction.lag.ms"))
    ratio = config.get("min.cleanable.dirty.ratio")
    if segment is None or lag is None or ratio is None:
        return None
    return segment / 1000, lag / 1000, float(ratio)


def _of_image(image: TopicImage | None, before: float, segment: float) -> tuple[int, int]:
    """Return how many records of closed segments are superseded by others there, and how many
    records there are.
    """
    if image is None:
        return 0, 0
    by_partition: dict[int, list[ConsumerRecord]] = {}
    for record in (*image.latest, *image.superseded):
        by_partition.setdefault(record.partition, []).append(record)
    return sum(_superseded(r, before, segment) for r in by_partition.values()), image.records


def _superseded(records: Iterable[ConsumerRecord], before: float, segment: float) -> int:
    """Return how many records of one partition are superseded by records of closed segments. The
    active segment begins at most ``segment`` seconds before the newest record.
    """
    timed = [r for r in records if r.timestamp is not None]
    newest = max((r.timestamp or 0 for r in timed), default=0) / 1000
    closed = [r for r in timed if (r.timestamp or 0) / 1000 < min(before, newest - segment)]
    return len(closed) - len({r.key for r in closed})


def _of_rhythms(context: CheckContext, before: float, segment: float) -> tuple[int, int]:
    """Return the same of the offsets topic, at least: of each key the first and the last time, the
    longest gap and the number of its records are known.
    """
    rhythms = context.history.rhythms_of_topic
    newest = max((r.last for r in rhythms), default=0.0)
    closed = min(before, newest - segment)
    return sum(_at_least(r, closed) for r in rhythms), sum(r.count for r in rhythms)


def _at_least(rhythm: Rhythm, closed: float) -> int:
    """Return how many records of a key certainly are superseded by one before ``closed``."""
    if rhythm.last < closed:
        return rhythm.count - 1
    if not rhythm.longest or rhythm.first >= closed:
        return 0
    # A record at ``closed`` itself is not before it.
    return min(ceil((closed - rhythm.first) / rhythm.longest) - 1, rhythm.count - 1)


def _gone(context: CheckContext) -> dict[str, float]:
    """Return the connectors with offsets that are not configured, with their newest offset."""
    if context.state is None or not context.history.config_read:
        return {}
    newest = {
        name: max(at for times in by_key.values() for at in times)
        for name, by_key in context.history.offset_times.items()
        if name and any(by_key.values())
    }
    return {name: at for name, at in newest.items() if not is_configured(context.state, name)}


@rule("TOPIC014", Severity.INFO)
def offsets_of_none(facts: RetainedFacts, goal: Goal) -> Case | None:
    """Return TOPIC014 for offsets of connectors that have not existed for more than a day."""
    gone = {name: at for name, at in facts.gone.items() if facts.now - at > DAY}
    if not gone:
        return None
    names = sorted(gone, key=lambda name: gone[name])
    message = (
        f"It has offsets of {counted(len(gone), 'connector')} that this group does not have: "
        f"{some_of(names, NAMED)}. One that is created with such a name begins with them."
    )
    hint = f"If it will not be created again: connectctl offsets reset {names[0]}"
    return Case(facts.offsets_topic, message, hint)


@rule("TOPIC015", Severity.WARNING, each="topics")
def not_cleaned(facts: RetainedFacts, topic: Retained, goal: Goal) -> Case | None:
    """Return TOPIC015 if a topic retains more superseded records than its log cleaner leaves."""
    if topic.superseded <= topic.ratio * topic.records:
        return None
    message = (
        f"Compaction does not clean the {topic.role} topic: {topic.superseded:,} of its "
        f"{counted(topic.records, 'record')} are superseded by others that are older than "
        f"segment.ms ({in_words(topic.segment_seconds)}). Workers read all of them when they start."
    )
    hint = (
        "Look for errors of kafka-log-cleaner-thread in the logs of its brokers, and restart "
        "those whose metric uncleanable-partitions-count is not 0"
    )
    return Case(topic.topic, message, hint)

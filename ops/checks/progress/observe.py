"""Observes whether running source connectors make progress: the rhythm of their offsets, and the
newest records of the topics of those that are silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.progress.silence import Silence, unusual_silence
from connectctl.ops.connect.connector import Connector, State
from connectctl.ops.connect.health import parts_in
from connectctl.ops.connect.offset_store import connects_to
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.unseen import Unseen, answer_of
from connectctl.ops.kafka.records import ConsumerRecord

MOST_TOPICS = 200
"""The most topics of silent connectors whose newest records are read."""
_TAIL = 3
"""Offsets at the end of a partition: the last one may be the marker of a transaction."""


@dataclass(frozen=True)
class SourceProgress:
    """A source connector all of whose tasks are RUNNING. Times are in seconds since the epoch.

    ``silence`` is None if its offsets are as regular as before, or if that is unknown. ``record_at``
    is the time of the newest record in its ``topics``, None if it was not read or there is none.
    """

    name: str
    silence: Silence | None = None
    topics: frozenset[str] = frozenset()
    record_at: float | None = None
    workers: tuple[str, ...] = ()

    @property
    def writes_records(self) -> bool:
        """Return whether a topic of it has a record that follows the last offset by more than the
        longest time between two offsets.
        """
        if self.silence is None or self.record_at is None:
            return False
        usual = max(self.silence.rhythm.longest, 60.0)
        return self.record_at > self.silence.since + 2 * usual


@dataclass(frozen=True)
class ProgressFacts:
    """The observations; ``now`` is in seconds since the epoch."""

    connectors: tuple[SourceProgress, ...]
    now: float
    unseen: tuple[Unseen, ...] = ()


def observe(context: CheckContext, now: float) -> ProgressFacts:
    """Observe the running source connectors; ``now`` in seconds since the epoch."""
    unseen: list[Unseen] = []
    running = [_progress(context, source, now) for source in context.sources if _runs(source)]
    silent = [each for each in running if each.silence is not None]
    newest = _newest_records(context, silent, unseen)
    found = [
        replace(each, record_at=max((newest[t] for t in each.topics & newest.keys()), default=None))
        for each in running
    ]
    return ProgressFacts(tuple(found), now, tuple(unseen))


def _runs(source: Connector) -> bool:
    """Return whether all its tasks are RUNNING: others are reported as what they are."""
    running = parts_in(source, State.RUNNING).keys()
    return bool(source.tasks) and running >= source.tasks.keys()


def _progress(context: CheckContext, source: Connector, now: float) -> SourceProgress:
    silence = unusual_silence(
        context.history.rhythms.get(source.name, ()),
        now,
        context.history.newest_status_at(source.name, source.tasks),
    )
    workers = {status.worker for status in source.tasks.values() if status and status.worker}
    topics = frozenset[str]()
    if connects_to(source.config, "producer", context.edges.bootstrap):
        topics = (context.recorded or {}).get(source.name, frozenset())
    return SourceProgress(source.name, silence, topics, workers=tuple(sorted(workers)))


def _newest_records(
    context: CheckContext, silent: Iterable[SourceProgress], unseen: list[Unseen]
) -> Mapping[str, float]:
    """Return the time of the newest record of each topic of the silent connectors."""
    topics = sorted(frozenset[str]().union(*(each.topics for each in silent)))
    if len(topics) > MOST_TOPICS:
        why = f"only the first {MOST_TOPICS} topics of silent connectors are read"
        unseen.append(Unseen(f"the newest records of {some_of(topics[MOST_TOPICS:], 3)}", why))
    found: dict[str, float] = {}
    for topic in topics[:MOST_TOPICS]:
        what = f"the newest records of {topic}"
        tails = answer_of(partial(_tail, context, topic), unseen, what) or []
        times = [record.timestamp / 1000 for record in tails if record.timestamp is not None]
        if times:
            found[topic] = max(times)
    return found


def _tail(context: CheckContext, topic: str) -> list[ConsumerRecord]:
    kafka = context.edges.kafka
    return kafka.tails([topic], _TAIL)[topic] if kafka.existing([topic]).seen else []
